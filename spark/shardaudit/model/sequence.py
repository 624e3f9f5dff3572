"""Kinesis sequence numbers, compared inside one shard only, and how far a consumer says it is."""

import re
from dataclasses import dataclass
from datetime import datetime

from shardaudit.model.config.choices import PositionSource

PATTERN = r"^(0|[1-9][0-9]{0,128})$"  # of SequenceNumber in Kinesis' API
MAX_DIGITS = 129  # as it says

# Engines sort them by a text: LENGTHS + the length, which has 4 digits, then the number.
LENGTHS = 1000
NUMBER_AT = 5  # the number's first character, counted from 1

SHARD_END = "SHARD_END"
# KCL, software.amazon.kinesis.common / SentinelCheckpoint: words in the place of a number.
START_WORDS = ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")
CHECKPOINT_WORDS = (*START_WORDS, SHARD_END)


def is_sequence_number(text: str) -> bool:
    """Whether the text is a sequence number as Kinesis writes them."""
    return re.fullmatch(PATTERN[1:-1], text) is not None


def sequence_order(sequence_number: str) -> tuple[int, str]:
    """The key by which sequence numbers of one shard sort as the numbers that they are."""
    return len(sequence_number), sequence_number


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
