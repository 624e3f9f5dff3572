"""Nights: a stream that is audited day by day, and what comes late to it."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.late import audit_with_late
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import Retention
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import AuditReport
from shardaudit.store.published import published_audit
from tests.builders import T0, Line, sequence, shard, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.moved_inputs import move_inputs
from tests.spark.ungated import ungated

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAY_S = 86_400


def audited(
    lake: Lake,
    day: int,
    *,
    since: int | None = None,
    ahead: timedelta = timedelta(0),
    kept: timedelta = DAY,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """The night after a day looks at that day alone; `ahead`: as of a time still to come.

    Input:
        since: the first day that it looks at.
        kept: the stream's retention.
    """
    end = T0 + (day + 1) * DAY
    now = end + HOUR
    lake.ingest(now=now)
    window = Window(T0 + (day if since is None else since) * DAY, end)
    request = AuditRequest(lake.name, lake.stream, window, now + ahead, Retention(kept))
    return audit_with_late(lake.warehouse, request, ungated(), now=now, progress=progress)


def published(lake: Lake, report: AuditReport) -> AuditReport:
    """The same, from the tables."""
    return published_audit(settings_of(lake), lake.name, report.audit_id)


def settings_of(lake: Lake) -> Settings:
    return Settings.model_validate(
        {
            "warehouse": str(lake.folder / "warehouse"),
            "streams": {lake.name: lake.stream.model_dump()},
        }
    )


def of_day(lake: Lake, day: int, *numbers: int) -> None:
    """Messages of a day that landed."""
    seconds = [day * DAY_S + number for number in numbers]
    lake.log(f"day-{day}.jsonl", map(trace_line, seconds))
    lake.land(map(sink_row, seconds))


@dataclass(frozen=True)
class Past:
    """What nights left in a lake's folder, and what the last of them said."""

    folder: Path
    files: dict[Path, tuple[bytes, int]]  # by relative path, with the time of its last change
    report: AuditReport

    @staticmethod
    def of(lake: Lake, report: AuditReport) -> "Past":
        """As it is now."""
        paths = [path for path in lake.folder.rglob("*") if path.is_file()]
        files = {
            path.relative_to(lake.folder): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in paths
        }
        return Past(lake.folder, files, report)

    def repeat(self, lake: Lake) -> None:
        """The same in the folder of another lake: its batches know their inputs by new paths."""
        shutil.rmtree(lake.sink)
        for name, (content, changed_ns) in self.files.items():
            path = lake.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, ns=(changed_ns, changed_ns))
        move_inputs(lake.warehouse, lake.name, old=self.folder, new=lake.folder)


_PASTS: dict[str, Past] = {}


def once(lake: Lake, name: str, nights: Callable[[Lake], AuditReport]) -> AuditReport:
    """What the last of those nights said of a lake that was empty; they pass once a process."""
    assert (lake.settings, [path.name for path in lake.folder.iterdir()]) == ({}, ["sink"])
    if name in _PASTS:
        _PASTS[name].repeat(lake)
    else:
        _PASTS[name] = Past.of(lake, nights(lake))
    return _PASTS[name].report


def sound_days(lake: Lake, days: int) -> AuditReport:
    """The first days: all landed, and one audit looked at them."""

    def nights(lake: Lake) -> AuditReport:
        for day in range(days):
            of_day(lake, day, *range(0, DAY_S, 3600))
        return audited(lake, days - 1, since=0)

    report = once(lake, f"{days} sound days", nights)
    assert report.late == ()
    return report


def on_second_shard(lake: Lake, day: int) -> None:
    """Messages of each hour of a day that landed there."""
    fields = [
        (day * DAY_S + n, {"shard_id": shard(1), "message_id": f"second-{day}-{n}"})
        for n in range(0, DAY_S, 3600)
    ]
    lake.log(f"second-{day}.jsonl", [trace_line(n, **of) for n, of in fields])
    lake.land([sink_row(n, **of) for n, of in fields])


def on_stream(number: int, day: float) -> dict[str, str]:
    """The number that Kinesis gives then."""
    return {"sequence_number": sequence(int(day * DAY_S) + number % 60)}


def buffered(number: int, day: float) -> Line:
    """A message of the first day that was put on the stream on another."""
    acked_at = (T0 + day * DAY).isoformat()
    return trace_line(number, acked_at=acked_at, **on_stream(number, day))


def landed(number: int, day: float) -> Line:
    return sink_row(number, landed_at=T0 + day * DAY, **on_stream(number, day))


def told(report: AuditReport) -> list[tuple[Window, Verdict, int]]:
    return [
        (Window(late.window_start, late.window_end), late.verdict, late.missing)
        for late in report.late
    ]
