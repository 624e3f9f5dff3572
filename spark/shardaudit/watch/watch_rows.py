"""A watch's judgements and notifications as rows of its tables."""

from collections.abc import Mapping, Sequence

from shardaudit.model.choices import PositionSource
from shardaudit.model.sequence import Position
from shardaudit.watch.rules.judge import Judgement
from shardaudit.watch.rules.notifications import Notification

Values = dict[str, object]


def watched_rows(
    name: str, judgements: Sequence[Judgement], *, listed: Mapping[str, Mapping[str, object]]
) -> list[Values]:
    """Rows of `shards`: what Kinesis said of the shard just now (NULL: nothing), and ours."""
    return [dict(listed.get(j.shard_id, {})) | _watched(name, j) for j in judgements]


def _watched(name: str, judgement: Judgement) -> Values:
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
        "unnamed_since": holes.unnamed_since,
        "unnamed_until": holes.unnamed_until,
        "audit_level": judgement.audit_level.value,
    }


def position_rows(name: str, judgements: Sequence[Judgement], *, sink: str) -> list[Values]:
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


def _position(name: str, position: Position, judgement: Judgement) -> Values:
    return {
        "stream": name,
        "source": position.source.value,
        "consumer": position.consumer,
        "shard_id": position.shard_id,
        "observed_at": judgement.as_of,
        "checkpoint": position.checkpoint,
        "sub_sequence": position.sub_sequence,
        "lease_owner": position.lease_owner,
        "lease_counter": position.lease_counter,
        "reported_at": position.reported_at,
    }


def notification_rows(news: Sequence[Notification]) -> list[Values]:
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
