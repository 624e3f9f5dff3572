"""A map of shards × time: what a screen can hold of the cells, however many they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import Verdict

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
