"""What earlier watches and Kinesis itself said, and the rows in which a watch is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.config.choices import PositionSource
from shardaudit.model.sequence import Position, sequence_order
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, POSITIONS, SHARDS
from shardaudit.model.verdict import Level
from shardaudit.store.audits import is_ahead, newest_rows
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.facts import EarlierWatch
from shardaudit.watch.rules.judgement import Judgement
from shardaudit.watch.rules.notifications import Notification, Occasion

_TREND = timedelta(hours=1)  # four watches
# The fields of a position that are called as the columns.
_POSITION = (
    *("consumer", "shard_id", "checkpoint", "sub_sequence"),
    *("lease_owner", "lease_counter", "reported_at"),
)

RowValues = dict[str, object]


@dataclass(frozen=True, slots=True)
class History:
    """`listing`: the newest rows that Kinesis itself filled, of the time `listed_at`.

    `before`: the last watch of each shard, `earlier`: its first one within the last hour.
    `settled`: up to where each shard was settled at each of these watches.
    """

    before: dict[str, EarlierWatch]
    earlier: dict[str, EarlierWatch]
    listing: dict[str, Row]
    listed_at: datetime | None
    settled: tuple[tuple[datetime, str, str], ...]

    @property
    def watched_at(self) -> datetime | None:
        """When the last watch was that knew what had landed; None when there was none."""
        return max((before.observed_at for before in self.before.values()), default=None)

    def settled_by(self, at: datetime) -> dict[str, str]:
        """Up to where each shard was settled at the watches until then."""
        found: dict[str, str] = {}
        for observed_at, shard, frontier in self.settled:
            if observed_at <= at:
                found[shard] = max(found.get(shard, frontier), frontier, key=sequence_order)
        return found


def history(warehouse: Warehouse, name: str, *, as_of: datetime) -> History:
    """What is known from before `as_of`."""
    watched = _newest(warehouse, name, as_of=as_of, having="state")
    first = min((row["observed_at"] for row in watched), default=as_of)
    said = (pc.field("stream") == name) & (pc.field("observed_at") >= pc.scalar(first))
    positions = _positions(warehouse.rows(POSITIONS, where=said))
    listed = _newest(warehouse, name, as_of=as_of, having="opened")
    listed_at = max((row["observed_at"] for row in listed), default=None)
    by_time = sorted(watched, key=lambda row: row["observed_at"])
    return History(
        before={row["shard_id"]: _before(row, positions) for row in by_time},
        earlier={row["shard_id"]: _before(row, positions) for row in reversed(by_time)},
        listing={row["shard_id"]: row for row in listed if row["observed_at"] == listed_at},
        listed_at=listed_at,
        settled=tuple(
            (row["observed_at"], row["shard_id"], row["settled_frontier"])
            for row in watched
            if row["settled_frontier"] is not None
        ),
    )


def told(warehouse: Warehouse, name: str, *, as_of: datetime) -> list[Notification]:
    """The notifications of the stream's shards so far, sent or not, the oldest first."""
    of_shards = (pc.field("stream") == name) & pc.field("shard_id").is_valid()
    rows = warehouse.rows(NOTIFICATIONS, where=of_shards & ~is_ahead("observed_at", as_of))
    rows.sort(key=lambda row: row["observed_at"])
    return [notification(row) for row in rows]


def notification(row: Row) -> Notification:
    """A row of `notifications` as a value."""
    return Notification(
        notification_id=row["notification_id"],
        stream=row["stream"],
        shard_id=row["shard_id"],
        occasion=Occasion(row["kind"]),
        previous_level=Level(row["previous_level"]),
        level=Level(row["level"]),
        text=row["text"],
        observed_at=row["observed_at"],
    )


def _newest(warehouse: Warehouse, name: str, *, as_of: datetime, having: str) -> list[Row]:
    """The stream's rows of `shards` in the shortest look back that has any."""
    mine = (
        (pc.field("stream") == name)
        & (pc.field("observed_at") < pc.scalar(as_of))
        & pc.field(having).is_valid()
    )

    def read(since: datetime) -> list[Row]:
        near = pc.field("observed_at") >= pc.scalar(since)
        return warehouse.rows(SHARDS, where=mine & near)

    rows = newest_rows(read, now=as_of)
    # A watch that finds the ledger held judges by what was an hour before the last one.
    return read(max(row["observed_at"] for row in rows) - _TREND) if rows else []


