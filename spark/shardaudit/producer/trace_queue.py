"""The bounded queue between the producer's threads and the one that writes.

Each trace gets a number, written or not: what is dropped is a gap in the numbers, and told as one.

A signal's handler may add, flush or close in the thread that it interrupted while that was adding.
Python runs it where a function begins or has ended: between the reading of a number or a gap and
its change there is no call.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, cast

FULL = "the queue was full"


# Plain tuples: thousands of them wait, and Python's collector forgets those of texts and numbers at
# once, while objects of a class of ours made it go through all that the producer has.

# What traces have in common: the stream; when Kinesis answered; the attempt, of a put, from 1; the
# event, of a place behind that of the put.
TraceOccasion = tuple[str, str, int | None, str | None]

# One message at one place (where it puts a message, an acknowledged record): message id, sent_at,
# shard id, sequence number, the occasion, and the ids of those that it was made from.
Trace = tuple[str, str | int, str, str, TraceOccasion, tuple[str, ...]]


class TraceRun(NamedTuple):
    """Traces with their places in the session, which follow each other."""

    session_seq: int  # of the first
    traces: list[Trace]


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
        self._waiting = 0  # traces and gaps
        self._last_gap: Gap | None = None  # the last entry, if it is a gap
        self._is_shut = False
        self.numbered = 0  # of both kinds, since the start
        self.dropped = 0

    def __len__(self) -> int:
        return self._waiting

    def add(self, traces: Iterable[Trace | str]) -> None:
        """Takes them in, or counts them. A text says why there is no trace. Never waits for room.

        The queue has a place more than its capacity, for the gap at its end.
        """
        with self._lock:
            for kind, alike in groupby(traces, type):
                some = list(alike)
                count = len(some)
                # First: who looks on without the lock counts no less than all.
                number = self.numbered
                self.numbered = number + count
                if self._is_shut:
                    self.dropped += count
                elif issubclass(kind, str):
                    for at, reason in enumerate(cast("list[str]", some), number):
                        self._drop(Gap(at, 1, reason))
                else:
                    self._take_in(TraceRun(number, cast("list[Trace]", some)))

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
        room = max(0, self._capacity - self._waiting)
        count = len(traces)
        if count <= room:
            self._waiting += count
            self._last_gap = None
            self._entries.append(run)
            return
        if room:
            self._take_in(TraceRun(number, traces[:room]))
        self._drop(Gap(number + room, count - room, FULL))

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
