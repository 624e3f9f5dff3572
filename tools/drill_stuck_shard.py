"""`make drill-stuck-shard`: the published incident again, scaled down, time compressed by `as_of`.

One of a few shards stops behind a job that goes on, and nobody acts. The watch of the product runs
on the ledger as it would have been at each time; the table says when it says what (`--out FILE`
writes it). Leaves 1 when the stop is not told within two watches, or a shard that is well is.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rich.text import Text

from shardaudit.cli.command import Reply, Terminal
from shardaudit.cli.session import session
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.verdict import Level
from shardaudit.model.words import length
from shardaudit.report.plain import instant
from shardaudit.simulate.kinesis_stream import simulated_stream
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.watch_report import WatchLine, WatchReport
from tools.drill_scenario import Incident

NAME = "events"
# The stand-in takes any; the user's own must not even be offered to it.
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "drill", "AWS_SECRET_ACCESS_KEY": "drill"}
_EVERY = timedelta(minutes=15)
_HEAD = (
    "since the stop",
    "as of",
    "state",
    "level",
    "told",
    "at most ahead",
    "reads ≤",
    "start by",
)
_AFTER_HOURS = (6, 24, 48, 60, 66, 70, 72, 78, 80, 84, 96, 120, 144, 167, 169)


@dataclass(frozen=True, slots=True)
class Moment:
    """What one watch said. `told`: new notifications; `others`: lines of shards that are well."""

    since_stop: timedelta
    as_of: datetime
    line: WatchLine | None
    told: int
    others: int


def drill(incident: Incident, folder: Path, *, terminal: Terminal) -> list[Moment]:
    """What the watch said at each time, the first hour every quarter."""
    os.environ.update(_CREDENTIALS)
    with kinesis_stand_in() as url:
        settings = _settings(incident, folder, url)
        stream = simulated_stream(url, NAME)
        stream.create(shards=incident.shards, retention=incident.retention)
        progress = terminal.progress(1)
        moments = []
        with session(settings, owner="drill", progress=progress) as warehouse:
            known = incident.starts_at
            for as_of in _times(incident):
                _ingest(warehouse, incident, (known, as_of))
                known = as_of
                report = watch(warehouse, WatchRequest(settings, NAME, as_of)).report
                moments.append(_moment(incident, report))
    return moments


def _times(incident: Incident) -> Iterator[datetime]:
    """The quarters around the stop, then some hours after it."""
    quarter = incident.stops_at.replace(minute=incident.stops_at.minute // 15 * 15)
    yield from (quarter + i * _EVERY for i in range(6))
    yield from (quarter + timedelta(hours=hours) for hours in _AFTER_HOURS)


def _ingest(warehouse: Warehouse, incident: Incident, span: tuple[datetime, datetime]) -> None:
    rows = [
        tuple((cell | {"stream": NAME}).get(name) for name in FINGERPRINTS.names)
        for cell in incident.cells(*span)
    ]
    frame = warehouse.spark.createDataFrame(rows, FINGERPRINTS.ddl)
    warehouse.append(frame, FINGERPRINTS)


def _settings(incident: Incident, folder: Path, url: str) -> Settings:
    return Settings.model_validate(
        {
            "warehouse": str(folder / "warehouse"),
            "aws": {"region": "us-east-1", "endpoints": {"kinesis": url}},
            "spark": {"spark.sql.shuffle.partitions": 2},
            "streams": {
                NAME: {
                    "stream_name": NAME,
                    "retention": incident.retention,
                    "traces": {"path": "traces"},
                    "sink": {"path": "sink"},
                }
            },
        }
    )


def _moment(incident: Incident, report: WatchReport) -> Moment:
    mine = [line for line in report.shards if line.shard_id == incident.stuck_shard]
    return Moment(
        since_stop=report.as_of - incident.stops_at,
        as_of=report.as_of,
        line=mine[0] if mine else None,
        told=report.told,
        others=len(report.shards) - len(mine),
    )


def is_passed(moments: Sequence[Moment]) -> bool:
    """Whether the stop was told within two watches, never forgotten, and nothing else was told."""
    since = [m for m in moments if m.since_stop > timedelta(0)]
    return (
        not any(m.others for m in moments)
        and all(m.line is None for m in moments if m.since_stop <= timedelta(0))
        and any(m.told for m in since[:2])
        and all(m.line is not None for m in since[1:])
        and since[-1].line is not None
        and since[-1].line.level is Level.LOST
    )


def table(moments: Sequence[Moment]) -> str:
    """The moments as a Markdown table."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, moments)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(moment: Moment) -> tuple[str, ...]:
    before = "-" if moment.since_stop < timedelta(0) else ""
    at = (f"{before}{length(moment.since_stop)}", instant(moment.as_of))
    line = moment.line
    if line is None:
        return (*at, "ok", "none", "", "0", "", "")
    return (
        *at,
        line.state.value,
        line.level.value,
        "yes" if moment.told else "",
        f"{line.messages_ahead:,}",
        f"{line.hours_to_read or 0:.1f} h",
        instant(line.start_by),
    )


def main() -> int:
    """Runs the drill at a terminal or in a pipe."""
    parser = argparse.ArgumentParser(description="Replays the incident of the stuck shard.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the table there")
    asked = parser.parse_args()
    terminal = Terminal(as_json=False, debug=False)
    try:
        with tempfile.TemporaryDirectory(prefix="shardaudit-drill-") as folder:
            moments = drill(Incident(), Path(folder), terminal=terminal)
    except ShardauditError as error:
        return terminal.fail(error, error.exit_code)
    text = table(moments)
    if asked.out is not None:
        asked.out.write_text(f"{text}\n", encoding="utf-8")
    passed = is_passed(moments)
    said = "the stop was told in time" if passed else "NOT as it should be"
    reply = Reply(
        document=moments,
        view=Text(f"{text}\n\n{said}", no_wrap=True, overflow="ignore"),
        exit_code=ExitCode.DONE if passed else ExitCode.FAILED,
    )
    return terminal.tell(reply)


if __name__ == "__main__":
    sys.exit(main())
