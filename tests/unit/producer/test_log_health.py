"""A log says once a minute, and at its end, what became of its traces; also when it is idle."""

import json
from dataclasses import replace

from shardaudit.producer.trace_log import TraceLog
from tests.builders import unpacked_lines
from tests.unit.producer.puts import (
    QUICK,
    TELLER,
    StubbornFolder,
    let_a_minute_pass,
    traces,
    wait_until,
)


def told(folder: StubbornFolder) -> list[tuple[int, int, int]]:
    """Of each health line, in their order: written, dropped, queued."""
    lines = [line["health"] for line in folder.lines(health=True)]
    return [(line["written"], line["dropped"], line["queued"]) for line in lines]


def test_health_is_the_last_line_of_a_log() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add([*traces(0, 3), "no id"])
    log.close()
    [content] = folder.files.values()
    last = json.loads(unpacked_lines(content)[-1])
    assert last["health"] == {"written": 3, "dropped": 1, "queued": 0, "bytes": 0, "closed": True}
    assert last["producer_id"] == "p-1"


def test_end_is_told_when_all_was_in_files_before() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add(traces(0, 3))
    assert log.flush()
    size = log.stats.bytes
    log.close()
    flushed, last = folder.lines(health=True)
    told_flushed = {"written": 3, "dropped": 0, "queued": 0, "bytes": 0, "flushed": True}
    assert flushed["health"] == told_flushed
    told_last = {"written": 3, "dropped": 0, "queued": 0, "bytes": size, "closed": True}
    assert last["health"] == told_last


def test_flush_is_told_when_the_minute_had_brought_all_into_files() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add(traces(0, 3))
    let_a_minute_pass(log)
    wait_until(lambda: log.stats.written)
    for idle in (False, True, False):
        assert log.flush()
        if idle:
            let_a_minute_pass(log)
            wait_until(lambda: len(told(folder)) == 3)
    lines = folder.lines(health=True)  # who is killed now has lost nothing
    assert [line["health"].get("flushed") for line in lines] == [None, True, None]
    log.close()


def test_end_is_told_when_nothing_came_after_the_last_minute() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add(traces(0))
    let_a_minute_pass(log)
    wait_until(lambda: log.stats.written)
    log.close()
    assert [line["health"].get("closed") for line in folder.lines(health=True)] == [None, True]


def test_idle_log_tells_once_a_minute() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, replace(QUICK, health_every_s=0.05))
    log.add(traces(0))
    wait_until(lambda: len(told(folder)) >= 4)
    log.close()
    assert set(told(folder)) == {(1, 0, 0)}
    assert len(folder.lines()) == 1
    first, *_, last = folder.lines(health=True)
    assert first["session"] == last["session"]
    assert first["at"] < last["at"]
    assert first["health"]["bytes"] < last["health"]["bytes"]


def test_nothing_is_told_before_the_first_trace() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, replace(QUICK, health_every_s=0))
    assert log.flush()
    log.close()
    assert folder.files == {}


def test_minute_begins_with_the_first_trace() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, replace(QUICK, file_age_s=0))
    let_a_minute_pass(log)
    log.add(traces(0))
    wait_until(lambda: log.stats.written)
    assert told(folder) == []
    log.close()


def test_file_ends_with_the_minute_though_it_is_not_old() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, QUICK)
    log.add(traces(0))
    let_a_minute_pass(log)
    wait_until(lambda: log.stats.written)
    assert told(folder) == [(1, 0, 0)]
    log.close()


def test_health_is_told_as_soon_as_a_stopped_disk_takes_files_again() -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, queued=10))
    log.add(traces(0, 5))
    assert not log.flush(0.01)
    log.add(traces(5, 100))
    let_a_minute_pass(log)
    folder.is_stopped = False
    wait_until(lambda: len(told(folder)) > 1)
    assert told(folder) == [(5, 0, 0), (15, 90, 0)]  # of the flush, and since
    log.close()
    assert [line.get("gap") for line in folder.lines()] == [None] * 15 + [90]


def test_health_adds_up_to_all_that_was_numbered_while_some_wait() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, replace(QUICK, queued=4))
    log.add(traces(0, 2))
    assert log.flush()
    log._queue.add([*traces(2, 9), "no id"])  # noqa: SLF001 - not taken yet
    assert log._health() == {"written": 2, "dropped": 6, "queued": 4, "bytes": log.stats.bytes}  # noqa: SLF001 - at this moment
    log.close()


def test_bytes_are_those_of_the_files_before() -> None:
    folder = StubbornFolder()
    log = TraceLog(folder, TELLER, replace(QUICK, health_every_s=0))
    log.add(traces(0))
    log.close()
    sizes = [len(content) for content in folder.files.values()]
    told_bytes = [line["health"]["bytes"] for line in folder.lines(health=True)]
    assert told_bytes == [sum(sizes[:at]) for at in range(len(sizes))]
