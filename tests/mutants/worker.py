"""Runs some mutants in one process with one engine; a line of JSON for each on standard output.

Started by `tests.mutants.__main__`: a mutant may end the process.
"""

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from shardaudit.adapters.engine.door import Engine, started
from shardaudit.audit.canary_frames import Canary
from tests import conftest
from tests.mutants.lossy import prepared, said
from tests.mutants.mutations import ROOT, Mutant
from tests.mutants.order import Quickest
from tests.mutants.suites import SELF_CHECK, SUITES, is_audited, stages
from tests.mutants.swap import in_place

PATIENCE_S = 180  # of one test, or one audit


class _TooLong(BaseException):
    """A mutant that does not come to an end."""


def main() -> None:
    """Reads (what to run, mutants) as JSON from standard input."""
    asked = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.environ["CI"] = "1"  # the same examples each time
    os.chdir(ROOT)
    with (
        tempfile.TemporaryDirectory() as scratch,
        started(conftest.engine_settings("embedded"), app="mutants") as engine,
    ):
        lossy = Path(scratch) / "lossy"
        prepared(engine, lossy)
        for values in asked["mutants"]:
            mutant = Mutant(**values)
            out.write(json.dumps({"name": mutant.name, "begun": True}) + "\n")
            out.flush()
            found = _judged(mutant, asked, engine, lossy, Path(scratch))
            out.write(json.dumps({"name": mutant.name, **found}) + "\n")
            out.flush()
    out.flush()
    os._exit(0)


def _judged(
    mutant: Mutant, asked: dict[str, Any], engine: Engine, lossy: Path, scratch: Path
) -> dict[str, object]:
    parts, budget_s = asked["parts"], asked["budget_s"]
    found: dict[str, object] = {}
    with in_place(mutant):
        if "check" in parts and is_audited(mutant.path):
            read_again = mutant.path.startswith(("shardaudit/ingest/", "shardaudit/columns/"))
            try:
                with patience():
                    found["check"] = said(
                        engine, lossy, at=scratch / "copy", is_ingested=not read_again
                    )
            except _TooLong:
                found["check"] = "error too long"
        if "tests" in parts:
            found |= _tested(mutant, engine, budget_s)
    return found


def _tested(mutant: Mutant, engine: Engine, budget_s: float | None) -> dict[str, object]:
    """The test that fails, None when none does; what ran for so long and no more says neither.

    The self-check is off: it is tried apart.
    """
    suite = SUITES[mutant.path]
    checked = nullcontext() if suite == SELF_CHECK else _without_self_check()
    with _one_engine(engine), checked, contextlib.redirect_stdout(io.StringIO()):
        for stage in stages(suite):
            found = _failed(mutant, stage, budget_s)
            if found is not None:
                return found
    return {"killed_by": None}


def _failed(
    mutant: Mutant, stage: tuple[str, ...], budget_s: float | None
) -> dict[str, object] | None:
    """What some of the tests say; None when all pass."""
    quickest = Quickest(mutant.path, budget_s=budget_s, patience=patience)
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--engine", "embedded"]
    # hypothesis is there already
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--tb=no", "--no-header"]
    code = pytest.main([*words, *stage], plugins=[quickest])
    quickest.keep()
    if quickest.failed:
        return {"killed_by": quickest.failed}
    if quickest.is_spent:
        return {"tried_s": budget_s}
    none = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return None if code in none else {"killed_by": f"pytest ended with {code}"}


@contextmanager
def _one_engine(engine: Engine) -> Iterator[None]:
    """The tests get this process's engine instead of one of their own."""

    @contextmanager
    def same(*_: object, **__: object) -> Iterator[Engine]:
        yield engine

    with pytest.MonkeyPatch.context() as patch:
        for module in [m for name, m in sys.modules.items() if name.endswith("tests.conftest")]:
            patch.setattr(module, "started", same)
        patch.setattr("shardaudit.adapters.engine.door.started", same)
        yield


@contextmanager
def _without_self_check() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Canary, "wrongly_judged", lambda *_, **__: [])
        yield


@contextmanager
def patience() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
