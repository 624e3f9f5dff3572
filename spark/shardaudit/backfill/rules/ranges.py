"""Missing messages → ranges of shards to read: joined where they are near, cut where long."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any  # what a row of a table holds

from shardaudit.backfill.rules.planned import Stretch
from shardaudit.model.sequence import sequence_order
from shardaudit.model.verdict import Cause
from shardaudit.model.window import Window

# A gap of that many seconds holds at most a page: GetRecords gives 10 MiB, a shard takes 1 MiB/s.
JOINED_GAP = timedelta(seconds=10)
# Less is lost when a run ends early, and one page of it never fills a driver.
MAX_LENGTH = timedelta(minutes=15)
# The producer's clock is not the stream's, and arrival times are not in order (Kinesis API).
BEFORE = timedelta(minutes=2)
# Also a producer that held the message back: the KPL gives up after 30 s (RecordTtl).
AFTER = timedelta(minutes=5)
# A shard whose messages are known to take longer is read as much longer, up to here: half an hour
# to read at the shard's full rate. What was acknowledged later still is read where it was.
LONGEST_AFTER = timedelta(hours=1)
ASKED_FOR = "asked for"


@dataclass(frozen=True, slots=True)
class Range:
    """Where to read: by sequence numbers (inclusive) where they are known, else by arrival.

    `sent`: its messages were sent then; None in a range that is read for those of another alone.
    """

    shard_id: str
    because: str
    window: Window
    sent: Window | None
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


def gap_stretch(gap: Mapping[str, Any], window: Window | None) -> Stretch:
    """A gap as a stretch, where its messages were sent, or, too late for that, where they arrived.

    Input:
        gap: a row of GAPS; window: that is asked for; None: the range is cut by arrival anyway.
    """
    first, last = gap["arrived_from"], gap["arrived_until"]
    sent_until = gap["bucket_end"] - datetime.resolution
    is_late = window is not None and last >= window.end + AFTER - BEFORE
    return Stretch(
        shard_id=gap["shard_id"],
        bucket_start=last if is_late else gap["bucket_start"],
        cause=Cause(gap["cause"]),
        ids=gap["count"],
        first_sent_at=gap["bucket_start"],
        last_sent_at=sent_until,
        deadline=gap["recoverable_until"],
        first_sequence=gap["start_sequence_number"],
        last_sequence=gap["end_sequence_number"],
        first_arrival=first,
        last_arrival=last,
        # Its traces may say of none when it was acknowledged.
        unacked_until=None if gap["start_sequence_number"] else sent_until,
        gap_start=gap["bucket_start"],
    )


def after(delay: timedelta | None) -> timedelta:
    """How long behind its sending a message is looked for, by the shard's own slowest one."""
    return min(max(AFTER, delay or AFTER), LONGEST_AFTER)


def ranges(
    stretches: Iterable[Stretch], *, delays: Mapping[str, timedelta] | None = None
) -> list[Range]:
    """Ranges that hold every message of the stretches, by shard and time.

    Input:
        stretches: at most one per (shard, bucket, cause), and one that is a gap.
        delays: how long the slowest message of a shard took to arrive, of shards that are known.
    """
    ordered = sorted(stretches, key=lambda s: (s.shard_id, s.why, s.arrives_from))
    together = groupby(ordered, key=lambda s: (s.shard_id, s.why))
    known = delays or {}
    return [
        _range(joined, delay=known.get(shard_id))
        for (shard_id, _), group in together
        for joined in _joined(list(group), margins=BEFORE + after(known.get(shard_id)))
    ]


def _joined(stretches: Sequence[Stretch], *, margins: timedelta) -> list[list[Stretch]]:
    """Neighbours of one shard, as long as the gap is cheap and the whole not too long.

    Without sequence numbers the margins are read as well: a gap within them costs nothing.
    """
    found: list[list[Stretch]] = []
    until = None
    for stretch in stretches:
        cheap = margins if stretch.first_sequence is None else JOINED_GAP
        is_near = until is not None and stretch.arrives_from - until <= cheap
        fits = found and stretch.arrives_until - found[-1][0].arrives_from <= MAX_LENGTH
        if is_near and fits and _alike(found[-1][0], stretch):
            found[-1].append(stretch)
        else:
            found.append([stretch])
        until = max(until or stretch.arrives_until, stretch.arrives_until)
    return found


def _alike(one: Stretch, other: Stretch) -> bool:
    """Whether both are cut in the same way: a known place is not widened by an unknown one."""
    return (one.first_sequence is None) == (other.first_sequence is None)


def _range(stretches: Sequence[Stretch], *, delay: timedelta | None) -> Range:
    sent_from = min(stretch.first_sent_at for stretch in stretches)
    sent_until = max(stretch.last_sent_at for stretch in stretches)
    unacked = [s.unacked_until + after(delay) for s in stretches if s.unacked_until is not None]
    end = max([stretch.arrives_until + AFTER for stretch in stretches] + unacked)
    firsts = [s.first_sequence for s in stretches if s.first_sequence is not None]
    lasts = [s.last_sequence for s in stretches if s.last_sequence is not None]
    return Range(
        shard_id=stretches[0].shard_id,
        because=stretches[0].why,
        window=Window(min(stretch.arrives_from for stretch in stretches) - BEFORE, end),
        sent=Window(sent_from, sent_until + datetime.resolution),
        stretches=tuple(stretches),
        start_sequence=min(firsts, key=sequence_order, default=None),
        end_sequence=max(lasts, key=sequence_order, default=None),
    )


def is_read_with(window: Window, stretch: Stretch) -> bool:
    """Whether a range by hand reads the messages; else they came too late, and where they stand."""
    is_late = stretch.arrives_until >= window.end + AFTER - BEFORE
    return window.covers(stretch.bucket_start) and not (is_late and stretch.first_sequence)


def whole_ranges(
    shard_ids: Iterable[str],
    window: Window,
    stretches: Sequence[Stretch],
    *,
    deadline: datetime,
    delays: Mapping[str, timedelta] | None = None,
) -> list[Range]:
    """The window of each shard, cut to a length, whatever is in it; expected are the stretches'.

    Neighbours overlap by a margin; behind the last one is read what may have arrived late.

    Input:
        window: of `sent_at`; deadline: of what arrived at its start; delays: as of `ranges`.
        stretches: by the bucket in which their messages were sent.
    """
    found, inside = [], _by_cut(stretches, window)
    for shard_id in sorted(set(shard_ids)):
        until = window.end + after((delays or {}).get(shard_id))
        start = window.start
        while start < until:
            end = start + MAX_LENGTH
            if end >= window.end and until - start <= MAX_LENGTH + AFTER:
                end = until
            sent = Window(start, min(end, window.end)) if start < window.end else None
            due = deadline + (start - window.start)
            empty = Stretch(shard_id, start, Cause.LOST, 0, start, start, due)
            read = Window(start - BEFORE, end)
            of_cut = inside.get((shard_id, start), [empty])
            found.append(Range(shard_id, ASKED_FOR, read, sent, tuple(of_cut)))
            start = end
    return found


def _by_cut(
    stretches: Iterable[Stretch], window: Window
) -> dict[tuple[str, datetime], list[Stretch]]:
    """Those that begin in the window, by their shard and the start of their cut of it."""
    found: dict[tuple[str, datetime], list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        if window.covers(at := stretch.bucket_start):
            cut = at - (at - window.start) % MAX_LENGTH
            found[stretch.shard_id, cut].append(stretch)
    return found
