"""How a stream's ids are put into cells: by one shape, and by another one from a day on.

The shape of a message hangs on its `sent_at` alone, and a bucket divides a day: no cell lies in two
eras, and none is ever cut anew.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

from shardaudit.model.window import NEVER, SCAN_WINDOWS, Window, joined

_DAY = timedelta(days=1)
_NEAR_EDGE = timedelta(hours=1)  # two attempts, or a trace and its row, hardly lie further apart
_ALWAYS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CellShape:
    """How ids are put into cells: the width of a cell, and the share of the ids that count."""

    bucket_s: int
    sample_rate: float

    @property
    def bucket(self) -> timedelta:
        """The width of a cell."""
        return timedelta(seconds=self.bucket_s)

    def __str__(self) -> str:
        return f"bucket {self.bucket_s}s, sample_rate {self.sample_rate:g}"


@dataclass(frozen=True, slots=True)
class Eras:
    """The shape of a stream's first cells, and by UTC day in order those that hold from then on.

    `revision`: how often that was changed.
    """

    first: CellShape
    later: tuple[tuple[date, CellShape], ...] = ()
    revision: int = 0

    @property
    def newest(self) -> CellShape:
        """The shape that holds in the end."""
        return self.later[-1][1] if self.later else self.first

    @property
    def spans(self) -> list[tuple[Window, CellShape]]:
        """The eras in order: when their messages were sent, and their shape."""
        starts = [NEVER, *(midnight(day) for day, _ in self.later), _ALWAYS]
        shapes = [self.first, *(shape for _, shape in self.later)]
        return [(Window(*ends), of) for ends, of in zip(pairwise(starts), shapes, strict=True)]

    @property
    def widest(self) -> timedelta:
        """The width of the widest cell of any era."""
        return max(shape.bucket for _, shape in self.spans)

    @property
    def least_rate(self) -> float:
        """The least share of the ids that counts in any era: of one that is, so many are there."""
        return min(shape.sample_rate for _, shape in self.spans)

    def at(self, instant: datetime) -> CellShape:
        """The shape of what was sent then."""
        return next(shape for span, shape in self.spans if span.covers(instant))

    def end_of(self, start: datetime) -> datetime:
        """The end of the cell that begins then."""
        return start + self.at(start).bucket

    def last_start(self, end: datetime) -> datetime:
        """The start of the cell that ends then."""
        return end - self.at(end - timedelta.resolution).bucket

    def span_of(self, instant: datetime) -> Window:
        """The era of what was sent then."""
        return next(span for span, _ in self.spans if span.covers(instant))

    def beside(self, window: Window) -> list[tuple[Window, list[datetime]]]:
        """The times of a window near an edge of its era, and the cells near it on the other side.

        Where both sides sample alike, but the cells at the edge: the ledger tells of the others.

        Input:
            window: of whole cells of one era.
        """
        found, era = [], self.span_of(window.start)
        for edge in {era.start, era.end} & {midnight(day) for day, _ in self.later}:
            old, new = self.at(edge - timedelta.resolution), self.at(edge)
            reach = timedelta() if old.sample_rate == new.sample_rate else _NEAR_EDGE
            before = [edge - old.bucket * (n + 1) for n in range(_cells(reach, old))]
            after = [edge + new.bucket * n for n in range(_cells(reach, new))]
            if edge == era.start:
                near, across = Window(edge, after[-1] + new.bucket), before
            else:
                near, across = Window(before[-1], edge), after
            if own := near.common(window):
                found.append((own, across))
        return sorted(found, key=lambda pair: pair[0].start)

    def parts(self, window: Window) -> list[tuple[Window, CellShape]]:
        """The window in parts of one era each, in order, and the shape of each."""
        return [
            (part, shape) for span, shape in self.spans if (part := window.common(span)) is not None
        ]

    def aligned(self, window: Window) -> Window:
        """The least window of whole cells that covers this one."""
        parts = [part.aligned(shape.bucket) for part, shape in self.parts(window)]
        return Window(parts[0].start, parts[-1].end)

    def covering(self, starts: Iterable[datetime]) -> list[Window]:
        """As `coalesced`, of buckets of any era."""
        eras = [(span, shape.bucket) for span, shape in self.spans]
        cells = (
            Window(start, start + width)
            for start in starts
            for span, width in eras
            if span.covers(start)
        )
        return joined(cells, most=SCAN_WINDOWS)

    def sampled_as(self, shape: CellShape) -> "Eras":
        """The same cells, and in all of them the ids that count in those of a shape."""
        first, *later = (CellShape(of.bucket_s, shape.sample_rate) for _, of in self.spans)
        days = (day for day, _ in self.later)
        return Eras(first, tuple(zip(days, later, strict=True)))

    def within(self, window: Window) -> "Eras":
        """Those that hold at some time of a window."""
        spans = [span for span, _ in self.parts(window)]
        later = tuple(one for one in self.later if spans[0].end <= midnight(one[0]) < spans[-1].end)
        return Eras(self.at(window.start), later)

    def until(self, day: date) -> "Eras":
        """Without those that begin that day or later."""
        return replace(self, later=tuple(one for one in self.later if one[0] < day))

    def since(self, day: date, shape: CellShape) -> "Eras":
        """With another shape from a day on, after all that begin before."""
        return replace(self, later=(*self.later, (day, shape)))

    def said_after(self, before: "Eras") -> "Eras":
        """The same, as what holds instead of what was said before."""
        return replace(self, revision=before.revision + 1)

    def note(self, now: datetime) -> str | None:
        """Which shape is to hold, and from when on, that does not yet; None: there is none."""
        said = [
            f"{shape} from {day.isoformat()} on (UTC, by sent_at)"
            for day, shape in self.later
            if now < midnight(day)
        ]
        return "; ".join([*said, f"{self.at(now)} until then"]) if said else None

    def as_values(self) -> dict[str, Any]:  # Any: JSON
        """What is stored. Of one era the same as always: see `eras_of_values`."""
        values: dict[str, Any] = _values(self.first)
        later = [{"since": day.isoformat()} | _values(shape) for day, shape in self.later]
        return values | {"later": later, "revision": self.revision} if self.revision else values


def _cells(reach: timedelta, shape: CellShape) -> int:
    """How many cells cover it; at least one."""
    return max(1, -(-reach // shape.bucket))


def always(bucket: timedelta) -> Eras:
    """Cells of one width at all times, in which every id counts."""
    return Eras(CellShape(int(bucket.total_seconds()), 1.0))


def eras_of_values(values: Mapping[str, Any]) -> Eras:  # Any: JSON
    """What `as_values` gave. An older version refuses those of several eras."""
    later = [(date.fromisoformat(one["since"]), _shape(one)) for one in values.get("later", ())]
    return Eras(_shape(values), tuple(later), values.get("revision", 0))


def newest_eras(batches: Iterable[Mapping[str, Any]]) -> Eras | None:  # Any: JSON
    """As was said last, of the newest batch of each side; None: there is none.

    Input:
        batches: rows of BATCHES of a stream.
    """
    newest = dict[str, str]()
    for row in sorted(batches, key=lambda row: int(row["number"])):
        newest[row["side"]] = row["inputs"] or newest.get(row["side"], "")
    said = [eras_of_values(json.loads(inputs)["shape"]) for inputs in newest.values() if inputs]
    return max(said, key=lambda eras: eras.revision, default=None)


def first_free_day(now: datetime, days: Iterable[date], *, ahead: timedelta) -> date:
    """The first UTC day of which nothing can have been read so far.

    Input:
        days: of which something was; ahead: how far ahead of now an input may say that it was sent.
    """
    return max([(now + ahead).astimezone(UTC).date(), *days]) + _DAY


def midnight(day: date) -> datetime:
    """When a UTC day begins."""
    return datetime.combine(day, time(), UTC)


def _values(shape: CellShape) -> dict[str, Any]:  # Any: JSON
    return {"bucket_s": shape.bucket_s, "sample_rate": shape.sample_rate}


def _shape(values: Mapping[str, Any]) -> CellShape:  # Any: JSON
    return CellShape(values["bucket_s"], values["sample_rate"])
