"""What a shard of Kinesis takes and gives, and how long its stream keeps a record.

Source: Kinesis Data Streams, "Quotas and limits". "2 MB" out is read as the lesser of its two
meanings and "1 MB" in as the greater: so no estimate of a reading is too short.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

PUT_RECORDS_PER_S, PUT_BYTES_PER_S = 1000, 2**20
CALLS_PER_S, READ_BYTES_PER_S = 5, 2 * 10**6
PAGE_RECORDS, PAGE_BYTES = 10_000, 10 * 2**20  # of one GetRecords call
RECORD_BYTES = 10 * 2**20  # the most that UpdateMaxRecordSize allows
MAX_RETENTION = timedelta(hours=8760)  # IncreaseStreamRetentionPeriod


def seconds_to_read(size_bytes: float, *, calls: float, share: float) -> float:
    """How long so many bytes and GetRecords calls take at that share of a shard's quotas."""
    return max(size_bytes / (READ_BYTES_PER_S * share), calls / (CALLS_PER_S * share))


def bytes_at_most(length: timedelta, messages: float = math.inf) -> int:
    """What a shard can have taken in a time, at most: all that it takes, or 10 MiB a message.

    Traces tell no sizes. By the time alone few messages of many days would take days to read, and
    be planned long before they must, while their consumer may still deliver them. What is read
    beside them (never traced, or given up) is within what each is rounded up by: a record is at
    most 1 MiB unless the stream was told otherwise. Calls need no bound of their own: in the 5 s
    that a page of 10 MiB takes a shard may be asked 26 times.

    Input:
        messages: of a sample as many as all of them are (see `Eras.least_rate`).
    """
    return math.ceil(min(messages * RECORD_BYTES, length.total_seconds() * PUT_BYTES_PER_S))


def time_to_read(size_bytes: int, *, share: float) -> timedelta:
    """How long so many bytes take at that share of a shard's quotas."""
    return timedelta(seconds=seconds_to_read(size_bytes, calls=0, share=share))


def start_by(until: datetime, size_bytes: int, *, share: float) -> datetime:
    """By when reading so many bytes must begin to have ended then: with `bytes_at_most` no later.

    What the watch tells people, and from when on a plan has what waits before a stopped consumer.
    """
    return until - time_to_read(size_bytes, share=share)


@dataclass(frozen=True, slots=True)
class Shorter:
    """A shorter retention that the stream once had, and when it was last seen to have it."""

    length: timedelta
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Longer:
    """A longer retention that the stream once had, and when it was first seen to be over."""

    length: timedelta
    ended_by: datetime

    def until(self, arrived_at: datetime) -> datetime:
        """Until when what arrived then may have been in the stream by it."""
        return min(arrived_at + self.length, self.ended_by)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long records are kept.

    `shorter`: what left the stream under it is gone, however long records are kept now. When the
    retention was raised is not known, only between which two looks at the stream: what left it in
    between may still be there, and counts as kept. A read that finds nothing costs less than a
    message that is given up.
    `longer`: until they were over the stream had more than it has now: what left a sink then was
    still there to be read.
    """

    length: timedelta
    shorter: Shorter | None = None
    longer: tuple[Longer, ...] = ()

    def until(self, arrived_at: datetime) -> datetime:
        """When a message leaves the stream, or left it, that arrived then."""
        gone_at = self.gone_at(arrived_at)
        return arrived_at + self.length if gone_at is None else gone_at

    def held_since(self, as_of: datetime) -> datetime:
        """What came before has left the stream by then, as `until` has it."""
        since = as_of - self.length
        if self.shorter is None:
            return since
        return max(since, min(as_of, self.shorter.seen_at) - self.shorter.length)

    def longest(self, as_of: datetime) -> timedelta:
        """The age beyond which nothing may have been in the stream of late, whatever it kept."""
        recent = [was.length for was in self.longer if was.ended_by > as_of - self.length]
        return max(self.length, *recent) if recent else self.length

    def gone_at(self, arrived_at: datetime) -> datetime | None:
        """When it left the stream under the shorter retention; None when it did not."""
        if self.shorter is None:
            return None
        gone_at = arrived_at + self.shorter.length
        return gone_at if gone_at < self.shorter.seen_at else None


def observed_retention(seen: Mapping[datetime, timedelta]) -> Retention | None:
    """The retention of a stream by all that was observed; None when it never was.

    Input:
        seen: when somebody looked -> the retention that it had.
    """
    if not seen:
        return None
    length = seen[max(seen)]
    last_seen = {seen[at]: at for at in sorted(seen)}
    # Of several the one under which most is gone.
    shorter = [Shorter(kept, at) for kept, at in last_seen.items() if kept < length]
    worst = max(shorter, key=lambda one: one.seen_at - one.length, default=None)
    longer = (
        Longer(kept, min(after for after in seen if after > at))
        for kept, at in last_seen.items()
        if kept > length
    )
    return Retention(length, worst, tuple(longer))
