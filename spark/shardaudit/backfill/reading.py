"""What is to be read of a shard, and what came of it; plain values, so that workers can be told."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What to read: between two sequence numbers (inclusive) where they are known, else by arrival.

    `horizon`: what arrived before it may have left the stream.
    """

    window_id: str
    shard_id: str
    start: datetime
    end: datetime
    horizon: datetime
    start_sequence: str | None = None
    end_sequence: str | None = None


class UserRecord(NamedTuple):
    """One record as its producer put it; `sub_sequence` tells those of an aggregate apart."""

    sequence_number: str
    sub_sequence: int
    partition_key: str
    arrived_at: datetime
    content: bytes


@dataclass(slots=True)
class ReadOutcome:
    """What came of it. Unless `is_complete`, a part was not read, and `error` says why."""

    window_id: str
    records: int = 0
    calls: int = 0
    size_bytes: int = 0
    expired_from: datetime | None = None
    expired_to: datetime | None = None
    is_complete: bool = False
    error: str | None = None
