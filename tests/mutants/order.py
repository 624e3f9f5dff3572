"""The tests of a mutant, those first that kill most in a second; that one learns while it runs."""

import json
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager

import pytest

from tests.mutants.mutations import ROOT

LEARNT = ROOT / ".mutants" / "tests.json"
_UNKNOWN_S = 1.0  # a test that no run timed yet, so that it gets a turn
_UNKNOWN_UNIT_S = 0.1
_HOPE = 0.3  # kills of a test that killed nothing yet
_HERE = 4  # a kill in the same module counts for as many elsewhere


class Quickest:
    """A plugin of pytest: orders the tests, and ends the run when its time is spent."""

    def __init__(
        self,
        path: str,
        *,
        budget_s: float | None,
        patience: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.failed: str | None = None
        self.is_spent = False
        self._path, self._budget_s, self._patience = path, budget_s, patience
        self._begun = time.monotonic()
        self._learnt: dict[str, dict[str, float]] = (
            json.loads(LEARNT.read_text(encoding="utf-8")) if LEARNT.exists() else {}
        )

    def keep(self) -> None:
        """Writes down how long the tests took, and which of them failed."""
        LEARNT.parent.mkdir(exist_ok=True)
        LEARNT.write_text(json.dumps(self._learnt, indent=1, sort_keys=True), encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The best first."""
        items.sort(key=self._worth, reverse=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Gives each test its time, and the run the time that it has."""
        with self._patience():
            found = yield
        spent = time.monotonic() - self._begun
        if self._budget_s is not None and spent > self._budget_s:
            self.is_spent = True
            item.session.shouldstop = "the time is spent"
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what is to be learnt of a test."""
        known = self._learnt.setdefault(report.nodeid, {})
        if report.when == "call" and report.passed:
            known["seconds"] = report.duration
        if report.failed:
            self.failed = report.nodeid
            known[self._path] = known.get(self._path, 0) + 1

    def _worth(self, item: pytest.Item) -> float:
        known = self._learnt.get(item.nodeid, {})
        unknown_s = _UNKNOWN_UNIT_S if item.nodeid.startswith("tests/unit") else _UNKNOWN_S
        kills = {path: times for path, times in known.items() if path != "seconds"}
        here = kills.pop(self._path, 0)
        hope = _HOPE + sum(kills.values()) + _HERE * here
        return hope / (known.get("seconds", unknown_s) + 0.02)
