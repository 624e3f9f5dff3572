"""A map of shards × time, and which audit knows best of which time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.audit_id import AuditOrder, StoredAudit, audit_order, published_audits
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window

COUNTED = ("sent", "landed", "missing", "pending", "duplicated", "extra_rows", "untraced")


@dataclass(frozen=True, slots=True)
class Segment:
    """A span `[start, end)` of a stream's time, and the audit whose cells are the newest there."""

    audit_id: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Bins:
    """The map's columns: `count` equal spans from `start` on, each of whole cells."""

    start: datetime
    width: timedelta
    count: int

    @property
    def end(self) -> datetime:
        """The end of the last one, exclusive."""
        return self.start + self.width * self.count

    def at(self, index: int) -> datetime:
        """When a bin starts."""
        return self.start + self.width * index


@dataclass(frozen=True, slots=True)
class ShardRange:
    """Shards by the order of their names, both ends included; None is open."""

    first: str | None = None
    last: str | None = None


ALL_SHARDS = ShardRange()


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """One row of the map: neighbours in the order of their names."""

    names: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first by name."""
        return self.names[0]

    @property
    def last(self) -> str:
        """The last by name."""
        return self.names[-1]

    @property
    def shards(self) -> int:
        """How many."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Rows × bins. A place without a verdict has no cell: no shard lived, or nobody looked.

    `counts` has sums by the names of `COUNTED`, each as rows of bins. `reasons`: why a verdict is
    what it is, where no message tells; the first in the order of `WHY`.
    """

    groups: tuple[ShardGroup, ...]
    worst: Sequence[Sequence[Verdict | None]]
    counts: dict[str, Sequence[Sequence[int]]]
    reasons: Sequence[Sequence[str | None]]


# Per row of the map and bin of time: rows of the sink per latency bin; None where nothing landed.
LatencyGrid = Sequence[Sequence[Sequence[int] | None]]

# Per row of the map and bin of time a length of time in seconds; None where it is not known.
SecondsGrid = Sequence[Sequence[float | None]]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The upper end, in seconds, of the latency bin in which that share is reached."""
    total = sum(counts)
    reached = 0
    for index, count in enumerate(counts):
        reached += count
        if total > 0 and reached >= share * total:
            return float(2**index)
    return None


@dataclass(frozen=True, slots=True)
class AuditSpan:
    """The window of a published audit, and when it looked (the later sorts behind)."""

    audit_id: str
    window: Window
    looked: AuditOrder


def audit_spans(audits: Iterable[StoredAudit]) -> list[AuditSpan]:
    """The published audits, to be laid over each other."""
    return [
        AuditSpan(row["audit_id"], Window(row["window_start"], row["window_end"]), audit_order(row))
        for row in published_audits(audits)
    ]


def newest_segments(audits: Iterable[AuditSpan], window: Window) -> tuple[Segment, ...]:
    """The window cut so that each part belongs to the audit that looked at it last.

    A part that no audit looked at is in no segment.
    """
    free = [window]
    found: list[Segment] = []
    for audit in sorted(audits, key=lambda audit: audit.looked, reverse=True):
        left: list[Window] = []
        for part in free:
            mine = part.common(audit.window)
            if mine is None:
                left.append(part)
                continue
            found.append(Segment(audit.audit_id, mine.start, mine.end))
            edges = (part.start, mine.start), (mine.end, part.end)
            left += [Window(start, end) for start, end in edges if start < end]
        free = left
    return tuple(sorted(found, key=lambda segment: segment.start))
