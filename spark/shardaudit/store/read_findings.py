"""Reads findings and gaps for people, without Spark: a list must not wait for a JVM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import LIVE, STANDING, Cause, Kind, MissingIds, State
from shardaudit.model.window import Window
from shardaudit.store.audits import read_rows
from shardaudit.store.cell_grid import ALL_SHARDS, ShardRange
from shardaudit.store.cells import field_within, of_shards

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
    """The first rows of a list, by the names of the findings table, and how long it is."""

    rows: tuple[FindingValues, ...]
    total: int


@dataclass(frozen=True, slots=True)
class OpenCount:
    """Findings of one stream and kind that are not settled, and when the first of them is gone."""

    stream: str
    kind: str
    ids: int
    deadline: datetime | None


def read_findings(settings: Settings, wanted: WantedFindings, *, limit: int) -> Findings:
    """The first findings of those that are wanted, the soonest `recoverable_until` first.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables = DeltaRs(settings.warehouse, settings.aws)
    where = _where(wanted)
    # The key, and what is asked about: the list may be long.
    names = {*_ORDER, *wanted.values, "shard_id", "message_id", "sent_at"}
    found = tables.columns(FINDINGS, names=list(names), where=where)
    if found is None:
        return Findings((), 0)
    order = [(name, "ascending") for name in _ORDER]
    first = found.take(pc.sort_indices(found, sort_keys=order)[:limit])  # NULLs last
    place = {_key(row): index for index, row in enumerate(first.to_pylist())}
    rows = tables.found(FINDINGS, where=where & _is_one_of(first["message_id"].to_pylist()))
    shown = [row for row in rows if _key(row) in place]
    shown.sort(key=lambda row: place[_key(row)])
    return Findings(tuple(shown), found.num_rows)


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
    settings: Settings, stream: str, message_ids: Sequence[str]
) -> list[FindingValues]:
    """What happened to the findings of these messages, in no order."""
    mine = (pc.field("stream") == stream) & _is_one_of(message_ids)
    return list(DeltaRs(settings.warehouse, settings.aws).found(TRANSITIONS, where=mine))


def missing_of_audit(settings: Settings, audit_id: str) -> list[MissingIds]:
    """What the audit, as the newest that looked, found missing."""
    wanted = (
        (pc.field("last_audit_id") == audit_id)
        & (pc.field("kind") == Kind.MISSING.value)
        & pc.field("state").isin(STANDING)
    )
    key = ["shard_id", "cause", "state"]
    names = ["last_audit_id", "kind", *key, "recoverable_until"]
    findings = DeltaRs(settings.warehouse, settings.aws).columns(
        FINDINGS, names=names, where=wanted
    )
    grouped = [] if findings is None else _grouped(findings, key, of_each=[([], "count_all")])
    seen = (pc.field("last_audit_id") == audit_id) & pc.field("state").isin(STANDING)
    return [
        MissingIds(
            shard_id=row["shard_id"],
            cause=Cause(row["cause"]),
            state=State(row["state"]),
            ids=row["count_all"] if (gaps := row.get("count_count", 0)) == 0 else row["count_sum"],
            recoverable_until=row["recoverable_until_min"],
            gaps=gaps,
        )
        for row in (*grouped, *_gaps(settings, key, where=seen))
    ]


def open_counts(settings: Settings) -> list[OpenCount]:
    """How many messages have open findings or lie in open gaps, by stream and kind."""
    key, is_open = ["stream", "kind"], pc.field("state").isin(LIVE)
    findings = DeltaRs(settings.warehouse, settings.aws).columns(
        FINDINGS, names=[*key, "state", "recoverable_until"], where=is_open
    )
    named = [] if findings is None else _grouped(findings, key, of_each=[([], "count_all")])
    counts = {
        (row["stream"], row["kind"]): (row["count_all"], row["recoverable_until_min"])
        for row in named
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
    names = ["stream", "kind", "state", "shard_id", "recoverable_until"]
    findings = DeltaRs(settings.warehouse, settings.aws).columns(
        FINDINGS, names=names, where=is_open & (pc.field("kind") == kind)
    )
    ids = len(findings) if findings else 0
    until = [pc.min(findings["recoverable_until"]).as_py()] if findings else []
    gaps = _gaps(settings, ["stream"], where=is_open)
    until += [row["recoverable_until_min"] for row in gaps]
    return OpenCount(
        stream, kind, ids + sum(row["count_sum"] for row in gaps), min(until, default=None)
    )


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


def _key(row: FindingValues) -> tuple[str, ...]:
    return row["stream"], row["message_id"], row["kind"]


def _is_one_of(message_ids: Sequence[str]) -> pc.Expression:
    return pc.field("message_id").isin(pa.array(message_ids, pa.string()))


def _where(wanted: WantedFindings) -> pc.Expression:
    where = of_shards(wanted.shards)
    for column, value in wanted.values.items():
        where = where & (pc.field(column) == value)
    if wanted.sent is not None:
        inside = field_within("sent_at", wanted.sent.start, wanted.sent.end)
        where = where & (inside | pc.field("sent_at").is_null())
    if wanted.part:
        where = where & pc.match_substring(pc.field("message_id"), wanted.part)
    return where


def _gaps(settings: Settings, key: list[str], *, where: pc.Expression) -> list[Row]:
    """How many gaps there are, how many messages lack in them, and until when: by some columns."""
    names = [*{*key, "stream", "shard_id", "state", "last_audit_id", "count", "recoverable_until"}]
    gaps = DeltaRs(settings.warehouse, settings.aws).columns(GAPS, names=names, where=where)
    each: list[Any] = [("count", "sum"), ("count", "count")]
    return [] if gaps is None else _grouped(gaps, key, of_each=each)


# Any: what Arrow aggregates by, of columns or of none.
def _grouped(rows: pa.Table, key: list[str], *, of_each: list[Any]) -> list[Row]:
    found = rows.group_by(key).aggregate([("recoverable_until", "min"), *of_each])
    return [in_utc(row) for row in found.to_pylist()]
