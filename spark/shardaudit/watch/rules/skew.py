"""How far the shards are from each other in event time: producers, and what has landed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import ShardState
from shardaudit.watch.rules.judge import Judgement

# An idle or closed shard's time is old because nothing came: it is not behind the others.
_AT_WORK = frozenset(ShardState) - {ShardState.IDLE, ShardState.CLOSED}


@dataclass(frozen=True, slots=True)
class Skew:
    """The spread of some shards' times, and which shard is the furthest behind."""

    shard_id: str
    earliest: datetime
    latest: datetime

    @property
    def spread(self) -> timedelta:
        """From the earliest to the latest."""
        return self.latest - self.earliest


def produced_skew(judgements: Iterable[Judgement]) -> Skew | None:
    """Between the newest messages sent, of the shards at work."""
    return _skew((j, j.witness.progress.produced_until) for j in judgements)


def landed_skew(judgements: Iterable[Judgement]) -> Skew | None:
    """Between the newest cells landed, of the shards at work."""
    return _skew((j, j.witness.progress.landed_until) for j in judgements)


def _skew(times: Iterable[tuple[Judgement, datetime | None]]) -> Skew | None:
    at_work = [(at, j.shard_id) for j, at in times if at is not None and j.state in _AT_WORK]
    if not at_work:
        return None
    earliest, shard_id = min(at_work)
    return Skew(shard_id, earliest, max(at_work)[0])
