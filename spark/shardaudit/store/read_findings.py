"""Reads findings and gaps for people, without Spark: a list must not wait for a JVM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.adapters.lake.table_files import table_files
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS, TRANSITIONS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import LIVE, STANDING, Cause, Kind, MissingIds, State
from shardaudit.model.window import EPOCH, Window
from shardaudit.store.audits import published_of, read_rows
from shardaudit.store.cell_grid import (
    ALL_SHARDS,
    Segment,
    ShardRange,
    audit_spans,
    newest_segments,
)
from shardaudit.store.cells import field_within, of_shards
from shardaudit.store.found.finding_counts import counted_findings, sums_of
from shardaudit.store.found.first_rows import Search, Searched, first_rows, is_among, rows_in_part

FindingValues = Mapping[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says

_ORDER = ("recoverable_until", "stream", "shard_id", "message_id", "kind")


@dataclass(frozen=True, slots=True)
class WantedFindings:
    """Which findings: columns with their values, by shard, by the time of sending, by id.

    A finding without a time of sending (untraced) is in each window; `part` is in the message id.
    """

    values: Mapping[str, str]
    shards: ShardRange = ALL_SHARDS
    sent: Window | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """The first rows of a list, by the names of the findings table, and how long it is.

    `is_whole`: no others come before these; else they are the first of those that were looked at.
    `is_counted`: it is no longer than `total`.
    """

    rows: tuple[FindingValues, ...]
    total: int
    is_whole: bool = True
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class OpenCount:
    """Findings of one stream and kind that are not settled, and when the first of them is gone."""

    stream: str
    kind: str
    ids: int
    deadline: datetime | None


def read_findings(
    settings: Settings, wanted: WantedFindings, *, limit: int, most_read: int | None = None
) -> Findings:
    """The first findings of those that are wanted, the soonest `recoverable_until` first.

    Input:
        most_read: how many may be looked at; None: all of them.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    counted = counted_findings(DeltaRs(settings.warehouse, settings.aws))
    of_kind = of_shards(wanted.shards) & _having(wanted)
    sums = [(one.file, *one.within(of_kind)) for one in counted]
    files = [Searched(file, deadline) for file, ids, deadline in sums if ids]
    # What is asked about: the list may be long.
    names = [*wanted.values, "shard_id", "message_id", "sent_at"]
    search = Search(
        _where(wanted), names, _ORDER, "message_id", limit, near=_sent(wanted), most_read=most_read
    )
    found = first_rows(files, search, FINDINGS.names)
    if wanted.sent is None and not wanted.part:
        total = sum(ids for _, ids, _ in sums)
        return Findings(tuple(found.rows), total, found.is_whole)
    return Findings(tuple(found.rows), found.matched, found.is_whole, found.saw_all)


def findings_bytes(settings: Settings) -> int:
    """The size of the findings' files.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    return DeltaRs(settings.warehouse, settings.aws).size_bytes(FINDINGS)


def each_finding(settings: Settings, wanted: WantedFindings) -> Iterator[FindingValues]:
    """All findings that are wanted, in no order, a part in memory at a time."""
    tables = DeltaRs(settings.warehouse, settings.aws)
    yield from tables.found(FINDINGS, where=_where(wanted))


def transitions_of(
    settings: Settings,
    stream: str,
    findings: Sequence[FindingValues],
    *,
    most_read: int | None = None,
) -> list[FindingValues] | None:
    """What happened to these findings, in no order. None: too much is to be looked through.

    Input:
        most_read: how many transitions may be looked at; None: all of them.
    """
    tables = DeltaRs(settings.warehouse, settings.aws)
    mine = (pc.field("stream") == stream) & is_among(
        "message_id", {row["message_id"] for row in findings}
    )
    files = table_files(tables, TRANSITIONS)
    if not findings or not files:
        return []
    if most_read is not None and not tables.is_within(TRANSITIONS, rows=most_read):
        opened = min(row["opened_at"] or EPOCH for row in findings)
        files = table_files(tables, TRANSITIONS, where=pc.field("changed_at") >= pc.scalar(opened))
        if sum(file.num_rows for file in files) > most_read:
            return None
    return [
        row
        for file in files
        for part in file.row_groups()
        if any(rows_in_part(part, mine, ["stream", "message_id"]))
        for row in rows_in_part(part, mine, TRANSITIONS.names)
    ]


def missing_of_audit(settings: Settings, audit: Row) -> list[MissingIds]:
    """What is missing where the audit, a row of AUDITS, was the newest to look, or to write."""
    segments = _newest_of(settings, audit)
    wrote = pc.field("last_audit_id") == audit["audit_id"]
    stands = (pc.field("stream") == audit["stream"]) & pc.field("state").isin(STANDING)
    is_missing = pc.field("kind") == Kind.MISSING.value
    # A message that counts in the window may say that it was sent before.
    wanted = stands & is_missing & (wrote | _within("sent_at", segments))
    key = ["shard_id", "cause", "state"]
    names = ["stream", "last_audit_id", "sent_at", "kind", *key, "recoverable_until"]
    findings = DeltaRs(settings.warehouse, settings.aws).columns(
        FINDINGS, names=names, where=wanted
    )
    grouped = [] if findings is None else _grouped(findings, key, of_each=[([], "count_all")])
    in_gaps = stands & (wrote | _within("bucket_start", segments))
    return [
        MissingIds(
            shard_id=row["shard_id"],
            cause=Cause(row["cause"]),
            state=State(row["state"]),
            ids=row["count_all"] if (gaps := row.get("count_count", 0)) == 0 else row["count_sum"],
            recoverable_until=row["recoverable_until_min"],
            gaps=gaps,
        )
        for row in (*grouped, *_gaps(settings, key, where=in_gaps))
    ]


def _newest_of(settings: Settings, audit: Row) -> list[Segment]:
    """The parts of an audit's window at which none that was published looked later."""
    window = Window(audit["window_start"], audit["window_end"])
    near = (pc.field("window_start") < pc.scalar(window.end)) & (
        pc.field("window_end") > pc.scalar(window.start)
    )
    beside = read_rows(settings, AUDITS, where=published_of(audit["stream"]) & near)
    segments = newest_segments(audit_spans(beside), window)
    return [segment for segment in segments if segment.audit_id == audit["audit_id"]]


