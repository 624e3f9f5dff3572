"""Missing messages → ranges of shards: neighbours joined, margins added, cut to a length."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from shardaudit.model.backfill import Stretch
from shardaudit.model.sequence import sequence_order
from shardaudit.model.window import Window

# A gap of that many seconds holds at most a page: GetRecords gives 10 MiB, a shard takes 1 MiB/s.
JOINED_GAP = timedelta(seconds=10)
# Less is lost when a run ends early, and one page of it never fills a driver.
MAX_LENGTH = timedelta(minutes=15)
# The producer's clock is not the stream's, and arrival times are not in order (Kinesis API).
BEFORE = timedelta(minutes=2)
# Also a producer that held the message back: the KPL gives up after 30 s (RecordTtl).
AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Range:
    """Where to read: by sequence numbers (inclusive) where they are known, else by arrival."""

    shard_id: str
    because: str
    window: Window
    stretches: tuple[Stretch, ...]
    start_sequence: str | None = None
    end_sequence: str | None = None

    @property
    def ids(self) -> int:
        """How many messages it must bring."""
        return sum(stretch.ids for stretch in self.stretches)

    @property
    def deadline(self) -> datetime:
        """That of its oldest message."""
        return min(stretch.deadline for stretch in self.stretches)

    @property
    def is_one_record(self) -> bool:
        """Whether it begins and ends with the same record."""
        return self.start_sequence is not None and self.start_sequence == self.end_sequence


def ranges(stretches: Iterable[Stretch]) -> list[Range]:
    """Ranges that hold every message of the stretches, by shard and time.

    Input:
        stretches: at most one per (shard, bucket, because).
    """
    ordered = sorted(stretches, key=lambda s: (s.shard_id, s.because, s.first_sent_at))
    together = groupby(ordered, key=lambda s: (s.shard_id, s.because))
    return [_range(joined) for _, group in together for joined in _joined(list(group))]


def _joined(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """Neighbours of one shard, as long as the gap is cheap and the whole not too long."""
    found: list[list[Stretch]] = []
    until = None
    for stretch in stretches:
        is_near = until is not None and stretch.first_sent_at - until <= JOINED_GAP
        fits = found and stretch.last_sent_at - found[-1][0].first_sent_at <= MAX_LENGTH
        if is_near and fits and _alike(found[-1][0], stretch):
            found[-1].append(stretch)
        else:
            found.append([stretch])
        until = max(until or stretch.last_sent_at, stretch.last_sent_at)
    return found


def _alike(one: Stretch, other: Stretch) -> bool:
    """Whether both are cut in the same way: a known place is not widened by an unknown one."""
    return (one.first_sequence is None) == (other.first_sequence is None)


def _range(stretches: Sequence[Stretch]) -> Range:
    start = min(stretch.first_sent_at for stretch in stretches) - BEFORE
    end = max(stretch.last_sent_at for stretch in stretches) + AFTER
    firsts = [s.first_sequence for s in stretches if s.first_sequence is not None]
    lasts = [s.last_sequence for s in stretches if s.last_sequence is not None]
    return Range(
        shard_id=stretches[0].shard_id,
        because=stretches[0].because,
        window=Window(start, end),
        stretches=tuple(stretches),
        start_sequence=min(firsts, key=sequence_order, default=None),
        end_sequence=max(lasts, key=sequence_order, default=None),
    )


def whole_ranges(
    shard_ids: Iterable[str], window: Window, stretches: Sequence[Stretch], *, deadline: datetime
) -> list[Range]:
    """The window of each shard, cut to a length, whatever is in it; expected are the stretches'.

    Input:
        window: of `sent_at`; what is read has the margins around it.
        deadline: of what arrived at the window's start.
    """
    found = []
    for shard_id in sorted(shard_ids):
        start = window.start
        while start < window.end:
            part = Window(start, min(start + MAX_LENGTH, window.end))
            inside = [
                s for s in stretches if s.shard_id == shard_id and part.covers(s.bucket_start)
            ]
            empty = Stretch(shard_id, start, "", 0, start, start, deadline + (start - window.start))
            wide = Window(part.start - BEFORE, part.end + AFTER)
            found.append(Range(shard_id, "asked for", wide, tuple(inside or [empty])))
            start = part.end
    return found
