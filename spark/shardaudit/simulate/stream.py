"""What the simulator needs of a stream, and the records in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Put:
    """A record to be put. The hash key is decimal text and chooses the shard."""

    partition_key: str
    hash_key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Ack:
    """The stream's answer to a put: where the record is."""

    shard_id: str
    sequence_number: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was read."""

    shard_id: str
    sequence_number: str
    arrived_at: datetime
    content: bytes


class StreamPort(Protocol):
    """One stream, to be filled and read."""

    def create(self, *, shards: int, retention: timedelta) -> None:
        """Makes the stream, which must not exist yet."""

    def put(self, puts: Sequence[Put]) -> list[Ack | None]:
        """Puts up to 500 records; None stands for one that failed."""

    def split(self, shard_id: str) -> None:
        """Splits a shard in the middle of its hash keys."""

    def merge(self, shard_id: str, adjacent_id: str) -> None:
        """Merges two neighbours."""

    def read(self) -> Iterator[list[Record]]:
        """Everything that it holds, shard after shard, page by page."""

    def hold_clock(self, at: datetime, *, step_ms: float = 0.0) -> None:
        """Makes records arrive at that time, each a step later than the one before."""

    def run_clock(self, at: datetime) -> None:
        """Lets the time run from there on."""
