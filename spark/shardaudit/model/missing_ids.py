"""Missing messages in numbers."""

from dataclasses import dataclass
from datetime import datetime

from shardaudit.model.verdict import Cause, State


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Missing ids of one shard, cause and state, and when the first of them leaves the stream."""

    shard_id: str
    cause: Cause
    state: State
    ids: int
    recoverable_until: datetime

    @property
    def order(self) -> tuple[datetime, str, Cause, State]:
        """The key by which they sort: the nearest deadline first."""
        return self.recoverable_until, self.shard_id, self.cause, self.state
