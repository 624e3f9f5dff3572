"""Missing messages → windows of shards: joined, cut, priced, the most urgent first."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any  # what a row of a table holds

from shardaudit.backfill.rules.planned import Plan, PlannedWindow, Price, Stretch
from shardaudit.model.retention import (
    PAGE_BYTES,
    PAGE_RECORDS,
    PUT_BYTES_PER_S,
    PUT_RECORDS_PER_S,
    RECORD_BYTES,
    seconds_to_read,
)
from shardaudit.model.sequence import sequence_order
from shardaudit.model.verdict import URGENT_WITHIN, Cause
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

# GetShardIterator and a call that brings nothing; behind the end of a time, the batches that must
# lie past it, because arrival times are not in order.
CALLS_AROUND = 2
PAGES_PAST_THE_END = 3
# Between two sequence numbers pages grow: the last one reaches past the end, and is paid for as
# the others are.
LIMITS = (500, 2_000, 8_000, PAGE_RECORDS)

# From here on a stopped shard is urgent, and may not come back in time.
STUCK_NEAR_ITS_END = f"stuck, and it must start within {URGENT_WITHIN // timedelta(hours=1)} h"
STUCK_ON_REQUEST = "stuck, asked for"
_HOUR = timedelta(hours=1)


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
        because=gap["cause"],
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
        stretches: at most one per (shard, bucket, because), and one that is a gap.
        delays: how long the slowest message of a shard took to arrive, of shards that are known.
    """
    ordered = sorted(stretches, key=lambda s: (s.shard_id, s.because, s.arrives_from))
    together = groupby(ordered, key=lambda s: (s.shard_id, s.because))
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
        because=stretches[0].because,
        window=Window(min(stretch.arrives_from for stretch in stretches) - BEFORE, end),
        sent=Window(sent_from, sent_until + datetime.resolution),
        stretches=tuple(stretches),
        start_sequence=min(firsts, key=sequence_order, default=None),
        end_sequence=max(lasts, key=sequence_order, default=None),
    )


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
    found = []
    for shard_id in sorted(set(shard_ids)):
        until = window.end + after((delays or {}).get(shard_id))
        start = window.start
        while start < until:
            end = start + MAX_LENGTH
            if end >= window.end and until - start <= MAX_LENGTH + AFTER:
                end = until
            sent = Window(start, min(end, window.end)) if start < window.end else None
            inside = [
                s
                for s in stretches
                if s.shard_id == shard_id and sent is not None and sent.covers(s.bucket_start)
            ]
            empty = Stretch(shard_id, start, "", 0, start, start, deadline + (start - window.start))
            read = Window(start - BEFORE, end)
            found.append(Range(shard_id, ASKED_FOR, read, sent, tuple(inside or [empty])))
            start = end
    return found


def price(wanted: Range, *, read_share: float) -> Price:
    """The most that a shard can hold in the range and a page past it, and how long that takes."""
    seconds_of_stream = _seconds_of_stream(wanted)
    if wanted.is_one_record:
        records, size_bytes = 1, RECORD_BYTES
    else:
        records = math.ceil(seconds_of_stream * PUT_RECORDS_PER_S)
        size_bytes = math.ceil(seconds_of_stream * PUT_BYTES_PER_S) + PAGE_BYTES
    pages = max(math.ceil(records / PAGE_RECORDS), math.ceil(size_bytes / PAGE_BYTES))
    past = len(LIMITS) if wanted.start_sequence else PAGES_PAST_THE_END
    calls = pages + past + CALLS_AROUND
    seconds = seconds_to_read(size_bytes, calls=calls, share=read_share)
    return Price(records, size_bytes, calls, math.ceil(seconds * 10) / 10)