def _positions(rows: list[Row]) -> dict[tuple[str, datetime], Position]:
    """By shard and observation the consumer's own word; the frontier is in `shards` already."""
    return {
        (row["shard_id"], row["observed_at"]): Position(
            source=PositionSource(row["source"]), **{name: row[name] for name in _POSITION}
        )
        for row in rows
        if row["source"] != PositionSource.SINK
    }


def _before(row: Row, positions: dict[tuple[str, datetime], Position]) -> EarlierWatch:
    return EarlierWatch(
        observed_at=row["observed_at"],
        level=Level(row["level"]),
        frontier=row["frontier"],
        frontier_at=row["frontier_at"],
        recoverable_until=row["recoverable_until"],
        position=positions.get((row["shard_id"], row["observed_at"])),
        hole_since=row["hole_since"],
        hole_until=row["hole_until"],
    )


def watched_rows(
    name: str, judgements: Sequence[Judgement], *, listed: Mapping[str, Mapping[str, object]]
) -> list[RowValues]:
    """Rows of `shards`: what Kinesis said of the shard just now (NULL: nothing), and ours."""
    return [dict(listed.get(j.shard_id, {})) | _watched(name, j) for j in judgements]


def _watched(name: str, judgement: Judgement) -> RowValues:
    witness, due, hole_due = judgement.witness, judgement.deadline, judgement.hole_deadline
    progress, position, holes = witness.progress, witness.position, witness.holes
    return {
        "stream": name,
        "shard_id": judgement.shard_id,
        "observed_at": judgement.as_of,
        "produced_until": progress.produced_until,
        "frontier": progress.frontier,
        "frontier_at": witness.resting_since,
        "settled_frontier": progress.settled_frontier,
        "position": position.checkpoint if position else progress.frontier,
        "state": judgement.state.value,
        "level": judgement.level.value,
        "recoverable_until": due.recoverable_until if due else None,
        "start_by": due.start_by if due else None,
        "hours_to_read": due.hours_to_read if due else None,
        "advice": judgement.words,
        "holes": holes.cells,
        "hole_messages": holes.messages,
        "hole_since": holes.since,
        "hole_until": holes.until,
        "hole_recoverable_until": hole_due.recoverable_until if hole_due else None,
        "hole_start_by": hole_due.start_by if hole_due else None,
        "unnamed_since": judgement.unnamed_since,
        "unnamed_until": judgement.unnamed_until,
        "audit_level": judgement.audit_level.value,
    }


def position_rows(name: str, judgements: Sequence[Judgement], *, sink: str) -> list[RowValues]:
    """Rows of `positions`: the sink's word and the consumer's, side by side."""
    found = []
    for judgement in judgements:
        progress = judgement.witness.progress
        if progress.frontier is not None:
            frontier = Position(
                source=PositionSource.SINK,
                consumer=sink,
                shard_id=judgement.shard_id,
                checkpoint=progress.frontier,
                reported_at=judgement.witness.resting_since,
            )
            found.append(_position(name, frontier, judgement))
        if judgement.witness.position is not None:
            found.append(_position(name, judgement.witness.position, judgement))
    return found


def _position(name: str, position: Position, judgement: Judgement) -> RowValues:
    return {
        "stream": name,
        "source": position.source.value,
        "observed_at": judgement.as_of,
        **{field: getattr(position, field) for field in _POSITION},
    }


def notification_rows(news: Sequence[Notification]) -> list[RowValues]:
    """Rows of `notifications`, not sent yet."""
    return [
        {
            "notification_id": item.notification_id,
            "stream": item.stream,
            "shard_id": item.shard_id,
            "kind": item.occasion.value,
            "previous_level": item.previous_level.value,
            "level": item.level.value,
            "text": item.text,
            "observed_at": item.observed_at,
            "state": "pending",
        }
        for item in news
    ]
