"""A stream's route as a small graph: where its places and the ways between them are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.lost_hops import HopLine
from shardaudit.model.route.route import SINK
from shardaudit.page.page_map import letter
from shardaudit.page.page_words import UNKNOWN
from shardaudit.report.summary import AuditedPlace

BOX = (150.0, 42.0)
_GAP = 150.0  # between two columns: room for the numbers of a way
_STEP = (BOX[0] + _GAP, 104.0)  # so that numbers of branches stand apart
_MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class RouteBox:
    """A place. `hop`: None of the producer and the sink."""

    name: str
    x: float
    y: float
    hop: AuditedPlace | None


@dataclass(frozen=True, slots=True)
class RouteWay:
    """A way between two places: `ends` as (x, y, x, y) from edge to edge, its numbers at `label`.

    `line`: None in an audit from before they were kept; `trace_loss`: of the place it leads to.
    """

    ends: tuple[float, float, float, float]
    label: tuple[float, float]
    line: HopLine | None
    trace_loss: float | None

    @property
    def mark(self) -> str:
        """Its verdict's look."""
        return self.line.verdict.value if self.line else UNKNOWN


@dataclass(frozen=True, slots=True)
class RouteGraph:
    """Boxes, and the ways between them."""

    width: float
    height: float
    boxes: tuple[RouteBox, ...]
    ways: tuple[RouteWay, ...]


def route_graph(hops: Sequence[AuditedPlace]) -> RouteGraph | None:
    """The graph of a route, whose places are in its order; None: there is none."""
    if not hops:
        return None
    followed = {name for hop in hops for name in hop.after}
    after = {hop.location: hop.after for hop in hops}
    after[SINK] = tuple(hop.location for hop in hops if hop.location not in followed)
    columns = {PRODUCER: 0}
    for name, before in after.items():
        columns[name] = 1 + max(columns[one] for one in before)
    names = {column: [n for n in columns if columns[n] == column] for column in columns.values()}
    known = {hop.location: hop for hop in hops}
    boxes = {
        name: RouteBox(
            name,
            _MARGIN + column * _STEP[0],
            _MARGIN + names[column].index(name) * _STEP[1],
            known.get(name),
        )
        for name, column in columns.items()
    }
    lines = {(way.after, way.before): way for hop in hops for way in hop.ways}
    ways = tuple(
        _way(boxes[one], boxes[name], lines.get((one, name)))
        for name, before in after.items()
        for one in before
    )
    return RouteGraph(
        width=max(box.x for box in boxes.values()) + BOX[0] + _MARGIN,
        height=max(box.y for box in boxes.values()) + BOX[1] + _MARGIN,
        boxes=tuple(boxes.values()),
        ways=ways,
    )


def _way(one: RouteBox, other: RouteBox, line: HopLine | None) -> RouteWay:
    x1, y1 = one.x + BOX[0], one.y + BOX[1] / 2
    x2, y2 = other.x, other.y + BOX[1] / 2
    # In the last gap: further back it may pass behind boxes.
    part = (x2 - _GAP / 2 - x1) / (x2 - x1)
    return RouteWay(
        ends=(x1, y1, x2, y2),
        label=(x2 - _GAP / 2, y1 + part * (y2 - y1)),
        line=line,
        trace_loss=other.hop.trace_loss if other.hop else None,
    )


def way_words(way: RouteWay) -> tuple[str, ...]:
    """The numbers on a way, a line each: what was lost above it, the others below."""
    line, words = way.line, []
    if line is not None:
        doubt = f", {line.doubtful:,} perhaps" if line.doubtful else ""
        words += [f"{letter(way.mark)} {line.lost:,} lost{doubt}", f"{line.doubled:,} doubled"]
    if way.trace_loss is not None:
        words.append(f"{way.trace_loss:.2%} of traces lost")
    return tuple(words)
