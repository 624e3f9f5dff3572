"""A log loses nothing in silence: files that cannot be written, closes, forks, kills."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shardaudit.producer.trace_folder import DiskFolder
from shardaudit.producer.trace_log import LogLimits, TraceLog
from shardaudit.producer.trace_queue import FULL, TraceColumns
from tests.unit.producer.puts import (
    QUICK,
    TELLER,
    StubbornFolder,
    logged,
    python,
    traces,
    wait_until,
)


def test_all_is_in_a_file_when_flushed() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add(traces(0, 3))
    assert log.flush()
    assert log.stats == (3, 0, 0, sum(map(len, folder.files.values())))
    log.add(traces(3, 2))
    assert log.flush()
    log.close()
    lines = folder.lines()
    assert [line["message_id"] for line in lines] == ["m0", "m1", "m2", "m3", "m4"]
    assert [line["session_seq"] for line in lines] == [0, 1, 2, 3, 4]
    assert len({line["session"] for line in lines}) == 1
    assert len(folder.files) == 3  # the last has the end's health alone


def test_what_a_killed_process_of_the_same_producer_left_is_deleted(tmp_path: Path) -> None:
    """Not what is young, and may be another living process', or is of another producer."""
    session = uuid.uuid4().hex

    def left(producer: str, *, age_s: float) -> Path:
        path = tmp_path / f".traces-{producer}-{session}-000007-0a1b2c3d.jsonl.zst.part"
        path.write_bytes(b"half of a fi")
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age_s))
        return path

    mine = TELLER.producer_id
    old, *others = left(mine, age_s=4000), left(f"{mine}-2", age_s=4000), left("x", age_s=4000)
    session = uuid.uuid4().hex
    others.append(left(mine, age_s=3000))
    log = TraceLog(DiskFolder(str(tmp_path)), TELLER, QUICK)
    log.add(traces(0, 1))
    assert log.flush()
    assert not old.exists()
    assert all(path.exists() for path in others)
    old = left(mine, age_s=4000)  # it looks once
    log.add(traces(1, 1))
    log.close()
    assert old.exists()


def test_nothing_is_written_when_nothing_was_acknowledged() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    assert log.flush()
    log.close()
    log.close()
    assert (folder.files, log.stats) == ({}, (0, 0, 0, 0))


@pytest.mark.parametrize("limits", [replace(QUICK, file_bytes=1), replace(QUICK, file_age_s=0)])
def test_file_ends_when_it_is_large_or_old(limits: LogLimits) -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, limits)
    for at in range(3):
        log.add(traces(1000 * at, 1000))  # zstd gives nothing of less than 128 KiB
        wait_until(lambda: log.stats.written == 1000 * (at + 1))  # noqa: B023 - asked at once
    assert len(folder.files) == 3
    log.close()


def test_drops_are_counted_exactly_when_the_disk_is_stopped_and_comes_back() -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, queued=10))
    log.add(traces(0, 5))
    assert not log.flush(0.02)
    wait_until(lambda: folder.tries > 1)
    for at in range(5, 105, 10):
        log.add(traces(at, 10))
    assert log.stats[:3] == (0, 90, 15)
    folder.is_stopped = False
    assert log.flush()
    log.add(traces(105))
    log.close()
    lines = folder.lines()
    [gap] = [line for line in lines if "gap" in line]
    assert (gap["gap"], gap["session_seq"], gap["reason"]) == (90, 15, FULL)
    assert [line["session_seq"] for line in lines] == [*range(16), 105]
    assert log.stats[:3] == (16, 90, 0)


def test_what_could_not_be_written_is_dropped_when_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, patience_s=0.1))
    log.add(traces(0, 7))
    assert not log.flush()
    log.close()
    log.close()
    assert log.stats == (0, 7, 0, 0)
    log.add(traces(7))
    log.add(traces(8))
    assert log.stats == (0, 9, 0, 0)
    assert len([each for each in caplog.messages if "is closed" in each]) == 1


def test_log_is_whole_when_the_disk_comes_back_while_it_closes() -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, queued=4))
    log.add(traces(0, 2))
    assert not log.flush(0.02)
    log.add(traces(2, 6))
    folder.is_stopped = False
    log.close()
    assert [line["session_seq"] for line in folder.lines()] == [0, 1, 2, 3, 4, 5, 6]
    assert log.stats[:3] == (6, 2, 0)


