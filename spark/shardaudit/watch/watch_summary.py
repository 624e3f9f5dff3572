"""What a watch has to say, as frozen values."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import Level, ShardState


@dataclass(frozen=True, slots=True)
class WatchLine:
    """One shard. `messages_ahead` and `hours_to_read` are upper bounds; times are UTC.

    `holes`: cells that its consumer is past and in which at least `hole_messages` are missing.
    """

    shard_id: str
    state: ShardState
    level: Level
    produced_until: datetime | None
    landed_until: datetime | None
    frontier_at: datetime | None
    position: str | None
    messages_ahead: int
    oldest_ahead: datetime | None
    recoverable_until: datetime | None
    start_by: datetime | None
    crosses_at: datetime | None
    hours_to_read: float | None
    holes: int
    hole_messages: int
    hole_since: datetime | None
    hole_until: datetime | None
    hole_recoverable_until: datetime | None
    hole_start_by: datetime | None
    advice: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkewLine:
    """The spread of the shards at work in event time, and the shard that is furthest behind."""

    spread: timedelta
    earliest: datetime
    latest: datetime
    shard_id: str


@dataclass(frozen=True, slots=True)
class WatchReport:
    """One watch. `shards`: those that are not well, or of which witnesses disagree.

    `read_at`: when traces and sink were read last. `listed_at`: when Kinesis last said which shards
    there are; None when it never did. `told`: how many notifications are new.
    """

    stream: str
    as_of: datetime
    retention: timedelta
    read_at: datetime
    listed_at: datetime | None
    told: int
    states: dict[str, int]
    levels: dict[str, int]
    worst: Level
    shards: tuple[WatchLine, ...]
    produced_skew: SkewLine | None
    landed_skew: SkewLine | None
    notes: tuple[str, ...]
