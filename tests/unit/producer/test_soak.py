"""A day of a log, without its waits: what it holds does not grow, and what it drops is exact."""

import gc
import json
import logging
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from shardaudit.producer.trace_log import TraceLog
from tests.builders import unpacked_lines
from tests.unit.producer.puts import QUICK, TELLER, let_a_minute_pass, traces

HOURS, MINUTES = 24, 60
A_MINUTE = 20  # traces, but in
IDLE = range(50, 60)  # of each hour
STOPPED = range(20, 30)  # the disk takes nothing: 200 traces, of which
QUEUED = 50  # have room
WAITING = 2 * QUEUED + 2 * A_MINUTE  # at most, with what is in the file that cannot be written
SOME_HOURS = 8  # the least of them: what other threads of the tests hold comes and goes
MOST_GROWTH = 32 * 1024  # bytes, from the first of these hours to the last


@dataclass
class CountingFolder:
    """Keeps what is in the files as numbers, or nothing would show what the log keeps."""

    is_stopped: bool = False
    files: int = 0
    traces: int = 0
    gaps: int = 0
    health: int = 0
    has_more: threading.Event = field(default_factory=threading.Event)

    def write(self, _name: str, content: bytes) -> None:
        if self.is_stopped:
            raise OSError("no space left on device")
        self.files += 1
        for line in map(json.loads, unpacked_lines(content)):
            self._count(line)
        self.has_more.set()

    def _count(self, line: dict[str, object]) -> None:
        if isinstance(line.get("health"), dict):
            self.health += 1
            return
        assert line["session_seq"] == self.traces + self.gaps  # no number is left out
        gap = line.get("gap")
        if isinstance(gap, int):
            self.gaps += gap
        else:
            self.traces += 1


@pytest.fixture
def memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def hour(log: TraceLog, folder: CountingFolder, added: int) -> int:
    """An hour's minutes; how many traces were added until its end."""
    for minute in range(MINUTES):
        folder.is_stopped = minute in STOPPED
        folder.has_more.clear()
        if minute not in IDLE:
            log.add(traces(added, A_MINUTE))
            added += A_MINUTE
        let_a_minute_pass(log)
        if not folder.is_stopped:
            assert folder.has_more.wait(10)
        assert log.stats.queued <= WAITING
    return added


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
def test_nothing_grows_in_a_day_of_rotation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "shardaudit.producer.trace_log")  # pytest keeps each line
    folder, added = CountingFolder(), 0
    log = TraceLog(folder, TELLER, replace(QUICK, queued=QUEUED, look_every_s=0.001))
    files, sizes = [0], []
    for _ in range(HOURS):
        added = hour(log, folder, added)
        assert log.flush()
        files.append(folder.files)
        sizes.append(held())
    log.close()
    assert (folder.traces, folder.gaps) == (log.stats.written, log.stats.dropped)
    assert folder.traces + folder.gaps == added
    assert folder.gaps >= HOURS * (len(STOPPED) * A_MINUTE - WAITING)
    an_hour = [last - first for first, last in pairwise(files)]
    assert MINUTES - len(STOPPED) <= min(an_hour) <= max(an_hour) <= MINUTES + 2
    assert min(sizes[-SOME_HOURS:]) - min(sizes[:SOME_HOURS]) < MOST_GROWTH, sizes
