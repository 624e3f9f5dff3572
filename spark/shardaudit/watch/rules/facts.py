"""What is known of one shard when it is judged."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention, Shorter
from shardaudit.model.sequence import Position, sequence_order
from shardaudit.model.verdict import Level

# A hole is told when its cell was settled at the watch before, too: what lands late has landed by
# then. Watches begin every quarter of an hour, and the one before up to 5 minutes late.
LOOKS_APART = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Span:
    """Messages of a shard in some of its cells: how many at most, and the cells' outer edges.

    `arrived_from`, `arrived_until`: when the first and the last of them came into the stream, where
    that is later than their cells: their producer held them back. The first may be earlier, too:
    its clock is ahead.
    """

    messages: int
    since: datetime
    until: datetime
    arrived_from: datetime | None = None
    arrived_until: datetime | None = None

    @property
    def first_arrival(self) -> datetime:
        """When the oldest of them came into the stream, at the earliest."""
        return self.since if self.arrived_from is None else self.arrived_from

    @property
    def last_arrival(self) -> datetime:
        """When all of them were in the stream, at the latest."""
        known = self.until if self.arrived_until is None else self.arrived_until
        return max(self.until, self.first_arrival, known)


@dataclass(frozen=True, slots=True)
class Pause:
    """A time without landings, during which messages waited, that has ended."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        """How long they waited."""
        return self.until - self.since


@dataclass(frozen=True, slots=True)
class LedgerProgress:
    """What the ledger says of a shard.

    `ahead`: sent beyond the frontier. `passed`: of these, what the consumer's position is past.
    `landed_until`: the newest cell that landed, `relanded_until`: the cell that landed last.
    `settled_frontier`: up to where everything that will land has landed. `is_by_time`: times alone
    say that something is ahead, as the traces or the rows have no sequence numbers.
    """

    shard_id: str
    produced_until: datetime | None = None
    frontier: str | None = None
    settled_frontier: str | None = None
    frontier_at: datetime | None = None
    last_landed_at: datetime | None = None
    landed_until: datetime | None = None
    relanded_until: datetime | None = None
    ahead: Span | None = None
    passed: Span | None = None
    pause: Pause | None = None
    is_by_time: bool = False

    @property
    def newest(self) -> datetime | None:
        """The end of what is ahead, or the newest time that was sent or landed."""
        waits_until = self.ahead.last_arrival if self.ahead else None
        times = [self.produced_until, self.landed_until, waits_until]
        return max((at for at in times if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Holes:
    """Cells that the consumer is past and in which something is missing, as far as sums can tell.

    `messages`: missing, at least; `sent`: all that was sent in these cells. `even`: cells of which
    as many rows landed as ids were sent, but others. `news`: cells of which nobody was told yet.
    `gone`: messages missing in cells that have left the stream within the last day.
    `doubts`: cells of which sums cannot tell whether something is missing: only an audit sees.
    `unnamed`: of the holes those that no audit looked at by id.
    `unnamed_since`, `unnamed_until`: around these and the doubts that no audit looked at by id.
    `arrived_from`, `unnamed_arrived_from`: when the first of these that the stream still holds came
    into it, where that is not when their cells began.
    """

    cells: int = 0
    messages: int = 0
    sent: int = 0
    even: int = 0
    news: int = 0
    since: datetime | None = None
    until: datetime | None = None
    gone: int = 0
    doubts: int = 0
    doubted_since: datetime | None = None
    unnamed: int = 0
    unnamed_since: datetime | None = None
    unnamed_until: datetime | None = None
    arrived_from: datetime | None = None
    unnamed_arrived_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class EarlierWatch:
    """What an earlier watch stored of the shard."""

    observed_at: datetime
    level: Level
    frontier: str | None = None
    frontier_at: datetime | None = None
    recoverable_until: datetime | None = None
    position: Position | None = None
    hole_since: datetime | None = None
    hole_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """Everything that a judgement of one shard rests on.

    `waits_for`: an ancestor that is not drained yet. `patience`: how long a landing may take.
    `before`: the last watch; `earlier`: one of the last hour, for the trend. `judged_until`: up to
    when audits have judged what waits; None: none has.
    """

    progress: LedgerProgress
    patience: timedelta
    is_open: bool = True
    waits_for: str | None = None
    position: Position | None = None
    holes: Holes = Holes()
    before: EarlierWatch | None = None
    earlier: EarlierWatch | None = None
    judged_until: datetime | None = None

    @property
    def unjudged(self) -> Span | None:
        """What waits, as far as no audit has judged it: so far it is in no plan.

        As it came: what was held back is judged with an audit of the time in which it came.
        """
        ahead, judged = self.progress.ahead, self.judged_until
        if ahead is None or judged is None or judged <= ahead.since:
            return ahead
        if ahead.last_arrival <= judged:
            return None
        return replace(ahead, since=judged, until=ahead.last_arrival)

    @property
    def resting_since(self) -> datetime | None:
        """Since when the frontier is where it is; rows that land twice do not make it younger.

        Without sequence numbers nobody knows that a row landed twice: since the last landing.
        """
        at, before = self.progress.frontier_at, self.before
        if before is None or before.frontier_at is None:
            return at
        if self.progress.frontier is None or self.progress.frontier != before.frontier:
            return at
        return before.frontier_at if at is None else min(at, before.frontier_at)

    def rests(self, as_of: datetime) -> bool:
        """Whether the frontier is where it is for longer than a landing takes.

        As `is_resting` of an audit's rules says of its frames; where nothing landed it rests, too.
        """
        return self.is_patience_over(self.resting_since, as_of)

    def is_patience_over(self, since: datetime | None, as_of: datetime) -> bool:
        """Whether more time has passed since then than a landing takes; None: since ever."""
        return since is None or as_of - since > self.patience

    @property
    def went_back(self) -> bool:
        """Whether the consumer's own position is before the one that it had."""
        old = self.before.position if self.before else None
        if old is None or self.position is None or old.consumer != self.position.consumer:
            return False
        now_at, was_at = self.position.sequence_number, old.sequence_number
        if now_at is None or was_at is None:
            return False
        return sequence_order(now_at) < sequence_order(was_at)


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the whole stream. `read_share`: of a shard's 2 MB/s and 5 calls/s.

    `cells`: how ids are put into cells, as far back as one looks.
    `ledger_age`: how long before `as_of` the ledger was read; of what landed since nobody knows.
    """

    as_of: datetime
    retention: timedelta
    cells: Eras
    read_share: float
    ledger_age: timedelta = timedelta(0)
    shorter: Shorter | None = None

    @property
    def bucket(self) -> timedelta:
        """The width of the widest cell: by it goes what is reckoned without the cell."""
        return self.cells.widest

    @property
    def kept(self) -> Retention:
        """How long the stream keeps its records."""
        return Retention(self.retention, self.shorter)

    @property
    def when_read(self) -> "Rules":
        """The same as of when the ledger was read: states are judged so, deadlines run on."""
        return replace(self, as_of=self.as_of - self.ledger_age, ledger_age=timedelta(0))

    @property
    def settled_by(self) -> datetime:
        """Until when a cell must have been settled to be a hole: at the watch before, too."""
        return self.when_read.as_of - LOOKS_APART
