"""Ctrl-C, a full disk, two at once: the warehouse stays as it was, and nobody holds it."""

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardaudit.model.config.settings import load_settings
from shardaudit.store.lock import warehouse_lock
from tests.engines.commands import AS_OF, STREAM, WINDOW, of, run, without_java
from tests.faults.forks import Forks

FAILED, RETRY = 1, 75


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many messages that an audit takes some seconds."""
    folder = tmp_path_factory.mktemp("lake") / "events"
    made = ["simulate", "files", "--out", str(folder), "--messages", "400000", "--fault=lost=40"]
    assert run(made, without_java(folder.parent)).returncode == 0
    return folder


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """A process that has imported what an audit imports: for the audits that nobody disturbs."""
    with Forks() as forks:
        yield forks


@pytest.fixture
def copy(lake: Path, tmp_path: Path) -> Path:
    """The same for one test, never audited."""
    shutil.copytree(lake, tmp_path / "events", ignore=shutil.ignore_patterns("warehouse"))
    return tmp_path / "events"


def audit_of(lake: Path) -> list[str]:
    words = of(lake, "audit", *STREAM, *WINDOW, *AS_OF, "--json")
    return [sys.executable, "-m", "shardaudit.cli.main", *words]


def started(lake: Path, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        audit_of(lake),
        env=without_java(lake.parent) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_said(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f"the audit ended without {word!r}")


def found(forks: Forks, lake: Path) -> int:
    """How many messages the next audit finds missing."""
    line = of(lake, "audit", *STREAM, *WINDOW, *AS_OF, "--json")
    done = forks.run(line, without_java(lake.parent), said=lake.parent / "said")
    assert done.returncode == 0, done.stderr[-2000:]
    return int(json.loads(done.stdout)["counts"]["missing"])


@pytest.mark.parametrize(
    "stage",
    [
        *(pytest.param(s, marks=pytest.mark.drill) for s in ("ingest traces", "ingest sink")),
        "compare",
    ],
)
def test_ctrl_c_ends_the_query_at_once_and_the_next_run_goes_on(
    forks: Forks, copy: Path, stage: str
) -> None:
    process = started(copy)
    until_said(process, stage)
    time.sleep(0.2)  # into the stage
    interrupted_at = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == RETRY, said
    assert time.monotonic() - interrupted_at < 5
    assert "interrupted" in said
    assert found(forks, copy) == 40


@pytest.mark.parametrize(
    "ending",
    [
        [signal.SIGTERM],
        pytest.param([signal.SIGINT, signal.SIGINT], marks=pytest.mark.drill),
    ],
)
def test_nothing_is_left_when_it_is_told_to_end(
    forks: Forks, copy: Path, ending: list[signal.Signals]
) -> None:
    temporary = copy.parent / "temporary"
    temporary.mkdir()
    process = started(copy, TMPDIR=str(temporary))
    until_said(process, "ingest traces")
    for number in ending:
        time.sleep(0.02)
        process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == RETRY, said
    assert said.splitlines()[-1] == "error: interrupted"
    assert list(temporary.iterdir()) == []
    assert found(forks, copy) == 40


def test_next_run_removes_what_a_killed_one_left(copy: Path) -> None:
    temporary = copy.parent / "temporary"
    temporary.mkdir()
    process = started(copy, TMPDIR=str(temporary))
    until_said(process, "ingest traces")
    process.kill()
    process.communicate(timeout=30)
    assert list(temporary.iterdir())
    after = started(copy, TMPDIR=str(temporary))
    _, said = after.communicate(timeout=120)
    assert after.returncode == 0, said
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "limit",
    [2**14, *(pytest.param(2**n, marks=pytest.mark.drill) for n in (12, 16, 18, 20))],
)
def test_full_disk_fails_aloud_and_the_next_run_goes_on(
    forks: Forks, copy: Path, limit: int
) -> None:
    """A file system that takes no more of a file, as soon as one is that large."""
    process = started(copy)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
    _, said = process.communicate(timeout=60)
    assert process.returncode in {FAILED, RETRY}, said
    assert "File too large" in said.splitlines()[-1]
    assert found(forks, copy) == 40


def test_second_audit_waits_for_the_first_and_both_find_the_same(copy: Path) -> None:
    first = started(copy)
    until_said(first, "ingest traces")
    first.send_signal(signal.SIGSTOP)  # or it might be done before the second has begun
    second = started(copy)
    until_said(second, "waits for audit events (process")
    first.send_signal(signal.SIGCONT)
    for process in (first, second):
        printed, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert json.loads(printed)["counts"]["missing"] == 40


def test_ctrl_c_ends_the_wait_at_once(forks: Forks, copy: Path) -> None:
    with warehouse_lock(load_settings(copy / "shardaudit.toml"), owner="audit orders"):
        process = started(copy)
        until_said(process, "waits for audit orders (process")
        interrupted_at = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == RETRY
    assert time.monotonic() - interrupted_at < 5
    assert said.splitlines()[-1] == "error: interrupted"
    assert found(forks, copy) == 40
