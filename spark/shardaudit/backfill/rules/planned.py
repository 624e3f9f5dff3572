"""What is planned to be read again: stretches of missing messages, windows, their price."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from shardaudit.model.verdict import Cause
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


RUN, REPLAY, VERIFY = "run", "replay", "verify"  # actions of a backfill; a dedupe has some, too

# What writes into a user's sink: actions of both repairs, and the DAG's task that runs one of them.
SINK_WRITING = frozenset({"run", "replay", "remove", "repair"})


def window_order(window_id: str) -> tuple[int, str]:
    """The key by which the ids of a plan's windows sort as the numbers that they are."""
    return len(window_id), window_id


@dataclass(frozen=True, slots=True)
class Stretch:
    """The missing messages of one bucket and cause: how many, since when, and where they stand.

    The sequence numbers are those of the first and the last of them, inclusive; NULL unless all are
    known. `deadline` is that of the oldest. `first_arrival` and `last_arrival`: between which they
    reached the stream, as far as their traces say when they were acknowledged; else when they were
    sent. `unacked_until`: when the last one was sent of those whose traces do not say it.
    `gap_start`: they are a gap, of the cell that begins then; None: findings name them. `ids_sum`:
    of the ids' hashes; of other ones it is another. `because`: why they are planned, where that is
    more than their cause.
    """

    shard_id: str
    bucket_start: datetime
    cause: Cause
    ids: int
    first_sent_at: datetime
    last_sent_at: datetime
    deadline: datetime
    first_sequence: str | None = None
    last_sequence: str | None = None
    first_arrival: datetime | None = None
    last_arrival: datetime | None = None
    unacked_until: datetime | None = None
    gap_start: datetime | None = None
    ids_sum: int = 0
    because: str | None = None

    @property
    def why(self) -> str:
        """Why they are planned, in words."""
        return self.because or self.cause.value

    @property
    def arrives_from(self) -> datetime:
        """None of them reached the stream before."""
        return self.first_arrival or self.first_sent_at

    @property
    def arrives_until(self) -> datetime:
        """All that are known to have reached it had done so by then."""
        return self.last_arrival or self.last_sent_at


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

    `window`: of arrival. `sent`: its messages were sent then; None: those of other windows, that
    arrived late. `buckets`: of the stretches that it must bring; `gaps`: the starts of the cells of
    those that are gaps; `causes`: of all of these. `takes_all`: every record of the range is
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
    sent: Window | None
    start_sequence: str | None = None
    end_sequence: str | None = None
    takes_all: bool = False
    buckets: tuple[datetime, ...] = ()
    gaps: tuple[datetime, ...] = ()
    causes: frozenset[Cause] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWindow:
    """A planned window as it is stored, and what a run made of it: a row of `backfills`.

    Its fields are the table's columns, where the meaning of each stands.
    """

    plan_id: str
    window_id: str
    stream: str
    shard_id: str
    window_start: datetime
    window_end: datetime
    start_sequence_number: str | None = None
    end_sequence_number: str | None = None
    expected_ids: int
    estimated_bytes: int
    estimated_seconds: float
    deadline: datetime
    feasible: bool
    state: WindowState = WindowState.PLANNED
    read_records: int | None = None
    merged_rows: int | None = None
    expired_from: datetime | None = None
    expired_to: datetime | None = None
    error: str | None = None
    approved_by: str | None = None
    created_at: datetime
    updated_at: datetime
    estimated_records: int
    estimated_calls: int
    because: str
    takes_all: bool = False
    owner: str | None = None
    heartbeat_at: datetime | None = None
    sent_from: datetime | None = None
    sent_to: datetime | None = None
    begins_at: datetime | None = None
    configured: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:  # Any: a column's type is what its table says
        """The window that a row of the table holds."""
        return cls(**{**row, "state": WindowState(row["state"])})

    @property
    def sent(self) -> Window | None:
        """When its messages were sent; None: not stored, or those of others, that arrived late."""
        if self.sent_from is None or self.sent_to is None:
            return None
        return Window(self.sent_from, self.sent_to)

    def row(self) -> dict[str, object]:
        """The row of the table that holds it."""
        return _row(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """The windows, the most urgent first.

    `extension`: the least retention with which all that is not feasible would be; None when nothing
    helps or nothing is needed. `configured`: of `approval.configured_for`.
    """

    plan_id: str
    stream: str
    windows: tuple[PlannedWindow, ...]
    extension: timedelta | None = None
    configured: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDedupe:
    """A plan as it is stored, and what its runs made of it: a row of `dedupes`.

    Its fields are the table's columns, where the meaning of each stands.
    """

    plan_id: str
    stream: str
    ids: int
    extra_rows: int
    sent_from: datetime
    sent_to: datetime
    state: WindowState = WindowState.PLANNED
    removed_rows: int | None = None
    approved_by: str | None = None
    created_at: datetime
    updated_at: datetime
    error: str | None = None
    owner: str | None = None
    configured: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:  # Any: a column's type is what its table says
        """The plan that a row of the table holds."""
        return cls(**{**row, "state": WindowState(row["state"])})

    @property
    def estimated_bytes(self) -> None:
        """Nothing is read from the stream."""

    def row(self) -> dict[str, object]:
        """The row of the table that holds it."""
        return _row(self)


def _row(stored: StoredWindow | StoredDedupe) -> dict[str, object]:
    # Not by `asdict`, which copies each value: half of a plan of 170,000 windows.
    values = {field.name: getattr(stored, field.name) for field in fields(stored)}
    return values | {"state": stored.state.value}
