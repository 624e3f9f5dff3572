"""What is planned to be read again: stretches of missing messages, windows, their price."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shardaudit.model.window import Window


class WindowState(StrEnum):
    """Where a window is in its life."""

    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    MERGED = "merged"
    VERIFIED = "verified"
    INCOMPLETE = "incomplete"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether no run takes it up any more."""
        return self in {WindowState.VERIFIED, WindowState.EXPIRED, WindowState.CANCELLED}


class Repair(StrEnum):
    """What a plan puts right."""

    MISSING = "missing"
    DUPLICATES = "duplicates"


# The actions of both repairs that write into a user's sink.
SINK_WRITING = frozenset({"run", "replay"})


def window_order(window_id: str) -> tuple[int, str]:
    """The key by which the ids of a plan's windows sort as the numbers that they are."""
    return len(window_id), window_id


@dataclass(frozen=True, slots=True)
class Stretch:
    """The missing messages of one cell and cause: how many, since when, and where they stand.

    The sequence numbers are those of the first and the last of them, inclusive; NULL unless all are
    known. `deadline` is that of the oldest.
    """

    shard_id: str
    bucket_start: datetime
    because: str
    ids: int
    first_sent_at: datetime
    last_sent_at: datetime
    deadline: datetime
    first_sequence: str | None = None
    last_sequence: str | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What reading a window costs, at most."""

    records: int
    size_bytes: int
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """One range of one shard. Sequence numbers are inclusive, both or neither are there.

    `buckets`: of the cells whose messages it must bring. `takes_all`: every record of the range is
    wanted, and not the expected messages alone.
    """

    window_id: str
    shard_id: str
    window: Window
    because: str
    expected_ids: int
    deadline: datetime
    price: Price
    feasible: bool
    start_sequence: str | None = None
    end_sequence: str | None = None
    takes_all: bool = False
    buckets: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The windows, the most urgent first.

    `extension`: the least retention with which all that is not feasible would be; None when nothing
    helps or nothing is needed.
    """

    plan_id: str
    stream: str
    windows: tuple[PlannedWindow, ...]
    extension: timedelta | None = None
