"""The oracle's silences: of each hour whether the shard, or the stream, had a message in it."""

from collections import defaultdict
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


def silent_spans(history: History, question: Question) -> list[SilentSpan]:
    """The silences of all shards that ever had a message, and of the stream as a whole on each."""
    buckets: dict[str, set[datetime]] = defaultdict(set)
    for trace in history.traces:
        buckets[trace.shard_id].add(question.bucket_start(trace.sent_at))
    for row in history.rows:
        buckets[row.shard_id].add(question.bucket_start(row.sent_at))
    of_stream = _spans({b for own in buckets.values() for b in own}, question)
    births = {shard_id: min(own) for shard_id, own in buckets.items()}
    return [
        SilentSpan(shard_id, *span)
        for shard_id, own in buckets.items()
        # Where the stream as a whole is silent, that counts.
        for span in (
            *of_stream,
            *([] if _is_resharded(shard_id, own, births) else _spans(own, question)),
        )
    ]


def _is_resharded(shard_id: str, own: set[datetime], births: dict[str, datetime]) -> bool:
    last = max(map(_hour, own), default=0)
    others = [_hour(born) for shard, born in births.items() if shard != shard_id]
    mine = _hour(births[shard_id]) if shard_id in births else None
    return any(abs(born - last) <= 1 and born != mine for born in others)


def _spans(buckets: set[datetime], question: Question) -> list[tuple[datetime, datetime, bool]]:
    active = {_hour(bucket) for bucket in buckets}
    until = _hour(question.as_of - question.settle_grace)
    if not active:
        return []
    born = min(active)
    past: list[tuple[int, int]] = []
    spans = []
    hour = born
    while hour < until:
        if hour in active:
            hour += 1
            continue
        start = hour
        while hour < until and hour not in active:
            hour += 1
        lasts = hour == until and not any(later >= until for later in active)
        missed = sum(1 for h in range(start, hour) if start - born < WEEK or h - WEEK in active)
        usual = max((m for at, m in past if start - WEEK <= at < start), default=0)
        if start - born >= 2 * WEEK:
            busy = sum(1 for h in range(start - WEEK, start) if h in active) >= 24
        else:
            busy = all(h in active for h in range(start - DAY, start))
        told = busy and missed >= (3 * usual + 4 if start - born >= WEEK else 72)
        if not told:
            past.append((start, missed if start - born >= WEEK else 0))
        if told or (busy and lasts and missed > usual):
            ends = [b + question.bucket for b in buckets if _hour(b) == start - 1]
            exact = max(ends) if lasts else EPOCH + start * HOUR
            spans.append((exact, EPOCH + hour * HOUR, told))
    return spans


def _hour(at: datetime) -> int:
    return (at - EPOCH) // HOUR
