"""The closed lists: verdicts, kinds, causes, states of findings and of shards."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

URGENT_WITHIN = timedelta(hours=6)  # of the time by which a repair must begin


class Verdict(StrEnum):
    """What can be said of a cell, the first that holds. Declared in that order."""

    SILENT = "silent"
    STALLED = "stalled"
    MIXED = "mixed"
    LOSS = "loss"
    DUPLICATION = "duplication"
    INCONCLUSIVE = "inconclusive"
    UNTRACED = "untraced"
    PENDING = "pending"
    OK = "ok"

    @property
    def rank(self) -> int:
        """Greater is worse."""
        return len(Verdict) - 1 - list(Verdict).index(self)

    @property
    def is_good(self) -> bool:
        """Whether `--check` lets it pass."""
        return self in {Verdict.OK, Verdict.PENDING}

    @property
    def is_red(self) -> bool:
        """Whether it needs somebody; untraced is told, no more: below the floor all is unknown."""
        return not self.is_good and self is not Verdict.UNTRACED


class Kind(StrEnum):
    """What is wrong with a message id."""

    MISSING = "missing"
    DUPLICATED = "duplicated"
    UNTRACED = "untraced"
    MOVED = "moved"


VANISHED = "vanished"  # it landed, and its rows left the sink when the stream no longer had it
FILTERED = "filtered"  # a filter of the route left it out by design: it was never to land


class Cause(StrEnum):
    """Why, as far as the evidence goes."""

    LOST = "lost"
    STUCK = "stuck"
    EXPIRED = "expired"  # of old rows alone: nothing gives it any more
    CONSUMER_REPLAY = "consumer_replay"
    PRODUCER_RETRY = "producer_retry"
    BACKFILL = "backfill"
    TRACE_LOSS = "trace_loss"
    RESHARD = "reshard"
    UNKNOWN = "unknown"


class State(StrEnum):
    """Where a finding is in its life."""

    OPEN = "open"
    PLANNED = "planned"
    REPLAYED = "replayed"
    RECOVERED = "recovered"
    EXPIRED = "expired"
    FALSE_ALARM = "false_alarm"
    ACCEPTED = "accepted"


LIVE = (State.OPEN, State.PLANNED, State.REPLAYED)  # somebody still has to see to it
UNSETTLED = (*LIVE, State.EXPIRED)  # it lacks, or is there twice; nobody said that this is well
STANDING = (*UNSETTLED, State.ACCEPTED)  # it lacks, or is there twice
ENDED = (State.RECOVERED, State.FALSE_ALARM)  # found again it is a new one


class AuditStatus(StrEnum):
    """How an audit ended. `rejected`: by its own checks or gates; `failed`: by anything else."""

    RUNNING = "running"
    PUBLISHED = "published"
    REJECTED = "rejected"
    FAILED = "failed"


class SelfCheck(StrEnum):
    """Whether an audit found what it had planted itself."""

    PASSED = "passed"
    FAILED = "failed"


class BatchState(StrEnum):
    """How far the ingest of a batch is; one that is planned may have written some of its rows."""

    PLANNED = "planned"
    DONE = "done"


class ConsumerState(StrEnum):
    """What the ledger says of a shard's consumer, whether or not something waits for it.

    `not_started`: nothing of the shard landed; `resting`: for longer than its patience nothing new.
    """

    NOT_STARTED = "not_started"
    RESTING = "resting"
    ADVANCING = "advancing"


class ShardState(StrEnum):
    """What a shard is doing, as a watch finds, the first that holds: in that order (docs/watch.md).

    `silent` and `stalled` are not-started and resting consumers for which messages wait.
    """

    CLOSED = "closed"
    SILENT = "silent"
    REWOUND = "rewound"
    STALLED = "stalled"
    LAGGING = "lagging"
    IDLE = "idle"
    OK = "ok"

    @property
    def is_at_work(self) -> bool:
        """Whether it is behind where its time is old; else nothing came, and that is all."""
        return self not in {ShardState.IDLE, ShardState.CLOSED}


class Level(StrEnum):
    """How urgent it is. Declared from the least to the most urgent."""

    NONE = "none"
    NOTICE = "notice"
    WARN = "warn"
    URGENT = "urgent"
    LOST = "lost"

    @property
    def rank(self) -> int:
        """Greater is more urgent."""
        return list(Level).index(self)

    @property
    def is_alarm(self) -> bool:
        """Whether `--check` ends with 3: warn or worse."""
        return self.rank >= Level.WARN.rank


def by_rank(one: Verdict | Level) -> int:
    """The key by which the worst is the greatest."""
    return one.rank


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Missing ids of one shard, cause and state, and when the first of them leaves the stream.

    `gaps`: so many gaps they make; 0: findings name them.
    """

    shard_id: str
    cause: Cause
    state: State
    ids: int
    recoverable_until: datetime
    gaps: int = 0

    @property
    def order(self) -> tuple[datetime, str, Cause, State, int]:
        """The key by which they sort: the nearest deadline first."""
        return self.recoverable_until, self.shard_id, self.cause, self.state, self.gaps
