"""The bounded queue between the producer's threads and the one that writes.

Each trace gets a number, written or not: what is dropped is a gap in the numbers, and told as one.

A signal's handler may add, flush or close in the thread that it interrupted while that was adding.
Python runs it where a function begins or has ended: between the reading of a number or a gap and
its change there is no call.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import NamedTuple

FULL = "the queue was full"


# What traces have in common: the stream; when Kinesis answered; the attempt, of a put, from 1; the
# event, of a place behind that of the put.
TraceOccasion = tuple[str, str, int | None, str | None]


class TraceColumns(NamedTuple):
    """Messages at one place, of one occasion: a column for each field.

    Where the place puts them they are acknowledged records. `parent_ids`: of those that each was
    made from; empty where none has any.
    """

    occasion: TraceOccasion
    message_ids: Sequence[str]
    sent_ats: Sequence[str | int]
    shard_ids: Sequence[str]
    sequence_numbers: Sequence[str]
    parent_ids: Sequence[tuple[str, ...]]

    def only(self, kept: Sequence[object]) -> "TraceColumns":
        """Those for which it is true; none beyond its end."""
        occasion, *columns = self
        return TraceColumns._make([occasion, *(list(compress(column, kept)) for column in columns)])

    def each(self) -> Iterator["TraceColumns"]:
        """One by one."""
        occasion, *columns = self
        for at in range(len(self.message_ids)):
            yield TraceColumns._make([occasion, *(column[at : at + 1] for column in columns)])


class TraceRun(NamedTuple):
    """Traces with their places in the session, which follow each other."""

    session_seq: int  # of the first
    traces: TraceColumns


@dataclass(slots=True)
class Gap:
    """Traces in a row that were dropped."""

    session_seq: int
    count: int
    reason: str


class TraceQueue:
    """Traces and gaps in the order of their numbers, but for a handler's. Any thread may add."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.RLock()
        # Waited on, it lets go of the lock however often it is held: a handler has it once more.
        self.changed = threading.Condition(self._lock)
        self._entries: list[TraceRun | Gap] = []
        self._waiting = 0  # traces, gaps, and the ids of parents
        self._last_gap: Gap | None = None  # the last entry, if it is a gap
        self._is_shut = False
        self.numbered = 0  # of both kinds, since the start
        self.dropped = 0

    def __len__(self) -> int:
        return self._waiting

    def add(self, traces: Iterable[TraceColumns | str]) -> None:
        """Takes them in, or counts them. A text says why there is no trace. Never waits for room.

        The queue has a place more than its capacity, for the gap at its end.
        """
        entries = list(traces)
        with self._lock:
            for each in entries:
                count = 1 if isinstance(each, str) else len(each.message_ids)
                # First: who looks on without the lock counts no less than all.
                number = self.numbered
                self.numbered = number + count
                if self._is_shut:
                    self.dropped += count
                elif isinstance(each, str):
                    self._drop(Gap(number, 1, each))
                elif count:
                    self._take_in(TraceRun(number, each))

    def shut(self) -> None:
        """What comes from now on is counted as dropped, and nothing else."""
        with self._lock:
            self._is_shut = True

    def take(self) -> list[TraceRun | Gap]:
        """All that is there; the queue is empty then."""
        with self._lock:
            entries, self._entries, self._waiting = self._entries, [], 0
            self._last_gap = None
        return entries

    def _take_in(self, run: TraceRun) -> None:
        """As many as there is room for."""
        number, traces = run
        count = len(traces.message_ids)
        sizes = list(accumulate(1 + len(of) for of in traces.parent_ids)) or range(1, count + 1)
        fitting = bisect_right(sizes, self._capacity - self._waiting)
        if fitting:
            self._waiting += sizes[fitting - 1]
            self._last_gap = None
            kept = run if fitting == count else run._replace(traces=traces.only([True] * fitting))
            self._entries.append(kept)
        if fitting < count:
            self._drop(Gap(number + fitting, count - fitting, FULL))

    def _drop(self, gap: Gap) -> None:
        self.dropped += gap.count
        last, is_full = self._last_gap, self._waiting >= self._capacity
        # Not next to each other: a signal's handler dropped some while this was numbered.
        if (
            last is not None
            and last.session_seq + last.count == gap.session_seq
            and (is_full or last.reason == gap.reason)
        ):
            last.count += gap.count
        else:
            self._waiting += 1
            self._last_gap = gap
            self._entries.append(gap)
