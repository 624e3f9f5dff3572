"""The oracle's silences: of each hour whether the shard, or the stream, had a message in it."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.history import EPOCH, History, Question

HOUR = timedelta(hours=1)
DAY, WEEK = 24, 168


@dataclass(frozen=True, slots=True)
class SilentSpan:
    """`[start, end)` in which a shard was silent and used not to be; whether that is told."""

    shard_id: str
    start: datetime
    end: datetime
    told: bool

    def covers(self, shard_id: str, bucket: datetime) -> bool:
        """Whether a cell lies in it."""
        return shard_id == self.shard_id and self.start <= bucket < self.end


def silent_spans(
    history: History, question: Question, patience: Mapping[str, timedelta]
) -> list[SilentSpan]:
    """The silences of all shards that ever had a message, and of the stream as a whole on each.

    `patience`: how long a landing may take on each shard; the stream's is the longest.
    """
    buckets: dict[str, set[datetime]] = defaultdict(set)
    messages = [(m.shard_id, m.sent_at) for m in history.traces]
    for shard_id, sent_at in messages + [(m.shard_id, m.sent_at) for m in history.rows]:
        if question.bucket_start(sent_at) <= question.as_of:
            buckets[shard_id].add(question.bucket_start(sent_at))
    slow = {shard_id: patience.get(shard_id, question.settle_grace) for shard_id in buckets}
    longest = max(slow.values(), default=question.settle_grace)
    late = _late_hours(history, question)
    births = {
        shard_id: record_begins({_hour(b) for b in own}, late[shard_id])
        for shard_id, own in buckets.items()
    }
    everything = {b for own in buckets.values() for b in own}
    of_stream = _spans(everything, question, longest, min(births.values(), default=0))
    own_spans = {
        name: _spans(own, question, slow[name], births[name]) for name, own in buckets.items()
    }
    silent = [name for name, own in own_spans.items() if own and own[-1][1] == question.as_of]
    lasts = {name: max(map(_hour, buckets[name])) for name in silent}
    return [
        SilentSpan(shard_id, *span)
        for shard_id in buckets
        # Where the stream as a whole is silent, that counts.
        for span in (
            *of_stream,
            *([] if _is_resharded(shard_id, lasts, births) else own_spans[shard_id]),
        )
    ]


def _is_resharded(shard_id: str, lasts: Mapping[str, int], births: Mapping[str, int]) -> bool:
    """Whether so many others began that as many may have ended as did: a merge ends two for one."""
    if shard_id not in lasts:
        return False
    last = lasts[shard_id]
    begun = [b for name, b in births.items() if name != shard_id and abs(b - last) <= 1]
    together = [name for name, hour in lasts.items() if hour == last]
    return len(together) <= 2 * len(begun)


def _late_hours(history: History, question: Question) -> dict[str, set[int]]:
    """Of each shard the hours of which all that was traced came more than a day later."""
    delays: dict[tuple[str, int], list[timedelta]] = defaultdict(list)
    for trace in history.traces:
        start = question.bucket_start(trace.sent_at)
        delays[trace.shard_id, _hour(start)].append(trace.arrived_at - start)
    late: dict[str, set[int]] = defaultdict(set)
    for (shard_id, hour), after in delays.items():
        if min(after) > DAY * HOUR:
            late[shard_id].add(hour)
    return late


def record_begins(active: set[int], late: Collection[int] = ()) -> int:
    """The first hour of a record: others follow. A single message may be of a clock that is off.

    What came `late` a device may have held back.
    """
    timely = active.difference(late)
    for hour in sorted(timely):
        week = sorted(h for h in timely if hour <= h < hour + WEEK)
        if len(week) >= 8 and week[1] - hour <= DAY:
            return hour
    return min(timely or active)


def _spans(
    buckets: set[datetime], question: Question, patience: timedelta, born: int
) -> list[tuple[datetime, datetime, bool]]:
    active = {_hour(bucket) for bucket in buckets}
    until = _hour(question.as_of - patience)
    if not active:
        return []
    past: list[tuple[int, int]] = []
    spans = []
    hour = min(active)
    while hour < until:
        if hour in active:
            hour += 1
            continue
        start = hour
        while hour < until and hour not in active:
            hour += 1
        lasts = hour == until and not any(later >= until for later in active)
        told, doubted, missed = _said(active, past, born=born, start=start, end=hour)
        if not told:
            past.append((start, missed))
        if told or (lasts and doubted):
            ends = [b + question.bucket for b in buckets if _hour(b) == start - 1]
            exact = max(ends) if lasts else EPOCH + start * HOUR
            spans.append((exact, question.as_of if lasts else EPOCH + hour * HOUR, told))
    return spans


def _said(
    active: set[int], past: list[tuple[int, int]], *, born: int, start: int, end: int
) -> tuple[bool, bool, int]:
    """Whether a silence is told, whether it is doubted while it lasts, and what it missed."""
    day = [h for h in range(start - DAY, start) if h in active]
    week = [h for h in range(start - WEEK, start) if h in active]
    missed = sum(1 for h in range(start, end) if start - born >= WEEK and h - WEEK in active)
    usual = max((m for at, m in past if start - WEEK <= at < start), default=0)
    if start < born:
        return False, False, 0
    if start - born < WEEK or (start - born < 2 * WEEK and len(day) < DAY):
        busy, told = len(day) >= 8, end - start >= 72
        return busy and told, busy and any(h - DAY in day for h in range(start, end)), missed
    busy = start - born < 2 * WEEK or len(week) >= 24
    return busy and missed >= min(3 * usual + 4, len(week)), busy and missed > usual, missed


def _hour(at: datetime) -> int:
    return (at - EPOCH) // HOUR
