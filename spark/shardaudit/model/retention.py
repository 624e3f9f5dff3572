"""What a shard of Kinesis takes and gives, and how long its stream keeps a record.

Source: Kinesis Data Streams, "Quotas and limits". "2 MB" out is read as the lesser of its two
meanings and "1 MB" in as the greater: so no estimate of a reading is too short.
"""

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


@dataclass(frozen=True, slots=True)
class Shorter:
    """A shorter retention that the stream once had, and when it was last seen to have it."""

    length: timedelta
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Retention:
    """How long records are kept.

    `shorter`: what left the stream under it is gone, however long records are kept now. When the
    retention was raised is not known, only between which two looks at the stream: what left it in
    between may still be there, and counts as kept. A read that finds nothing costs less than a
    message that is given up.
    """

    length: timedelta
    shorter: Shorter | None = None

    def until(self, arrived_at: datetime) -> datetime:
        """When a message leaves the stream, or left it, that arrived then."""
        gone_at = self.gone_at(arrived_at)
        return arrived_at + self.length if gone_at is None else gone_at

    def gone_at(self, arrived_at: datetime) -> datetime | None:
        """When it left the stream under the shorter retention; None when it did not."""
        if self.shorter is None:
            return None
        gone_at = arrived_at + self.shorter.length
        return gone_at if gone_at < self.shorter.seen_at else None


def observed_retention(seen: dict[timedelta, datetime]) -> Retention | None:
    """The retention of a stream by all that was observed; None when it never was.

    Input:
        seen: each retention that it had, and when it was last seen to have it.
    """
    if not seen:
        return None
    length = max(seen, key=lambda kept: (seen[kept], kept))
    # Of several the one under which most is gone.
    shorter = [Shorter(kept, at) for kept, at in seen.items() if kept < length]
    worst = max(shorter, key=lambda one: one.seen_at - one.length, default=None)
    return Retention(length, worst)
