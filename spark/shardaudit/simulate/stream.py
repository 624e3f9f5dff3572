"""What the simulator needs of a stream; `simulate/kinesis_stream.py` does it with boto3."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from shardaudit.simulate.stream_record import Ack, Put, Record


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
