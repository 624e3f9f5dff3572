"""When an audit's canary was sent and landed: its rows on either side, what earlier audits left.

Its buckets begin a microsecond beside whole seconds, so that none of them is one of the stream's;
its shards and ids have a prefix that the ingest refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.audit.rules.canary.canary import (
    ANCIENT,
    DAMAGED,
    FRESH,
    MESSAGES,
    OLD,
    OUTAGE,
    PLANTED_GAPS,
    SEEN,
    Earlier,
    Planted,
    RecordKey,
)
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.hours import slot
from shardaudit.model.input_columns import CANARY
from shardaudit.model.retention import Retention
from shardaudit.model.sequence import sequence_order
from shardaudit.model.verdict import Kind
from shardaudit.model.window import Window

_TICK, _SECOND, _DAY = timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=1)

GAP_CLOSED = 1_500  # that a gap had that is over by now

PlannedSpan = tuple[datetime, datetime]
_Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class CanaryPlan:
    """The canary of one audit of a window. `damage`: the stream's own; `over_by`: `AuditFacts`."""

    window: Window
    as_of: datetime
    over_by: datetime
    bucket: timedelta
    settle_grace: timedelta
    retention: Retention
    trace_coverage_floor: float
    damage: Damage

    @property
    def starts(self) -> dict[str, datetime]:
        """The start of each slot; the old ones end when the grace begins, or just before."""
        oldest = _beside_a_second(self.as_of - self.settle_grace) - len(OLD) * self.bucket
        outage = oldest - 2 * slot(self.bucket)  # in an hour of its own
        expired = _beside_a_second(min(self.over_by - self.retention.longest(self.over_by), outage))
        return {
            SEEN: expired - 2 * self.bucket,
            ANCIENT: expired - self.bucket,
            OUTAGE: outage,
            **{name: oldest + i * self.bucket for i, name in enumerate(OLD)},
            FRESH: _beside_a_second(self.as_of - self._age),
        }

    @property
    def _age(self) -> timedelta:
        """How old what is fresh may be, to the second: half of what would be too old."""
        half = min(self.settle_grace, self.bucket) / 2
        return half if half > _SECOND else timedelta(0)

    @property
    def windows(self) -> list[Window]:
        """The spans of its cells."""
        starts = self.starts
        spans = [(SEEN, ANCIENT), (OUTAGE, OUTAGE), (OLD[0], OLD[-1]), (FRESH, FRESH)]
        return [Window(starts[first], starts[last] + self.bucket) for first, last in spans]

    @property
    def judged_damage(self) -> Damage:
        """The damage that the audit is told: of the canary's buckets one has it, and no other."""
        dark = (self.starts[DAMAGED], self.starts[DAMAGED] + _TICK)
        starts = sorted(self.starts.values())
        return Damage(
            traces=(*_without(self.damage.traces, starts), dark),
            sink=(*_without(self.damage.sink, starts), dark),
        )

    @property
    def judged_bucket(self) -> datetime | None:
        """A bucket of the window without damage: there findings are closed. None: all have it."""
        spans = self.damage.traces + self.damage.sink
        candidates = [self.window.start, *sorted(until for _, until in spans)]
        return next(
            (
                start
                for start in candidates
                if self.window.covers(start)
                and not any(since <= start < until for since, until in spans)
            ),
            None,
        )

    def traces(self) -> Iterator[tuple[Planted, _Row]]:
        """The traces of each message: rows of TRACES, without whose they are."""
        for message in MESSAGES:
            for index, record in enumerate(message.sent):
                row = self._placed(message, record)
                row |= {"counted": index == 0, "location": "producer"}
                if message.slot_of(record) != message.slot:
                    row["counted_in"] = self.starts[message.slot]
                yield message, row | self._acknowledged(message)

    def rows(self) -> Iterator[tuple[str, _Row]]:
        """Deliveries: `kept`, `gone` (by the sink's second batch) or `later` (with it)."""
        for message in MESSAGES:
            for record in message.landed:
                yield "gone" if record in message.gone else "kept", self._landed(message, record)
            for record in message.own:
                yield "kept", self._landed(message, record) | {"is_own": True}
            for record in message.later:
                yield "later", self._landed(message, record)

    def evidence(self) -> Iterator[_Row]:
        """What was read after the sink's first batch: rows of EVIDENCE."""
        for message in MESSAGES:
            if message.in_evidence or message.was_read or message.later:
                [(shard, number)] = message.sent
                yield self._placed(message, (shard, number)) | {
                    "sent_count": 1,
                    "counted": 1,
                    "landed_count": 0,
                    "counted_key": (len(number), number) if number else None,
                    "sent_sequences": [number],
                    "landed_sequences": [],
                    "arrived_at": self.arrived_at(message),
                    "location": "producer",
                }

    def findings(self) -> Iterator[_Row]:
        """What an earlier audit found: rows of FINDINGS."""
        for message in MESSAGES:
            before = message.before
            if before is None:
                continue
            yield {
                "shard_id": f"{CANARY}{message.home}",
                "message_id": f"{CANARY}{message.name}",
                "kind": before.kind.value,
                "cause": before.cause.value,
                "state": before.state.value,
                "sent_at": self._known_at(message),
                "sent_count": len(message.sent) if before.is_same else 0,
                "landed_count": len(message.rows),
                "sequence_numbers": numbers(message),
                "recoverable_until": self.known_until(before),
                "arrived_at": self._known_arrival(before),
                "first_audit_id": "earlier",
                "last_audit_id": "earlier",
                "opened_at": self.as_of - self.retention.length,
            }

    def unread(self) -> Iterator[_Row]:
        """What the ledger holds of gaps: rows of FINGERPRINTS, without whose they are."""
        for gap in PLANTED_GAPS:
            if gap.count:
                start = self.starts[gap.slot]
                yield {
                    "side": "traces",
                    "location": "producer",
                    "shard_id": f"{CANARY}{gap.shard}",
                    "bucket_start": start,
                    "n": gap.count,
                    "sum_lo": gap.count,
                    "sum_hi": gap.count,
                    "max_sequence_number": gap.last,
                    "min_sequence_number": "2",
                    "last_at": start,
                    "sent_day": start.date(),
                    "arrived_from": start,
                    "arrived_until": start,
                }

    def gaps(self) -> Iterator[_Row]:
        """What an earlier audit found of them: rows of GAPS."""
        for gap in PLANTED_GAPS:
            if gap.before is not None:
                start = self.starts[gap.slot]
                yield {
                    "shard_id": f"{CANARY}{gap.shard}",
                    "bucket_start": start,
                    "bucket_end": start + self.bucket,
                    "count": gap.count or GAP_CLOSED,
                    "cause": gap.before.cause.value,
                    "state": gap.before.state.value,
                    "recoverable_until": self.retention.until(start),
                    "first_audit_id": "earlier",
                    "last_audit_id": "earlier",
                    "arrived_from": start,
                    "arrived_until": start,
                }

    def known_until(self, before: Earlier) -> datetime | None:
        """The deadline that an earlier audit gave it."""
        if before.kind is not Kind.MISSING:
            return None
        return self.retention.until(self._known_arrival(before))

    def _known_arrival(self, before: Earlier) -> datetime:
        return self.as_of if before.has_time else self.over_by - self.retention.length - _DAY

    def arrived_at(self, message: Planted) -> datetime:
        """When the stream took it, as far as its traces tell."""
        return self.as_of if message.is_held_back else self.starts[message.slot]

    def _acknowledged(self, message: Planted) -> _Row:
        arrived_at = self.arrived_at(message)
        if message.is_of_a_clock_ahead:
            return {"acked_at": arrived_at + _DAY, "ingested_at": arrived_at}
        return {"acked_at": arrived_at}

    def _known_at(self, message: Planted) -> datetime:
        """When an earlier audit took it for sent: only of those that are gone it matters."""
        if message.before and not message.before.has_time:
            return self.window.start - _DAY
        return self.judged_bucket or self.window.start

    def _placed(self, message: Planted, record: RecordKey) -> _Row:
        start = self.starts[message.slot_of(record)]
        return {
            "message_id": f"{CANARY}{message.name}",
            "shard_id": f"{CANARY}{record[0]}",
            "sequence_number": record[1],
            "sent_at": start,
            "bucket_start": start,
        }

    def _landed(self, message: Planted, record: RecordKey) -> _Row:
        row, starts = self._placed(message, record), self.starts
        if message.slot == OUTAGE:
            return row | {"landed_at": starts[OLD[0]]}
        latency = timedelta(0) if message.slot == FRESH else _SECOND
        return row | {"landed_at": starts[message.slot_of(record)] + latency}


def numbers(message: Planted) -> list[str]:
    """All its sequence numbers, in their order."""
    known = {number for _, number in (*message.sent, *message.rows) if number}
    return sorted(known, key=sequence_order)


def _beside_a_second(instant: datetime) -> datetime:
    """The last microsecond after a whole second that is not after the instant."""
    return (instant - _TICK).replace(microsecond=0) + _TICK


def _without(spans: tuple[PlannedSpan, ...], starts: list[datetime]) -> Iterator[PlannedSpan]:
    """The spans without the microsecond at which each bucket starts: nothing else is there."""
    for since, until in spans:
        kept_from = since
        for start in starts:
            if since <= start < until:
                yield kept_from, start
                kept_from = start + _TICK
        yield kept_from, until