def _seconds_of_stream(wanted: Range) -> float:
    """The time that is read: with sequence numbers, without the margins."""
    if wanted.start_sequence is None:
        length = wanted.window.end - wanted.window.start
    else:
        since = min(s.arrives_from for s in wanted.stretches)
        until = max(s.arrives_until for s in wanted.stretches)
        length = until - since + timedelta(seconds=1)
    return length.total_seconds()


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan hangs on besides the findings."""

    stream: str
    as_of: datetime
    retention: timedelta
    read_share: float
    config_digest: str
    takes_all: bool = False


def wanted_stretches(
    stretches: Iterable[Stretch], terms: Terms, *, include_stuck: bool
) -> list[Stretch]:
    """Those that are planned: lost ones, and stuck ones when asked for or when time runs out.

    A stuck shard's consumer may resume and deliver the messages itself: then they land twice.

    Input:
        stretches: `because` is the finding's cause.
    """
    stuck: dict[str, list[Stretch]] = defaultdict(list)
    chosen = []
    for stretch in stretches:
        if stretch.because == Cause.STUCK:
            stuck[stretch.shard_id].append(stretch)
        else:
            chosen.append(stretch)
    for tail in stuck.values():
        because = STUCK_ON_REQUEST if include_stuck else STUCK_NEAR_ITS_END
        if include_stuck or _start_by(tail, terms) <= terms.as_of + URGENT_WITHIN:
            chosen += [replace(stretch, because=because) for stretch in tail]
    return chosen


def _start_by(tail: Sequence[Stretch], terms: Terms) -> datetime:
    """Until when reading a shard's tail must begin to end in time, at the shard's greatest rate."""
    first, last = min(s.first_sent_at for s in tail), max(s.last_sent_at for s in tail)
    size_bytes = (last - first).total_seconds() * PUT_BYTES_PER_S
    to_read = seconds_to_read(size_bytes, calls=size_bytes / PAGE_BYTES, share=terms.read_share)
    return min(s.deadline for s in tail) - timedelta(seconds=to_read)


def planned(wanted: Sequence[Range], terms: Terms) -> Plan:
    """The plan. What cannot be read in time is in it, marked: a part of it may still be there."""
    ordered = sorted(wanted, key=lambda r: (r.deadline, r.shard_id, r.window.start, r.because))
    done_at: dict[str, datetime] = defaultdict(lambda: terms.as_of)
    windows, missing = [], []
    digits = max(5, len(str(len(ordered))))  # so that a sort by text is in their order, too
    for number, one in enumerate(ordered, start=1):
        cost = price(one, read_share=terms.read_share)
        done_at[one.shard_id] += timedelta(seconds=cost.seconds)  # one after the other on a shard
        late_by = done_at[one.shard_id] - one.deadline
        if late_by > timedelta(0):
            missing.append((one.deadline, late_by))
        windows.append(
            PlannedWindow(
                window_id=f"{number:0{digits}}",
                shard_id=one.shard_id,
                window=one.window,
                sent=one.sent,
                because=one.because,
                expected_ids=one.ids,
                deadline=one.deadline,
                price=cost,
                feasible=late_by <= timedelta(0),
                start_sequence=one.start_sequence,
                end_sequence=one.end_sequence,
                takes_all=terms.takes_all,
                buckets=tuple(
                    s.bucket_start for s in one.stretches if s.ids and s.gap_start is None
                ),
                gaps=tuple(s.gap_start for s in one.stretches if s.gap_start is not None),
            )
        )
    plan_id = _plan_id(ordered, terms)
    return Plan(plan_id, terms.stream, tuple(windows), _extension(missing, terms))


def _extension(missing: Sequence[tuple[datetime, timedelta]], terms: Terms) -> timedelta | None:
    """The retention (whole hours) that makes the late ones feasible; what expired stays gone."""
    late = [by for deadline, by in missing if deadline > terms.as_of]
    if not late:
        return None
    return math.ceil((terms.retention + max(late)) / _HOUR) * _HOUR


def _plan_id(ordered: Sequence[Range], terms: Terms) -> str:
    """The same findings, range and configuration give the same id, whenever it is planned."""
    parts = [terms.config_digest, str(terms.takes_all)]
    for one in ordered:
        places = (one.window.start, one.start_sequence, one.end_sequence, one.ids, one.because)
        # Of what is open the messages say how far it goes.
        until = [str(one.sent.end)] if terms.takes_all and one.sent else []
        ids_sum = sum(stretch.ids_sum for stretch in one.stretches)
        parts.append("\t".join([one.shard_id, *map(str, places), *until, str(ids_sum)]))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return f"{terms.stream}-{digest}"
