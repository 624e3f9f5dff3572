"""Changes the state of findings, and keeps who did it and why; people accept them here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.columns.instants import in_windows
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.audit_tables import FINDINGS, INCONCLUSIVE, QUIET_TIMES, TRANSITIONS
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.tables.table import Table
from shardaudit.model.verdict import UNSETTLED, Kind, State
from shardaudit.model.window import Window
from shardaudit.store.found.keep_counts import keep_finding_counts
from shardaudit.store.warehouse import Warehouse

_TRANSITIONS_OF = {FINDINGS: TRANSITIONS, GAPS: GAP_TRANSITIONS}

SaidTimes = list[tuple[str | None, Window]]  # of a shard, or of all


@dataclass(frozen=True, slots=True)
class NewState:
    """What becomes of findings or gaps, why and when."""

    to: State
    reason: str
    now: datetime


def change_state(warehouse: Warehouse, table: Table, chosen: DataFrame, change: NewState) -> None:
    """Gives all chosen rows of FINDINGS or GAPS that state.

    Transitions come first: a crash in between leaves rows that the same command still chooses.
    """
    chosen = chosen.localCheckpoint()
    most = chosen.count()
    if not most:
        return
    told = {
        "from_state": F.col("state"),
        "to_state": F.lit(change.to.value),
        "audit_id": F.lit(None).cast("string"),
        "reason": F.lit(change.reason),
        "changed_at": F.lit(change.now),
    }
    transitions = _TRANSITIONS_OF[table]
    warehouse.merge(chosen.withColumns(told).select(transitions.names), transitions, most=most)
    moved = {
        "state": F.lit(change.to.value),
        "state_reason": F.lit(change.reason),
        "updated_at": F.lit(change.now),
    }
    warehouse.merge(chosen.withColumns(moved), table, most=most)
    if table is FINDINGS:
        keep_finding_counts(warehouse)


def findings_in(warehouse: Warehouse, stream: str, kind: Kind, *states: State) -> DataFrame:
    """The stream's findings of a kind that are in these states, or in any: rows of FINDINGS."""
    wanted = (F.col("stream") == stream) & (F.col("kind") == kind.value)
    return warehouse.read(FINDINGS).where(
        wanted & F.col("state").isin(*states) if states else wanted
    )


def without_accepted(warehouse: Warehouse, stream: str, kind: Kind, ids: DataFrame) -> DataFrame:
    """Of rows with a `message_id` those of which nobody said that they may stay as they are."""
    accepted = findings_in(warehouse, stream, kind, State.ACCEPTED).select("message_id")
    return ids.join(accepted, ["message_id"], how="left_anti")  # presence only


class NoGapError(FinalError, LookupError):
    """A time without a gap."""

    def __init__(self, stream: str, shard_ids: list[str], window: Window) -> None:
        whose = f" of {', '.join(map(repr, shard_ids))}" if shard_ids else ""
        super().__init__(
            f"stream {stream} has no gap{whose} from {window.start.isoformat()} to "
            f"{window.end.isoformat()}: nothing was accepted; `shardaudit findings list` names "
            "those that there are"
        )


