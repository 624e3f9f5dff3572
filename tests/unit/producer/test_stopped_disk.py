"""A real disk that takes nothing: what is dropped is counted, and nothing is left behind."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from shardaudit.producer.trace_folder import DiskFolder
from shardaudit.producer.trace_log import TraceLog
from tests.bench.producer_day import a_day, filed, full, stopped
from tests.unit.producer.puts import QUICK, TELLER, traces, wait_until

DISKS = {"no folder": stopped, "full": lambda _folder: full()}
Disk = Callable[[Path], AbstractContextManager[None]]


def with_50_traces(folder: Path) -> TraceLog:
    log = TraceLog(DiskFolder(str(folder)), TELLER, replace(QUICK, queued=100, patience_s=0.2))
    log.add(traces(0, 50))
    assert log.flush()
    return log


@pytest.mark.parametrize("disk", DISKS.values(), ids=DISKS)
def test_drops_are_exact_when_the_disk_takes_files_again(disk: Disk, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    log = with_50_traces(folder)
    with disk(folder):
        log.add(traces(50, 50))
        assert not log.flush()
        wait_until(lambda: len(log._queue) == 0)  # noqa: SLF001 - they are in the file that fails
        log.add(traces(100, 1000))
    assert log.flush(5)
    assert log.stats[:3] == (200, 900, 0)  # once it is closed, all the rest counts as dropped
    log.close()
    told = filed(folder)
    assert (told.traces, told.gaps, told.is_dense) == (200, 900, True)


@pytest.mark.parametrize("disk", DISKS.values(), ids=DISKS)
def test_all_that_waits_is_dropped_when_the_log_ends_before(disk: Disk, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    log = with_50_traces(folder)
    with disk(folder):
        log.add(traces(50, 1000))
        log.close()
    assert log.stats[:3] == (50, 1000, 0)
    assert filed(folder).traces == 50
    # A part of a file fills a full disk. The thread may be in a last try, where the close gave up.
    wait_until(lambda: not list(folder.glob(".*")))


@pytest.mark.slow
def test_each_record_of_a_day_is_counted_once(tmp_path: Path) -> None:
    day = a_day(tmp_path / "traces", 6.0)
    assert day.is_exact, day
    assert day.filed.gaps + day.filed.traces == day.acknowledged > 0
