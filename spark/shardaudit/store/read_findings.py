"""Reads findings for people, without Spark: a list must not wait for a JVM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.window import Window
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