class NoFindingError(FinalError, LookupError):
    """A message id without a finding."""

    def __init__(self, stream: str, message_ids: list[str]) -> None:
        super().__init__(
            f"stream {stream} has no finding of {', '.join(map(repr, message_ids))}: nothing was "
            "accepted; `shardaudit findings list` names those that there are"
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """What came of it: findings that changed, and those that were accepted or closed before."""

    stream: str
    accepted: int
    unchanged: int


def accept_findings(
    warehouse: Warehouse, stream: str, message_ids: Sequence[str], *, reason: str, now: datetime
) -> Accepted:
    """Accepts every finding of these messages, of whatever kind. Doing it twice changes nothing.

    Raises:
        NoFindingError: one of the messages has no finding; nothing is changed.
    """
    asked = sorted(set(message_ids))
    of_asked = (F.col("stream") == stream) & F.col("message_id").isin(asked)
    findings = warehouse.read(FINDINGS).where(of_asked).localCheckpoint()
    found = findings.select("message_id", "state").collect()
    unknown = sorted(set(asked) - {row.message_id for row in found})
    if unknown:
        raise NoFindingError(stream, unknown)
    chosen = findings.where(F.col("state").isin(*UNSETTLED))
    change_state(warehouse, FINDINGS, chosen, NewState(State.ACCEPTED, reason, now))
    return _accepted(stream, found)


def _accepted(stream: str, found: Sequence[Row]) -> Accepted:
    """Those that are over are left as they are."""
    accepted = sum(row.state in UNSETTLED for row in found)
    return Accepted(stream, accepted, len(found) - accepted)


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says of a time. `shard_ids`: none for all of the stream.

    That nothing was sent in it; or (`is_inconclusive`) that it may stay inconclusive, because a
    file cannot be read or too few traces came.
    """

    stream: str
    window: Window
    shard_ids: tuple[str, ...]
    reason: str
    is_inconclusive: bool = False


def accept_gaps(warehouse: Warehouse, said: Said, *, now: datetime) -> Accepted:
    """Accepts every gap of these shards, or of all, in that time. Twice changes nothing.

    Raises:
        NoGapError: there is none; or one of the shards has none. Nothing is changed.
    """
    is_inside = in_windows(F.col("bucket_start"), [said.window])
    wanted = (F.col("stream") == said.stream) & is_inside
    if said.shard_ids:
        wanted &= F.col("shard_id").isin(list(said.shard_ids))
    gaps = warehouse.read(GAPS).where(wanted).localCheckpoint()
    found = gaps.select("shard_id", "state").collect()
    without = set(said.shard_ids) - {row.shard_id for row in found}
    if without or not found:
        raise NoGapError(said.stream, sorted(without), said.window)
    chosen = gaps.where(F.col("state").isin(*UNSETTLED))
    change_state(warehouse, GAPS, chosen, NewState(State.ACCEPTED, said.reason, now))
    return _accepted(said.stream, found)


@dataclass(frozen=True, slots=True)
class AcceptedTime:
    """What is kept of it."""

    stream: str
    start: datetime
    end: datetime
    shard_ids: tuple[str, ...]
    is_inconclusive: bool
    reason: str
    accepted_by: str


def accept_time(warehouse: Warehouse, said: Said, *, by: str, now: datetime) -> AcceptedTime:
    """Keeps what a person says of a time: audits from now on go by it.

    Findings and verdicts stay as they are: a quiet time is no lack of traces, and the watermark
    passes an inconclusive one. Saying it again keeps the last reason.
    """
    rows = [
        {
            "stream": said.stream,
            "shard_id": shard_id,
            "quiet_from": said.window.start,
            "quiet_until": said.window.end,
            "said": INCONCLUSIVE if said.is_inconclusive else None,
            "reason": said.reason,
            "accepted_by": by,
            "accepted_at": now,
        }
        for shard_id in sorted(set(said.shard_ids)) or (None,)
    ]
    warehouse.upsert(rows, QUIET_TIMES)
    return AcceptedTime(
        said.stream,
        said.window.start,
        said.window.end,
        said.shard_ids,
        said.is_inconclusive,
        said.reason,
        by,
    )


def said_times(warehouse: Warehouse, stream: str, said: str | None) -> SaidTimes:
    """The times of which people said this; None: that nothing was sent."""
    rows = warehouse.rows(QUIET_TIMES, where=pc.field("stream") == stream)
    return [
        (row["shard_id"], Window(row["quiet_from"], row["quiet_until"]))
        for row in rows
        if row["said"] == said
    ]


def times_of(said: SaidTimes, shard_id: str | None) -> list[Window]:
    """Those that count for a shard; None: for all of them."""
    return [window for of, window in said if of is None or of == shard_id]
