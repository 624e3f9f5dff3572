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
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from shardaudit.adapters.engine.door import Engine, started
from shardaudit.jobs.canary import Canary
from tests import conftest
from tests.mutants.lossy import prepared, said
from tests.mutants.mutations import ROOT, Mutant
from tests.mutants.suites import SUITES, is_audited
from tests.mutants.swap import in_place

PATIENCE_S = 180  # of one rung of tests, or one audit


class _TooLong(BaseException):
    """A mutant that does not come to an end."""


def main() -> None:
    """Reads (what to run, mutants) as JSON from standard input."""
    asked = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
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
            found = _judged(mutant, asked["parts"], engine, lossy, Path(scratch))
            out.write(json.dumps({"name": mutant.name, **found}) + "\n")
            out.flush()
    out.flush()
    os._exit(0)


def _judged(
    mutant: Mutant, parts: list[str], engine: Engine, lossy: Path, scratch: Path
) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    with in_place(mutant):
        if "check" in parts and is_audited(mutant.path):
            read_again = mutant.path.startswith("shardaudit/ingest/")
            try:
                with _patience():
                    found["check"] = said(
                        engine, lossy, at=scratch / "copy", is_ingested=not read_again
                    )
            except _TooLong:
                found["check"] = "error too long"
        if "tests" in parts:
            found["killed_by"] = _killed_by(mutant, engine)
    return found


def _killed_by(mutant: Mutant, engine: Engine) -> str | None:
    """The tests that fail; None when none does. The self-check is off: it is tried apart."""
    with _one_engine(engine), _without_self_check():
        for rung in SUITES[mutant.path]:
            words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--engine", "embedded"]
            words += [
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
            ]  # hypothesis is there already
            try:
                with _patience(), contextlib.redirect_stdout(io.StringIO()):
                    code = pytest.main([*words, "--tb=no", "--no-header", *rung])
            except _TooLong:
                return "too long"
            if code != pytest.ExitCode.OK:
                return " ".join(rung)
    return None


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
        patch.setattr(Canary, "wrongly_judged", lambda *_: [])
        yield


@contextmanager
def _patience() -> Iterator[None]:
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
