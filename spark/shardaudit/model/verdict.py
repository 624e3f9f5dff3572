"""The closed lists: verdicts, kinds, causes, states (DESIGN section 6)."""

from enum import StrEnum


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
    def is_good(self) -> bool:
        """Whether `--check` lets it pass."""
        return self in {Verdict.OK, Verdict.PENDING}


class Kind(StrEnum):
    """What is wrong with a message id."""

    MISSING = "missing"
    DUPLICATED = "duplicated"
    UNTRACED = "untraced"
    MOVED = "moved"


class Cause(StrEnum):
    """Why, as far as the evidence goes."""

    LOST = "lost"
    STUCK = "stuck"
    EXPIRED = "expired"
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