def test_adding_never_waits_when_a_write_hangs(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    class Hanging:
        def write(self, _name: str, content: bytes) -> None:
            with fifo.open("wb") as pipe:  # until somebody reads
                pipe.write(content)

    log = TraceLog(Hanging(), TELLER, replace(QUICK, queued=10, patience_s=0.05))
    log.add(traces(0))
    assert not log.flush()
    log.add(traces(1, 100))
    log.close()
    assert log.stats == (0, 101, 0, 0)
    assert fifo.read_bytes()  # lets the thread go


HEAD = """
import os, signal, sys
from shardaudit.producer.trace_folder import DiskFolder
from shardaudit.producer.trace_log import TraceLog
from tests.unit.producer.puts import QUICK, TELLER, traces
log = TraceLog(DiskFolder(sys.argv[1]), TELLER, QUICK)
"""
ENDS = {
    "exit": "sys.exit()",
    "term": (  # as docs/producers.md has it
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        "os.kill(os.getpid(), signal.SIGTERM); signal.pause()"
    ),
    "error": "raise ValueError",
    "kill": "log.flush(); log.add(traces(3, 2)); os.kill(os.getpid(), signal.SIGKILL)",
    "fork": (
        "pid = os.fork(); log.add(traces(10, 2) if pid else traces(20, 2));\n"
        "pid and os.waitpid(pid, 0)"
    ),
}


def left_by(end: str, folder: Path) -> list[tuple[str, int, str]]:
    process = python(HEAD + "log.add(traces(0, 3))\n" + ENDS[end], str(folder))
    assert process.returncode == {"kill": -signal.SIGKILL, "error": 1}.get(end, 0), process.stderr
    assert [file for file in folder.iterdir() if file.name.startswith(".")] == []
    return [(line["session"], line["session_seq"], line["message_id"]) for line in logged(folder)]


@pytest.mark.parametrize("end", ["exit", "term", "error", "kill"])
def test_what_was_added_or_flushed_is_there_when_a_process_ends(end: str, tmp_path: Path) -> None:
    found = left_by(end, tmp_path)
    assert [(seq, name) for _, seq, name in found] == [(0, "m0"), (1, "m1"), (2, "m2")]


def test_parent_and_child_write_sessions_of_their_own_when_forked(tmp_path: Path) -> None:
    sessions: dict[str, list[tuple[int, str]]] = {}
    for session, seq, name in left_by("fork", tmp_path):
        sessions.setdefault(session, []).append((seq, name))
    assert sorted(sessions.values()) == [
        [(0, "m0"), (1, "m1"), (2, "m2"), (3, "m10"), (4, "m11")],
        [(0, "m20"), (1, "m21")],
    ]


def test_file_has_no_name_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(os.listdir(tmp_path / "logs")))  # noqa: PTH208 - names
    DiskFolder(f"file://{tmp_path}/logs").write("a.gz", b"x")
    assert seen == [[".a.gz.part"]]
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["a.gz"]


@pytest.mark.parametrize("is_asked_first", [True, False])
def test_flush_tries_at_once_again_when_the_pauses_had_grown(*, is_asked_first: bool) -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, pause_s=60, file_age_s=0, patience_s=2))
    log.add(traces(0))
    if is_asked_first:
        assert not log.flush(0.02)
    wait_until(lambda: folder.tries > 0)
    folder.is_stopped = False
    assert log.flush()
    log.close()


RESTORED = """
TraceLog.begin_in_child = lambda _: None  # as of a snapshot: the process cannot know
pid = os.fork()
log.add(traces(bool(pid)))
log.close()
pid and os.waitpid(pid, 0)
"""


def test_processes_have_sessions_of_their_own_when_they_come_of_one_snapshot(
    tmp_path: Path,
) -> None:
    process = python(HEAD + RESTORED, str(tmp_path))
    assert process.returncode == 0, process.stderr
    lines = logged(tmp_path)
    assert sorted(line["message_id"] for line in lines) == ["m0", "m1"]
    assert len({line["session"] for line in lines}) == 2


def test_file_has_a_name_of_its_own_and_keeps_it_when_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: same)
    names: list[str] = []

    class Third(StubbornFolder):
        def write(self, name: str, content: bytes) -> None:
            names.append(name)
            self.is_stopped = len(names) < 3
            super().write(name, content)

    for _ in range(2):
        log = TraceLog(Third(), TELLER, QUICK)
        log.add(traces(0))
        assert log.flush()
        log.close()
    assert (len(names), len(set(names[:3])), len(set(names[2:]))) == (6, 1, 4)


def test_folder_stays_where_it_was_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    folder = DiskFolder("logs")
    monkeypatch.chdir(tmp_path / "other")
    folder.write("a", b"x")
    assert (tmp_path / "logs" / "a").exists()


def test_close_tries_soon_again_when_the_pauses_had_grown() -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, patience_s=5))
    log.add(traces(0))
    assert not log.flush(0.2)
    threading.Timer(0.1, lambda: setattr(folder, "is_stopped", False)).start()
    log.close()
    assert log.stats[:3] == (1, 0, 0)


@pytest.mark.parametrize("end", ["flush", "close"])
def test_signal_waits_for_no_trace_that_it_interrupted(end: str) -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    written: list[int] = []

    def interrupted() -> Iterator[TraceColumns]:
        yield from traces(0, 3)
        getattr(log, end)()  # as a handler of SIGTERM does, in the thread that adds
        written.append(len(folder.lines()))
        yield from traces(3)

    log.add(traces(9))  # its thread is there
    log.add(interrupted())
    log.close()
    assert written == [1]  # all of a call is there, or nothing
    assert log.stats[:3] == ((5, 0, 0) if end == "flush" else (1, 4, 0))
