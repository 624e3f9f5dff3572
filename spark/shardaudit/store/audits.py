"""Audits, gates, watches as they were published: read by delta-rs, without Spark.

Only reads, and only as much as is asked for: a week of 1,800 shards has 18 million cells.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.model.audit_id import StoredAudit, late_of, newest_audit
from shardaudit.model.config.eras import Eras, newest_eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.gate import CheckResult, GateState, Severity, SuiteResult
from shardaudit.model.tables.audit_tables import (
    AUDITS,
    BATCHES,
    CELLS,
    GATES,
    QUARANTINE,
    WATERMARKS,
)
from shardaudit.model.tables.table import Table
from shardaudit.model.tables.watch_tables import POSITIONS, SHARDS
from shardaudit.model.verdict import AuditStatus, BatchState, Verdict
from shardaudit.model.waiting import waiting_from_json
from shardaudit.model.watermark import Hold, holds_from_json
from shardaudit.report.summary import GivenUp, LateAudit, WaitingTime

CELL_SUMS = (
    *("sent", "landed", "matched", "missing", "pending"),
    *("duplicated", "extra_rows", "untraced", "moved"),
)
# What two machines' clocks differ by at most.
CLOCKS_DIFFER = timedelta(hours=1)
# A watch is every 15 minutes; the wider spans are for after a break.
_LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=3660))


@dataclass(frozen=True, slots=True)
class ShardSums:
    """A shard's cells in one audit: the sums of `CELL_SUMS`, and the verdicts that they have."""

    shard_id: str
    verdicts: frozenset[Verdict]
    sums: dict[str, int]


def of_stream(stream: str) -> pc.Expression:
    """The rows of a stream, in any table."""
    return pc.field("stream") == stream


def published_of(stream: str) -> pc.Expression:
    """Of AUDITS the stream's that were published."""
    return of_stream(stream) & (pc.field("status") == AuditStatus.PUBLISHED)


def done_batches(stream: str) -> pc.Expression:
    """Of BATCHES the stream's that are finished."""
    return of_stream(stream) & (pc.field("state") == BatchState.DONE)


def read_eras(settings: Settings, stream: str) -> Eras:
    """How the stream's ids are put into cells; as configured where nothing was ingested yet."""
    found = newest_eras(read_rows(settings, BATCHES, where=pc.field("stream") == stream))
    return found or Eras(settings.stream(stream).cell_shape)


def audit_row(settings: Settings, audit_id: str) -> Row | None:
    """The row of the audit, by the names of the audits table; None when there is none."""
    found = read_rows(settings, AUDITS, where=pc.field("audit_id") == audit_id)
    return found[0] if found else None


def late_audits(rows: Iterable[Row], audit_id: str) -> tuple[LateAudit, ...]:
    """Of rows of AUDITS those that an audit ran for what came late before its window."""
    mine = (row for row in rows if late_of(row) == audit_id)
    return tuple(_late(row) for row in sorted(mine, key=lambda row: row["window_start"]))


def _late(row: Row) -> LateAudit:
    return LateAudit(
        row["audit_id"],
        row["window_start"],
        row["window_end"],
        status=row["status"],
        verdict=Verdict(row["verdict"] or Verdict.INCONCLUSIVE),
        missing=row["missing"] or 0,
    )


def waiting_time(row: StoredAudit) -> WaitingTime | None:
    """What an audit, a row of AUDITS, left for the next ones; None: nothing."""
    waiting = waiting_from_json(row["waiting"])
    if waiting.since is None:
        return None
    kept = timedelta(seconds=row["retention_s"] or 0)
    is_overdue = waiting.is_overdue(as_of=row["as_of"], kept=kept)
    return WaitingTime(waiting.length, waiting.spans[0].window.start, waiting.since, is_overdue)


def given_up_spans(row: StoredAudit) -> tuple[GivenUp, ...]:
    """What an audit, a row of AUDITS, and the next ones do not look at any more."""
    kept = timedelta(seconds=row["retention_s"] or 0)
    return tuple(
        GivenUp(span.start, span.end, failed_at, is_red=row["as_of"] - failed_at < kept)
        for span, failed_at in waiting_from_json(row["waiting"]).given_up
    )


def shard_sums(settings: Settings, audit_id: str) -> list[ShardSums]:
    """One value per shard of the audit."""
    batches = _tables(settings).batches(
        CELLS,
        columns=["shard_id", "verdict", *CELL_SUMS],
        where=pc.field("audit_id") == audit_id,
    )
    partial = [_summed(pa.Table.from_batches([batch])) for batch in batches]
    by_shard: dict[str, list[Row]] = {}
    for row in _summed(pa.concat_tables(partial)).to_pylist() if partial else []:
        by_shard.setdefault(row["shard_id"], []).append(row)
    return [
        ShardSums(
            shard_id=shard_id,
            verdicts=frozenset(Verdict(row["verdict"]) for row in rows),
            sums={name: sum(row[name] for row in rows) for name in CELL_SUMS},
        )
        for shard_id, rows in by_shard.items()
    ]


def shard_holds(settings: Settings, stream: str) -> dict[str, tuple[Hold, ...]]:
    """By shard what holds its watermark, as of the last audit that was counted."""
    rows = read_rows(settings, WATERMARKS, where=pc.field("stream") == stream)
    return {row["shard_id"]: holds_from_json(row["holds"]) for row in rows}