def _within(name: str, segments: Sequence[Segment]) -> pc.Expression:
    return reduce(or_, (field_within(name, of.start, of.end) for of in segments), pc.scalar(False))


def open_counts(settings: Settings) -> list[OpenCount]:
    """How many messages have open findings or lie in open gaps, by stream and kind."""
    is_open = pc.field("state").isin(LIVE)
    counted = counted_findings(DeltaRs(settings.warehouse, settings.aws))
    counts = {
        (row["stream"], row["kind"]): (row["ids"], row["first_deadline"])
        for row in sums_of(counted, is_open, by=["stream", "kind"])
    }
    for row in _gaps(settings, ["stream"], where=is_open):
        place = (row["stream"], Kind.MISSING.value)
        ids, until = counts.get(place, (0, row["recoverable_until_min"]))
        counts[place] = (ids + row["count_sum"], min(until, row["recoverable_until_min"]))
    return [OpenCount(*place, *counted) for place, counted in counts.items()]


def open_missing(settings: Settings, stream: str, *, shards: ShardRange) -> OpenCount:
    """The stream's missing messages that are open, of some of its shards, in gaps or not."""
    kind = Kind.MISSING.value
    is_open = (
        (pc.field("stream") == stream) & (pc.field("state") == State.OPEN.value) & of_shards(shards)
    )
    counted = counted_findings(DeltaRs(settings.warehouse, settings.aws))
    named = sums_of(counted, is_open & (pc.field("kind") == kind), by=["stream"])
    gaps = _gaps(settings, ["stream"], where=is_open)
    until = [row["first_deadline"] for row in named if row["first_deadline"] is not None]
    until += [row["recoverable_until_min"] for row in gaps]
    ids = sum(row["ids"] for row in named) + sum(row["count_sum"] for row in gaps)
    return OpenCount(stream, kind, ids, min(until, default=None))


def gaps_of(
    settings: Settings,
    *,
    stream: str | None,
    state: str | None,
    shards: ShardRange = ALL_SHARDS,
) -> list[Row]:
    """Gaps, the soonest deadline first: rows of GAPS. None: of all streams, in whatever state."""
    where = of_shards(shards)
    for name, value in (("stream", stream), ("state", state)):
        if value is not None:
            where &= pc.field(name) == value
    rows = read_rows(settings, GAPS, where=where)
    return sorted(rows, key=lambda r: (r["recoverable_until"], r["shard_id"], r["bucket_start"]))


def _having(wanted: WantedFindings) -> pc.Expression:
    where = pc.scalar(True)
    for column, value in wanted.values.items():
        where = where & (pc.field(column) == value)
    return where


def _sent(wanted: WantedFindings) -> pc.Expression | None:
    if wanted.sent is None:
        return None
    inside = field_within("sent_at", wanted.sent.start, wanted.sent.end)
    return inside | pc.field("sent_at").is_null()


def _where(wanted: WantedFindings) -> pc.Expression:
    where = of_shards(wanted.shards) & _having(wanted)
    if (sent := _sent(wanted)) is not None:
        where = where & sent
    if wanted.part:
        where = where & pc.match_substring(pc.field("message_id"), wanted.part)
    return where


def _gaps(settings: Settings, key: list[str], *, where: pc.Expression) -> list[Row]:
    """How many gaps there are, how many messages lack in them, and until when: by some columns."""
    of_gaps = ("stream", "shard_id", "state", "bucket_start", "last_audit_id")
    names = [*{*key, *of_gaps, "count", "recoverable_until"}]
    gaps = DeltaRs(settings.warehouse, settings.aws).columns(GAPS, names=names, where=where)
    each: list[Any] = [("count", "sum"), ("count", "count")]
    return [] if gaps is None else _grouped(gaps, key, of_each=each)


# Any: what Arrow aggregates by, of columns or of none.
def _grouped(rows: pa.Table, key: list[str], *, of_each: list[Any]) -> list[Row]:
    found = rows.group_by(key).aggregate([("recoverable_until", "min"), *of_each])
    return [in_utc(row) for row in found.to_pylist()]
