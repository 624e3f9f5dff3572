"""What a consumer says of how far it is in one shard."""

from dataclasses import dataclass
from datetime import datetime

from shardaudit.model.choices import PositionSource
from shardaudit.model.sequence import is_sequence_number

SHARD_END = "SHARD_END"
# KCL, software.amazon.kinesis.common / SentinelCheckpoint: words in the place of a number.
START_WORDS = ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")
CHECKPOINT_WORDS = (*START_WORDS, SHARD_END)


@dataclass(frozen=True, slots=True)
class Position:
    """One consumer's word on one shard.

    `checkpoint` is a sequence number (with the record's number inside an aggregate, where there is
    one) or one of `CHECKPOINT_WORDS`. A growing `lease_counter` proves a living worker, not that it
    gets on.
    """

    source: PositionSource
    consumer: str
    shard_id: str
    checkpoint: str
    sub_sequence: int | None = None
    lease_owner: str | None = None
    lease_counter: int | None = None
    reported_at: datetime | None = None

    @property
    def sequence_number(self) -> str | None:
        """The checkpoint when it is a number."""
        return self.checkpoint if is_sequence_number(self.checkpoint) else None

    @property
    def is_at_end(self) -> bool:
        """Whether the consumer says that it read the closed shard to its end."""
        return self.checkpoint == SHARD_END
