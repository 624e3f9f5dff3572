"""What is to be read of a shard, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shardaudit.model.get_records import Start, StoredRecord, StreamPage


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What to read: between two sequence numbers (inclusive) where they are known, else by arrival.

    `horizon`: what arrived before it is older than the retention. `is_expected`: acknowledged
    messages are known to have arrived in the window.
    """

    window_id: str
    shard_id: str
    start: datetime
    end: datetime
    horizon: datetime
    start_sequence: str | None = None
    end_sequence: str | None = None
    is_expected: bool = False


class ShardClient(Protocol):
    """What reading needs of Kinesis."""

    def iterator(self, shard_id: str, start: Start) -> str:
        """A shard iterator.

        Raises:
            PlaceGoneError: the shard or the sequence number is not there.
            ThrottledError: ask again later.
        """

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        """What GetRecords brings.

        Raises:
            IteratorExpiredError: the iterator is too old.
            ThrottledError: ask again later.
        """

    def beside(self) -> "ShardClient":
        """A client for a question while this one is in the middle of a shard."""


@dataclass(slots=True)
class ReadOutcome:
    """What came of it. Unless `is_complete`, a part was not read, and `error` says why.

    `begins_at`: when the oldest record arrived that the shard still has, at most the window's end;
    None when that is not later than what is wanted. `expired_from` and `expired_to` say what of the
    window left the stream: what lies before `begins_at`, where something is known to have been.
    """

    window_id: str
    records: int = 0
    calls: int = 0
    size_bytes: int = 0
    expired_from: datetime | None = None
    expired_to: datetime | None = None
    begins_at: datetime | None = None
    is_complete: bool = False
    error: str | None = None


@dataclass
class OldestRecord:
    """The oldest record of a shard, as it was when first asked for; None when there was none.

    Later there may be less: what went since then looks as if it had never been, and its window is
    left to the next run.
    """

    record: StoredRecord | None = None
    is_known: bool = False

    def once(self, ask: Callable[[], StoredRecord | None]) -> StoredRecord | None:
        """What came of asking for the first time."""
        if not self.is_known:
            self.record, self.is_known = ask(), True
        return self.record
