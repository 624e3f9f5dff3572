"""Instants and half-open UTC windows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from shardaudit.model.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime.min.replace(tzinfo=UTC)  # sorts before any instant
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
LONGEST = timedelta(days=366)
CLOCKS_APART = timedelta(minutes=1)  # that of who asks, and of who is asked
SCAN_WINDOWS = 32  # as many time ranges as a scan is pruned by: enough to skip files, few to plan


def unix_micros(at: datetime) -> int:
    """Microseconds since 1970, as the engines' function of that name says."""
    return (at - EPOCH) // timedelta(microseconds=1)


def parse_instant(text: str, *, where: str) -> datetime:
    """The UTC instant that an ISO 8601 text names. A text without a zone is refused.

    Whatever `columns.instants` takes from an input it takes, too, and both say the same; but no
    time that no stream can have: an engine's arithmetic leaves its range there.
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

    def parts(self, length: timedelta) -> "list[Window]":
        """Cut into windows of that length, one after the other; the last may be shorter."""
        count = -(-(self.end - self.start) // length)
        starts = [self.start + n * length for n in range(count)]
        return [Window(start, min(start + length, self.end)) for start in starts]

    def covers(self, instant: datetime) -> bool:
        """Whether the instant lies in it."""
        return self.start <= instant < self.end


def asked_span(start: str | None, end: str | None, *, prefix: str = "") -> Window | None:
    """The span between two times that a person typed; None: neither was.

    Input:
        prefix: stands before `from` and `to` where the person typed them, as `--`.

    Raises:
        ConfigError: one of them was, or they are no times, or not in this order.
    """
    if start is None and end is None:
        return None
    if start is None or end is None:
        found = f"{start or 'none'}, {end or 'none'}"
        raise ConfigError(f"{prefix}from, {prefix}to", found, "both, or neither")
    return Window(
        parse_instant(start, where=f"{prefix}from"), parse_instant(end, where=f"{prefix}to")
    )


def earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    """The earlier of two instants, of which there may be one or none."""
    return min(filter(None, (one, other)), default=None)


def asked_window(start: datetime, end: datetime, *, as_of: datetime) -> Window:
    """The window that a person wants audited: each shard has a cell for each of its buckets.

    Raises:
        ConfigError: it is empty, longer than any stream keeps its records, or ends more than a
            minute after `as_of`: until that time no audit would be the last one.
    """
    window = Window(start, end)
    if end - start > LONGEST:
        raise ConfigError(
            "window",
            f"{start.isoformat()} … {end.isoformat()}",
            f"at most {LONGEST.days} days: no stream keeps its records for longer",
        )
    if end > as_of + CLOCKS_APART:
        raise ConfigError(
            "end of the window",
            end.isoformat(),
            f"at most {as_of.isoformat()}: what is still to come would count as audited; leave the "
            "end out, or ask again when it is over",
        )
    return window


def joined(spans: Iterable[Window], *, most: int | None = None) -> list[Window]:
    """What covers all spans, in order: those that touch as one, then as many as may be.

    Input:
        most: the gaps that cost least are filled until so many are left; None: none is.
    """
    ordered: list[Window] = []
    for span in sorted(spans, key=lambda span: span.start):
        if ordered and span.start <= ordered[-1].end:
            ordered[-1] = Window(ordered[-1].start, max(ordered[-1].end, span.end))
        else:
            ordered.append(span)
    if most is None or len(ordered) <= most:
        return ordered
    gaps = [after.start - before.end for before, after in pairwise(ordered)]
    widest = sorted(range(len(gaps)), key=lambda at: gaps[at], reverse=True)[: most - 1]
    edges = [0, *(at + 1 for at in sorted(widest)), len(ordered)]
    return [Window(ordered[i].start, ordered[j - 1].end) for i, j in pairwise(edges)]


def coalesced(starts: Iterable[datetime], *, width: timedelta) -> list[Window]:
    """At most `SCAN_WINDOWS` that cover all buckets: what a table scan can be pruned by."""
    return joined((Window(start, start + width) for start in starts), most=SCAN_WINDOWS)
