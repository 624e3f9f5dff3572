"""What the oracle is given and what it answers: plain values, no engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from shardaudit.model.retention import Longer, Shorter
from shardaudit.model.verdict import Cause, Kind, State, Verdict

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Cell = tuple[str, datetime]
FindingKey = tuple[str, Kind]


@dataclass(frozen=True, slots=True)
class Trace:
    """One acknowledged attempt. `batch`: which ingest brought it; `acked_at`: None, not logged.

    `ingested_at`: when that was. Kinesis had it by then, whatever its producer's clock says.
    """

    message_id: str
    shard_id: str
    sequence_number: str | None
    sent_at: datetime
    batch: int = 1
    acked_at: datetime | None = None
    ingested_at: datetime | None = None

    @property
    def arrived_at(self) -> datetime:
        """When Kinesis took it, at the latest, as far as is known."""
        arrived_at = max(self.sent_at, self.acked_at or self.sent_at)
        return min(arrived_at, self.ingested_at or arrived_at)


@dataclass(frozen=True, slots=True)
class SinkRow:
    """One delivery. `own`: a backfill of ours landed it, at a time at which nobody else did.

    `lacks`: what the sink does not say of it, though it stands here. `seen_at`: when an ingest
    found it: by then it had landed, whatever it says itself. `batch`: which ingest brought it.
    """

    message_id: str
    shard_id: str
    sequence_number: str | None
    sent_at: datetime
    landed_at: datetime | None
    own: bool = False
    lacks: frozenset[str] = frozenset()
    seen_at: datetime | None = None
    batch: int = 1

    @property
    def landed_by(self) -> datetime:
        """When it landed, at the latest."""
        times = [at for at in (self.landed_at, self.seen_at) if at]
        assert times
        return min(times)


@dataclass(frozen=True, slots=True)
class Departure:
    """A row that was deleted from the sink; `batch` and `seen_at`: of the ingest that missed it."""

    row: SinkRow
    batch: int
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Damage:
    """A span of `sent_at` that an unreadable file of one side (traces or sink) may have fed."""

    side: str
    start: datetime
    end: datetime

    def feeds(self, start: datetime, bucket: timedelta) -> bool:
        """Whether some of it lies in a bucket."""
        return start < self.end and start + bucket > self.start


@dataclass(frozen=True, slots=True)
class History:
    """All that was ever read, whatever the window. `rows` are in the sink, `left` were."""

    traces: tuple[Trace, ...] = ()
    rows: tuple[SinkRow, ...] = ()
    left: tuple[Departure, ...] = ()
    damaged: tuple[Damage, ...] = ()
    known_shards: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """What an audit is asked. `start` and `end` are on bucket edges.

    `shorter`: a retention that the stream had before, and when that was last seen; `longer`: those
    that it had before, and when each was first seen to be over.
    """

    start: datetime
    end: datetime
    as_of: datetime
    bucket: timedelta = timedelta(seconds=60)
    settle_grace: timedelta = timedelta(minutes=10)
    retention: timedelta = timedelta(hours=24)
    shorter: Shorter | None = None
    longer: tuple[Longer, ...] = ()
    tolerance: float = 0.0
    trace_coverage_floor: float = 0.99

    def bucket_start(self, instant: datetime) -> datetime:
        """The start of the bucket that holds an instant."""
        return EPOCH + (instant - EPOCH) // self.bucket * self.bucket

    def covers(self, instant: datetime) -> bool:
        """Whether the instant is inside the window."""
        return self.start <= instant < self.end

    def deadline(self, arrived_at: datetime) -> datetime:
        """When Kinesis drops what it took then, or already dropped it when it kept less."""
        if self.shorter and arrived_at + self.shorter.length < self.shorter.seen_at:
            return arrived_at + self.shorter.length
        return arrived_at + self.retention

    def may_be_there_until(self, arrived_at: datetime) -> datetime:
        """Until when Kinesis may have had what it took then, also when it kept more than now."""
        ends = [min(arrived_at + was.length, was.ended_by) for was in self.longer]
        return max(self.deadline(arrived_at), *ends) if ends else self.deadline(arrived_at)

    @property
    def buckets(self) -> list[datetime]:
        """The starts of the window's buckets."""
        count = (self.end - self.start) // self.bucket
        return [self.start + i * self.bucket for i in range(count)]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an id, with the evidence."""

    cause: Cause
    state: State
    shard_id: str
    sent_at: datetime
    sent_count: int
    landed_count: int
    sequence_numbers: tuple[str, ...]
    recoverable_until: datetime | None
    first_landed_at: datetime | None
    last_landed_at: datetime | None
    arrived_at: datetime | None = field(default=None, compare=False)  # its deadline tells it


@dataclass(frozen=True, slots=True)
class CellResult:
    """The numbers of a cell and what they mean."""

    sent: int
    landed: int
    matched: int
    missing: int
    pending: int
    duplicated: int
    extra_rows: int
    untraced: int
    moved: int
    verdict: Verdict
    vanished: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that an audit says. `pending` ids and `damaged` buckets are what it could not judge.

    `quiet`: by shard, the silences that it tells, in the window or before; `doubted`: those that
    are longer than usual, so far.
    `held`: cells that it could not call complete, whatever findings they have or have not;
    `passed`: cells, also of other times, of which nothing is still to land.
    """

    cells: Mapping[Cell, CellResult]
    findings: Mapping[FindingKey, Finding]
    verdict: Verdict
    held: frozenset[Cell]
    trace_coverage: float | None
    pending: frozenset[str]
    damaged: frozenset[datetime]
    quiet: tuple[tuple[str, datetime, datetime], ...] = ()
    doubted: tuple[tuple[str, datetime, datetime], ...] = ()
    passed: frozenset[Cell] = frozenset()


def number_order(sequence_number: str) -> tuple[int, str]:
    """The key by which decimal texts sort as the numbers that they are."""
    return len(sequence_number), sequence_number
