"""The thread that writes a log: what fails around it ends neither the log nor the producer."""

import logging
import threading
from dataclasses import replace

import pytest

from shardaudit.producer.packed_lines import PackedLines
from shardaudit.producer.trace_log import TraceLog
from tests.unit.producer.puts import (
    QUICK,
    TELLER,
    RaisingHandler,
    StubbornFolder,
    traces,
    wait_until,
)


def test_log_goes_on_when_logging_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [RaisingHandler()])
    log = TraceLog(folder := StubbornFolder(is_stopped=True), TELLER, replace(QUICK, queued=4))
    log.add(traces(0, 9))
    assert not log.flush(0.02)
    wait_until(lambda: folder.tries > 1)
    folder.is_stopped = False
    assert log.flush()
    log.close()  # tells what was dropped
    log.add(traces(9))  # tells that it is closed
    assert log.stats[:3] == (4, 6, 0)


def test_log_goes_on_with_the_next_trace_when_an_error_ended_its_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    with monkeypatch.context() as broken:
        broken.setattr(PackedLines, "content", lambda _: 1 / 0)
        log.add(traces(0))
        assert not log.flush(0.2)
    assert log.stats == (0, 1, 0, 0)
    log.add(traces(1))
    assert log.flush()
    log.close()
    assert [line["session_seq"] for line in folder.lines()] == [1]
    assert log.stats[:3] == (1, 1, 0)


@pytest.mark.parametrize("has_had_one", [True, False])
def test_close_writes_itself_when_no_thread_can_be_had(
    *, has_had_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")  # Python 3.12's

    log = TraceLog(folder := StubbornFolder(), TELLER, QUICK)
    if has_had_one:
        with monkeypatch.context() as broken:
            broken.setattr(PackedLines, "content", lambda _: 1 / 0)
            log.add(traces(0, 2))
            assert not log.flush(0.2)
    monkeypatch.setattr(threading.Thread, "start", refused)
    log.add(traces(2, 3))
    assert not log.flush()
    log.close()
    lost = 2 * has_had_one
    assert log.stats[:3] == (3, lost, 0)
    assert [line["session_seq"] for line in folder.lines()] == [lost, lost + 1, lost + 2]
    assert folder.lines(health=True)[-1]["health"]["closed"]


def test_file_is_tried_again_when_a_client_would_end_the_thread() -> None:
    class Exiting(StubbornFolder):
        def write(self, name: str, content: bytes) -> None:
            if not self.tries:
                self.tries = 1
                raise SystemExit
            super().write(name, content)

    log = TraceLog(folder := Exiting(), TELLER, QUICK)
    log.add(traces(0))
    assert log.flush()
    log.close()
    assert [line["message_id"] for line in folder.lines()] == ["m0"]