def gate_results(settings: Settings, audit_id: str) -> list[SuiteResult]:
    """What the suites said of the audit, by name; none when it did not come to its gates."""
    return _results(read_rows(settings, GATES, where=pc.field("audit_id") == audit_id))


def plan_gate_results(settings: Settings, plan_id: str) -> list[SuiteResult]:
    """What they said of the newest audit that was to verify the backfill."""
    rows = read_rows(settings, GATES, where=pc.field("plan_id") == plan_id)
    newest = max((row["judged_at"] for row in rows), default=None)
    return _results([row for row in rows if row["judged_at"] == newest])


def is_ahead(name: str, now: datetime) -> pc.Expression:
    """Whether a time of a row is one that has not come yet: a clock was wrong, or so it was asked.

    Such an audit or watch would be the newest one for as long as its clock was ahead.
    """
    return pc.field(name) > pc.scalar(now + CLOCKS_DIFFER)


def watch_since(settings: Settings, stream: str, *, since: datetime, now: datetime) -> list[Row]:
    """The stream's last watch, one row per shard; none when it is not that recent."""
    watched = (pc.field("stream") == stream) & pc.field("state").is_valid()
    recent = watched & (pc.field("observed_at") >= pc.scalar(since))
    recent &= ~is_ahead("observed_at", now)
    names = ["stream", "state", "observed_at"]
    found = _tables(settings).columns(SHARDS, names=names, where=recent)
    if not found:
        return []
    is_last = pc.field("observed_at") == pc.max(found["observed_at"])
    return read_rows(settings, SHARDS, where=watched & is_last)


def seen_positions(
    settings: Settings, stream: str, *, since: datetime, now: datetime
) -> dict[str, datetime]:
    """By source when a watch last kept a position of it, of those since then."""
    seen = of_stream(stream) & (pc.field("observed_at") >= pc.scalar(since))
    seen &= ~is_ahead("observed_at", now)
    names = ["stream", "source", "observed_at"]
    found = _tables(settings).columns(POSITIONS, names=names, where=seen)
    last = found.group_by("source").aggregate([("observed_at", "max")]).to_pylist() if found else []
    return {row["source"]: row["observed_at_max"] for row in last}


def quarantined_so_far(settings: Settings, stream: str) -> int:
    """How many lines and files of the stream's inputs were set aside so far."""
    counts = _tables(settings).counts(QUARANTINE, by=["stream"], having={"stream": stream})
    return counts.total()


def read_rows(settings: Settings, table: Table, *, where: pc.Expression) -> list[Row]:
    """The rows of a table of the warehouse that meet a condition; none when it was never written.

    Raises:
        WarehouseUnreadableError: the place does not answer.
    """
    return _tables(settings).rows(table, where=where)


def _results(rows: list[Row]) -> list[SuiteResult]:
    return [
        SuiteResult(row["suite"], row["rows"], tuple(map(_check, json.loads(row["results"]))))
        for row in sorted(rows, key=lambda row: str(row["suite"]))
    ]


def _check(stored: Row) -> CheckResult:
    return CheckResult(
        kind=stored["kind"],
        severity=Severity(stored["severity"]),
        state=GateState(stored["state"]),
        sentence=stored["sentence"],
        details=stored["details"],
    )


def _tables(settings: Settings) -> DeltaRs:
    return DeltaRs(settings.warehouse, settings.aws)


def _summed(cells: pa.Table) -> pa.Table:
    """Per shard and verdict, in the input's columns: it can be summed again."""
    key = ["shard_id", "verdict"]
    grouped = cells.group_by(key).aggregate([(name, "sum") for name in CELL_SUMS])
    return grouped.rename_columns([*key, *CELL_SUMS])


def audits_of(settings: Settings, stream: str, *, now: datetime) -> list[Row]:
    """The stream's rows of `audits`, in no order; none as of a time to come."""
    return read_rows(settings, AUDITS, where=of_stream(stream) & ~is_ahead("as_of", now))


def unaudited_notes(settings: Settings, streams: Iterable[str], *, now: datetime) -> list[str]:
    """A sentence for each of the streams of which nothing is known: that none is found, is no news.

    So it is until an audit of it is published.
    """
    return [
        f"nothing is known of {name}: no audit of it was published yet"
        for name in streams
        if newest_audit(audits_of(settings, name, now=now)) is None
    ]


def newest_watch(settings: Settings, stream: str, *, now: datetime) -> list[Row]:
    """The rows of `shards` that the stream's last watch wrote; none when there was no watch."""
    return newest_rows(lambda since: watch_since(settings, stream, since=since, now=now), now=now)


def last_look(settings: Settings, stream: str, *, now: datetime) -> datetime | None:
    """The latest "now" of the stream's watches and published audits; None: there was none."""
    watched = [row["observed_at"] for row in newest_watch(settings, stream, now=now)]
    audits = audits_of(settings, stream, now=now)
    audited = [row["as_of"] for row in audits if row["status"] == AuditStatus.PUBLISHED]
    return max([*watched, *audited], default=None)


def newest_rows(read: Callable[[datetime], list[Row]], *, now: datetime) -> list[Row]:
    """What is read since the nearest time of a few since which there is anything."""
    return next((rows for span in _LOOK_BACK if (rows := read(now - span))), [])
