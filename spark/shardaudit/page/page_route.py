"""A stream's route as a small graph: where its places and the ways between them are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route import SINK
from shardaudit.report.summary import HopLine

BOX = (150.0, 42.0)
_STEP = (210.0, 58.0)
_MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class RouteBox:
    """A place. `hop`: None of the producer and the sink."""

    name: str
    x: float
    y: float
    hop: HopLine | None


@dataclass(frozen=True, slots=True)
class RouteGraph:
    """Boxes, and the ways between them as (x, y, x, y) from edge to edge."""

    width: float
    height: float
    boxes: tuple[RouteBox, ...]
    ways: tuple[tuple[float, float, float, float], ...]


def route_graph(hops: Sequence[HopLine]) -> RouteGraph | None:
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
    ways = tuple(
        (
            boxes[one].x + BOX[0],
            boxes[one].y + BOX[1] / 2,
            boxes[name].x,
            boxes[name].y + BOX[1] / 2,
        )
        for name, before in after.items()
        for one in before
    )
    return RouteGraph(
        width=max(box.x for box in boxes.values()) + BOX[0] + _MARGIN,
        height=max(box.y for box in boxes.values()) + BOX[1] + _MARGIN,
        boxes=tuple(boxes.values()),
        ways=ways,
    )
