"""What the page reads besides the cells: audits, open findings, the newest watch."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.verdict import Kind, State
from shardaudit.store.audits import watch_since
from shardaudit.store.cell_grid import ShardRange
from shardaudit.store.cells import of_shards

_OPEN = [state.value for state in (State.OPEN, State.PLANNED, State.REPLAYED)]
# A watch is every 15 minutes; the wider spans are for after a break.
_LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=3660))


@dataclass(frozen=True, slots=True)
class OpenCount:
    """Findings of one stream and kind that are not settled, and when the first of them is gone."""

    stream: str
    kind: str
    ids: int
    deadline: datetime | None


def audits_of(settings: Settings, stream: str) -> list[Row]:
    """The stream's rows of `audits` without their inputs, in no order."""
    names = [name for name in AUDITS.names if name != "inputs"]  # a list of files may be long
    found = _tables(settings).columns(AUDITS, names=names, where=pc.field("stream") == stream)
    rows: list[Row] = [] if found is None else found.to_pylist()
    return rows


def open_counts(settings: Settings) -> list[OpenCount]:
    """How many findings are open, by stream and kind."""
    findings = _tables(settings).dataset(FINDINGS)
    if findings is None:
        return []
    key = ["stream", "kind"]
    is_open = pc.field("state").isin(_OPEN)
    rows = findings.to_table(columns=[*key, "recoverable_until"], filter=is_open)
    grouped = rows.group_by(key).aggregate([("recoverable_until", "min"), ([], "count_all")])
    return [
        OpenCount(row["stream"], row["kind"], row["count_all"], row["recoverable_until_min"])
        for row in grouped.to_pylist()
    ]


def open_missing(settings: Settings, stream: str, *, shards: ShardRange) -> OpenCount:
    """The stream's missing messages that are open, of some of its shards."""
    findings = _tables(settings).dataset(FINDINGS)
    kind = Kind.MISSING.value
    if findings is None:
        return OpenCount(stream, kind, 0, None)
    wanted = (
        (pc.field("stream") == stream)
        & (pc.field("kind") == kind)
        & (pc.field("state") == State.OPEN.value)
        & of_shards(shards)
    )
    until = findings.to_table(columns=["recoverable_until"], filter=wanted)["recoverable_until"]
    return OpenCount(stream, kind, len(until), pc.min(until).as_py())


def newest_watch(settings: Settings, stream: str, *, now: datetime) -> list[Row]:
    """The rows of `shards` that the stream's last watch wrote; none when there was no watch."""
    for span in _LOOK_BACK:
        found = watch_since(settings, stream, since=now - span)
        if found:
            return found
    return []


def _tables(settings: Settings) -> DeltaRs:
    return DeltaRs(settings.warehouse, settings.aws)
