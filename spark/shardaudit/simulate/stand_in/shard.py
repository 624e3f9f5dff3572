"""One shard: its records in the order of their sequence numbers, and its share of traffic."""

import json
from bisect import bisect_left
from dataclasses import dataclass, field

# Kinesis quotas per shard: 1,000 records and 1 MiB a second in; 5 calls and 2 MiB a second out.
PUT_PER_SECOND = (1000, 2**20)
GET_PER_SECOND = (5, 2 * 2**20)
_PAGE_BYTES = 10 * 2**20  # GetRecords: at most 10 MiB a page

_INDEX_DIGITS = slice(38, 46)


def shard_name(index: int) -> str:
    """The id that Kinesis gives to a stream's n-th shard."""
    return f"shardId-{index:012d}"


def shard_index_of(sequence_number: int) -> int:
    """The number of the shard that a sequence number of ours came from."""
    return int(f"{sequence_number:x}"[_INDEX_DIGITS] or "0", 16)


@dataclass(slots=True)
class Usage:
    """Calls and bytes within one second; more bytes than its share block the seconds after it."""

    max_calls: int
    max_bytes: int
    second: int = 0
    calls: int = 0
    size_bytes: int = 0
    blocked_until_ms: int = 0

    def allows(self, *, now_ms: int, size_bytes: int = 0) -> bool:
        """Whether one call more, of that size, fits in now."""
        if self.second != now_ms // 1000:
            self.second, self.calls, self.size_bytes = now_ms // 1000, 0, 0
        return (
            now_ms >= self.blocked_until_ms
            and self.calls < self.max_calls
            and self.size_bytes + size_bytes <= self.max_bytes
        )

    def count(self, *, now_ms: int, size_bytes: int) -> None:
        """Counts a call that was made."""
        self.calls += 1
        self.size_bytes += size_bytes
        if self.size_bytes > self.max_bytes:
            self.blocked_until_ms = now_ms + self.size_bytes * 1000 // self.max_bytes


@dataclass(frozen=True, slots=True)
class Page:
    """What one GetRecords call returns: records as JSON texts, and the place to go on from."""

    records: list[str]
    position: int
    is_last: bool
    behind_ms: int
    size_bytes: int


@dataclass(slots=True)
class ServedShard:
    """A hash range with its records; closed once it was split or merged."""

    index: int
    hash_start: int
    hash_end: int
    opened_ms: int
    parents: tuple[str, ...] = ()
    closed_ms: int | None = None
    last_sequence: int = 0
    reads: int = 0
    put_usage: Usage = field(default_factory=lambda: Usage(*PUT_PER_SECOND))
    get_usage: Usage = field(default_factory=lambda: Usage(*GET_PER_SECOND))
    _count: int = 0
    _sequences: list[int] = field(default_factory=list)
    _arrivals_ms: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _records: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.last_sequence = self._sequence(self.opened_ms)

    @property
    def shard_id(self) -> str:
        """As Kinesis writes it."""
        return shard_name(self.index)

    @property
    def is_open(self) -> bool:
        """Whether it still takes records."""
        return self.closed_ms is None

    @property
    def first_sequence(self) -> str:
        """Its starting sequence number."""
        return str(self._sequence_at(0, self.opened_ms))

    def close(self, now_ms: int) -> None:
        """Takes no more records from here on."""
        self._count += 1
        self.closed_ms = now_ms
        self.last_sequence = self._sequence(now_ms)

    def append(self, partition_key: str, data_base64: str, *, size_bytes: int, now_ms: int) -> str:
        """Stores a record and returns its sequence number. Arrival times never step back."""
        arrival_ms = max(now_ms, self._arrivals_ms[-1]) if self._arrivals_ms else now_ms
        self._count += 1
        sequence = self._sequence(arrival_ms)
        self.last_sequence = sequence
        number = str(sequence)
        self._records.append(
            f'{{"SequenceNumber":"{number}","ApproximateArrivalTimestamp":{arrival_ms / 1000:.3f},'
            f'"PartitionKey":{json.dumps(partition_key)},"Data":"{data_base64}"}}'
        )
        self._sequences.append(sequence)
        self._arrivals_ms.append(arrival_ms)
        self._sizes.append(size_bytes)
        return number

    def trim(self, horizon_ms: float) -> None:
        """Forgets the records that arrived before the horizon."""
        old = bisect_left(self._arrivals_ms, horizon_ms)
        if old:
            for column in (self._sequences, self._arrivals_ms, self._sizes, self._records):
                del column[:old]

    def position_after_all(self) -> int:
        """The place behind the newest record."""
        return self.last_sequence + 1

    def position_at(self, at_ms: float) -> int:
        """The place of the first record that arrived then or later."""
        found = bisect_left(self._arrivals_ms, at_ms)
        if found < len(self._sequences):
            return self._sequences[found]
        return self.position_after_all()

    def page(self, position: int, *, limit: int, now_ms: int, empty: bool) -> Page:
        """The records from a place on: at most `limit`, at most 10 MiB, none when `empty`."""
        start = bisect_left(self._sequences, position)
        end, size_bytes = start, 0
        last = start if empty else min(len(self._sequences), start + limit)
        while end < last and size_bytes + self._sizes[end] <= _PAGE_BYTES:
            size_bytes += self._sizes[end]
            end += 1
        is_last = end == len(self._sequences)
        return Page(
            records=self._records[start:end],
            position=self._sequences[end - 1] + 1 if end > start else position,
            is_last=is_last,
            behind_ms=0 if is_last else max(0, now_ms - self._arrivals_ms[end]),
            size_bytes=size_bytes,
        )

    def _sequence(self, at_ms: int) -> int:
        return self._sequence_at(self._count, at_ms)

    def _sequence_at(self, count: int, at_ms: int) -> int:
        # 56 decimal digits as on AWS; grows with the count, and from parent to child with the time.
        opened, at = self.opened_ms // 1000, at_ms // 1000
        return int(f"2{opened:09x}{self.index & 15:01x}{count:016x}00{at:09x}{self.index:08x}2", 16)
