"""Instants and half-open UTC windows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from shardaudit.model.errors import ConfigError

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(days=366)


def parse_instant(text: str, *, where: str) -> datetime:
    """The UTC instant that an ISO 8601 text names. A text without a zone is refused.

    Whatever `ingest.instants` takes from an input it takes, too, and both say the same; but no time
    that no stream can have: an engine's arithmetic leaves its range there.
    """
    wanted = "an ISO 8601 time with a zone, as 2026-11-20T00:00:00Z"
    try:
        instant = datetime.fromisoformat(text.upper())
        in_utc = instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # in UTC it may lie before the year 1
        raise ConfigError(where, text, wanted) from error
    if instant.tzinfo is None:
        raise ConfigError(where, text, wanted)
    if not EARLIEST <= in_utc < _LATEST:
        raise ConfigError(where, text, "a time from the year 2000 to 2199")
    return in_utc


@dataclass(frozen=True, slots=True)
class Window:
    """The instants from `start` up to, but without, `end`: both UTC, never empty."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name, instant in (("from", self.start), ("to", self.end)):
            if instant.tzinfo is None:
                raise ConfigError(name, instant.isoformat(), "a time with a zone")
        if self.start >= self.end:
            raise ConfigError(
                "window", f"{self.start.isoformat()} … {self.end.isoformat()}", "from before to"
            )

    def aligned(self, bucket: timedelta) -> "Window":
        """The least window of whole buckets (counted from the epoch) that covers this one."""
        width = bucket.total_seconds()
        start = self.start.timestamp() // width * width
        end = -(-self.end.timestamp() // width) * width
        return Window(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC))

    def common(self, other: "Window") -> "Window | None":
        """The part that lies in both; None when there is none."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Window(start, end) if start < end else None

    def covers(self, instant: datetime) -> bool:
        """Whether the instant lies in it."""
        return self.start <= instant < self.end


def asked_window(start: datetime, end: datetime) -> Window:
    """The window that a person wants audited: each shard has a cell for each of its buckets."""
    window = Window(start, end)
    if end - start > _LONGEST:
        raise ConfigError(
            "window",
            f"{start.isoformat()} … {end.isoformat()}",
            f"at most {_LONGEST.days} days: no stream keeps its records for longer",
        )
    return window


def coalesced(starts: list[datetime], *, width: timedelta, limit: int) -> list[Window]:
    """At most `limit` windows that cover all buckets: what a table scan can be pruned by.

    Neighbours are joined first; then the gaps that cost least are filled.
    """
    ordered = sorted(set(starts))
    gaps = [after - before for before, after in pairwise(ordered)]
    wide = sorted((gap for gap in gaps if gap > width), reverse=True)
    cut_above = wide[limit - 1] if len(wide) >= limit else width
    windows: list[Window] = []
    for index, start in enumerate(ordered):
        if index and gaps[index - 1] <= cut_above:
            windows[-1] = Window(windows[-1].start, start + width)
        else:
            windows.append(Window(start, start + width))
    return windows
