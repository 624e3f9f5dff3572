"""Ranges → the windows of a plan: priced, the most urgent first."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shardaudit.backfill.rules.planned import Plan, PlannedWindow, Price, Stretch
from shardaudit.backfill.rules.ranges import Range
from shardaudit.model.retention import (
    PAGE_BYTES,
    PAGE_RECORDS,
    PUT_RECORDS_PER_S,
    RECORD_BYTES,
    bytes_at_most,
    seconds_to_read,
    start_by,
)
from shardaudit.model.verdict import URGENT_WITHIN, Cause

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


def price(wanted: Range, *, read_share: float) -> Price:
    """The most that a shard can hold in the range and a page past it, and how long that takes."""
    length = _length_of_stream(wanted)
    if wanted.is_one_record:
        records, size_bytes = 1, RECORD_BYTES
    else:
        records = math.ceil(length.total_seconds() * PUT_RECORDS_PER_S)
        size_bytes = bytes_at_most(length) + PAGE_BYTES
    pages = max(math.ceil(records / PAGE_RECORDS), math.ceil(size_bytes / PAGE_BYTES))
    past = len(LIMITS) if wanted.start_sequence else PAGES_PAST_THE_END
    calls = pages + past + CALLS_AROUND
    seconds = seconds_to_read(size_bytes, calls=calls, share=read_share)
    return Price(records, size_bytes, calls, math.ceil(seconds * 10) / 10)


def _length_of_stream(wanted: Range) -> timedelta:
    """The time that is read: with sequence numbers, without the margins."""
    if wanted.start_sequence is None:
        return wanted.window.end - wanted.window.start
    return _arrived_in(wanted.stretches)


def _arrived_in(stretches: Sequence[Stretch]) -> timedelta:
    """From the first to the last of them, as they came into the stream."""
    since = min(s.arrives_from for s in stretches)
    until = max(s.arrives_until for s in stretches)
    return until - since + timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan hangs on besides the findings. `sample_rate`: the least share of ids counted.

    `configured`: of `approval.configured_for`.
    """

    stream: str
    as_of: datetime
    retention: timedelta
    read_share: float
    config_digest: str
    takes_all: bool = False
    sample_rate: float = 1.0
    configured: str | None = None


def wanted_stretches(
    stretches: Iterable[Stretch], terms: Terms, *, include_stuck: bool
) -> list[Stretch]:
    """Those that are planned: lost ones, and stuck ones when asked for or when time runs out.

    A stuck shard's consumer may resume and deliver the messages itself: then they land twice.

    Input:
        stretches: by their cause alone.
    """
    stuck: dict[str, list[Stretch]] = defaultdict(list)
    chosen = []
    for stretch in stretches:
        if stretch.cause is Cause.STUCK:
            stuck[stretch.shard_id].append(stretch)
        else:
            chosen.append(stretch)
    for tail in stuck.values():
        because = STUCK_ON_REQUEST if include_stuck else STUCK_NEAR_ITS_END
        if include_stuck or _start_by(tail, terms) <= terms.as_of + URGENT_WITHIN:
            chosen += [replace(stretch, because=because) for stretch in tail]
    return chosen


def _start_by(tail: Sequence[Stretch], terms: Terms) -> datetime:
    """By when reading a shard's tail must begin."""
    size_bytes = bytes_at_most(_arrived_in(tail), sum(s.ids for s in tail) / terms.sample_rate)
    return start_by(min(s.deadline for s in tail), size_bytes, share=terms.read_share)


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
                causes=frozenset(s.cause for s in one.stretches if s.ids),
                gaps=tuple(s.gap_start for s in one.stretches if s.gap_start is not None),
            )
        )
    plan_id = _plan_id(ordered, terms)
    extension = _extension(missing, terms)
    return Plan(plan_id, terms.stream, tuple(windows), extension, terms.configured)


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
        # A number is a place; when what stands there came, late traces may tell otherwise.
        start = one.start_sequence or one.window.start
        places = (start, one.end_sequence, one.ids, one.because)
        # Of what is open the messages say how far it goes.
        until = [str(one.sent.end)] if terms.takes_all and one.sent else []
        ids_sum = sum(stretch.ids_sum for stretch in one.stretches)
        parts.append("\t".join([one.shard_id, *map(str, places), *until, str(ids_sum)]))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return f"{terms.stream}-{digest}"
