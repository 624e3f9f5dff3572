"""The suites of a folder, understood: without Spark, so that `doctor` need not wait for it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Protocol

from shardaudit.adapters.suite_files import load_suites
from shardaudit.model.gate import Suite, SuiteResult, SummaryRow


class SuiteJudge(Protocol):
    """What judges rows by the suite of that name."""

    def prepare(self) -> None:
        """Begins what takes time; nobody has to call it."""

    def judge(self, name: str, rows: Sequence[SummaryRow]) -> SuiteResult:
        """What each check of the suite says of the rows."""


def understood_suites(folder: str | None) -> SuiteJudge:
    """What judges by the suites of a folder, or by those that are shipped.

    Raises:
        ConfigError: a suite cannot be understood: file, line, what would do.
    """
    return _great_expectations(load_suites(Path(folder) if folder else None))


class ShippedSuites:
    """What judges by the suites that are shipped, understood beside whatever else is done.

    They are known to be sound: nobody has to wait until Great Expectations says so.

    `understand`: what makes a judge of suites.
    """

    def __init__(self, understand: Callable[[Sequence[Suite]], SuiteJudge] | None = None) -> None:
        self._suites = load_suites(None)
        self._understand = understand or _great_expectations
        self._understood: Future[SuiteJudge] | None = None

    def prepare(self) -> None:
        """Begins to import Great Expectations, in a thread of its own.

        Not sooner than there is work: what else imports much, such as an engine, is done by then.
        """
        self._begun()

    def judge(self, name: str, rows: Sequence[SummaryRow]) -> SuiteResult:
        """What each check of the suite says of the rows."""
        return self._begun().result().judge(name, rows)

    def _begun(self) -> "Future[SuiteJudge]":
        if self._understood is None:
            self._understood = Future()
            # A daemon: Ctrl-C does not wait for an import.
            Thread(target=self._fill, args=(self._understood,), daemon=True).start()
        return self._understood

    def _fill(self, understood: "Future[SuiteJudge]") -> None:
        try:
            understood.set_result(self._understand(self._suites))
        except BaseException as error:  # noqa: BLE001 - it is raised where the judge is asked
            understood.set_exception(error)


def _great_expectations(suites: Sequence[Suite]) -> SuiteJudge:
    # It takes seconds to import: only who judges pays for it, and no typing error waits for it.
    from shardaudit.adapters.quality import Quality as GreatExpectations  # noqa: PLC0415

    return GreatExpectations(suites)
