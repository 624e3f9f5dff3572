"""One answer of GetRecords, and the refusals that a reader has to tell apart."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from shardaudit.model.errors import FinalError, RetryableError


class StoredRecord(NamedTuple):
    """A record as the shard keeps it; `content` may be an aggregate of many."""

    sequence_number: str
    partition_key: str
    arrived_at: datetime
    content: bytes


@dataclass(frozen=True, slots=True)
class StreamPage:
    """One answer.

    `next_iterator` is None at the end of a closed shard; `is_level`: nothing newer is there.
    """

    records: tuple[StoredRecord, ...]
    next_iterator: str | None
    is_level: bool

    @property
    def size_bytes(self) -> int:
        """Of the records' content and keys."""
        return sum(len(r.content) + len(r.partition_key) for r in self.records)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a reader begins: at or after a sequence number, at a time, or at the oldest record."""

    sequence_number: str | None = None
    is_after: bool = False
    at: datetime | None = None


class IteratorExpiredError(RetryableError, TimeoutError):
    """The shard iterator is older than five minutes."""


class ThrottledError(RetryableError, ConnectionError):
    """Too many calls, too many bytes, or no proper answer: wait, then ask again."""


class PlaceGoneError(FinalError, LookupError):
    """The sequence number, or the whole shard, is not there (any more)."""
