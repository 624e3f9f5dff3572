"""The bounded queue between the producer's threads and the one that writes.

Each trace gets a number, written or not: what is dropped is a gap in the numbers, and told as one.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

FULL = "the queue was full"


class Trace(NamedTuple):
    """One message at one place: where it puts a message, an acknowledged record.

    `acked_at`: when that was. `attempt`: of a put, how many times it was on its way, from 1.
    `event`: what was done with it at a place behind that of the put. `parent_ids`: of those that
    it was made from.
    """

    message_id: str
    stream: str
    sent_at: str | int
    shard_id: str
    sequence_number: str
    acked_at: str
    attempt: int | None = None
    event: str | None = None
    parent_ids: tuple[str, ...] = ()


class Numbered(NamedTuple):
    """A trace with its place in the session."""

    session_seq: int
    trace: Trace


@dataclass(slots=True)
class Gap:
    """Traces in a row that were dropped."""

    session_seq: int
    count: int
    reason: str


class TraceQueue:
    """Traces and gaps in the order of their numbers. Any thread may add."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.RLock()
        # Waited on, it lets go of the lock however often it is held: a signal's handler may flush
        # or close what it interrupted while it was adding.
        self.changed = threading.Condition(self._lock)
        self._entries: list[Numbered | Gap] = []
        self._is_shut = False
        self.numbered = 0  # of both kinds, since the start
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, traces: Iterable[Trace | str]) -> None:
        """Takes them in, or counts them. A text says why there is no trace. Never waits for room.

        The queue has a place more than its capacity, for the gap at its end.
        """
        with self._lock:
            if self._is_shut:
                late = sum(1 for _ in traces)
                self.numbered, self.dropped = self.numbered + late, self.dropped + late
                return
            for trace in traces:
                is_full = len(self._entries) >= self._capacity
                number = self.numbered
                self.numbered += 1  # first: who looks on without the lock counts no less than all
                if isinstance(trace, str) or is_full:
                    self._drop(number, trace if isinstance(trace, str) else FULL, is_full=is_full)
                else:
                    numbered = Numbered(number, trace)  # before, as a signal may come with it
                    self._entries.append(numbered)

    def shut(self) -> None:
        """What comes from now on is counted as dropped, and nothing else."""
        with self._lock:
            self._is_shut = True

    def take(self) -> list[Numbered | Gap]:
        """All that is there; the queue is empty then."""
        with self._lock:
            entries, self._entries = self._entries, []
        return entries

    def _drop(self, number: int, reason: str, *, is_full: bool) -> None:
        self.dropped += 1
        last = self._entries[-1] if self._entries else None
        if isinstance(last, Gap) and (is_full or last.reason == reason):
            last.count += 1
        else:
            gap = Gap(number, 1, reason)
            self._entries.append(gap)
