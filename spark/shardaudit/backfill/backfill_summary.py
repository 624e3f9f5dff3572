"""What a backfill has to say, as frozen values."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.backfill.rules.planned import WindowState


@dataclass(frozen=True, slots=True)
class WindowLine:
    """One window of a plan, by the names of the backfills table."""

    window_id: str
    shard_id: str
    window_start: datetime
    window_end: datetime
    start_sequence_number: str | None
    end_sequence_number: str | None
    because: str
    expected_ids: int
    estimated_records: int
    estimated_bytes: int
    estimated_calls: int
    estimated_seconds: float
    deadline: datetime
    feasible: bool
    state: WindowState
    read_records: int | None
    merged_rows: int | None
    expired_from: datetime | None
    expired_to: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan before it is run. `minutes`: when all its shards are read at once.

    `extension`: the retention that makes it feasible; `stuck_left_out`: messages behind a stopped
    shard that are not in it; `before_run`: what must be set first, None when nothing is in the way.
    """

    plan_id: str
    stream: str
    as_of: datetime
    windows: tuple[WindowLine, ...]
    stages: tuple[str, ...]
    minutes: float
    extension: timedelta | None
    stuck_left_out: int
    before_run: str | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """A plan after a run. Messages: brought back, expired, and still missing.

    `engine`: the name and version of what ran it.
    """

    plan_id: str
    stream: str
    approved_by: str
    windows: tuple[WindowLine, ...]
    audit_id: str | None
    recovered: int
    expired: int
    left: int
    engine: str

    @property
    def is_over(self) -> bool:
        """Whether every window came to its end."""
        return all(line.state.is_over for line in self.windows)
