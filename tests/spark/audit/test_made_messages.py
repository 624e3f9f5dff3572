"""Messages that are split into others, or joined: each half of the way, and where it lost any."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from shardaudit.model.config.settings import Sink
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.route_tables import handed_over
from shardaudit.model.verdict import Verdict
from tests.builders import T0, Line, sink_row, trace_line
from tests.spark.audit.test_routes import EACH, audited, passed, sighting, told
from tests.spark.lake import Lake

PARTS = 3  # a message is split into, or joined of


def ended_at(lake: Lake, place: str) -> Lake:
    """The stream that ends at a place behind a router."""
    path = f"{lake.folder}/warehouse/{handed_over(lake.name, place).name}"
    return Lake(
        lake.spark,
        lake.warehouse,
        lake.folder,
        settings={
            "sink": Sink(path=path, place=place),
            "locations": {"router": {"after": ["producer"]}, place: {"after": ["router"]}},
        },
    )


def made(lake: Lake) -> Lake:
    """The stream of what is made there: it passes a writer on its way to the lake."""
    settings: dict[str, object] = {
        "made_from": lake.name,
        "locations": {"writer": {"after": ["producer"]}},
    }
    folder = lake.folder / "made"
    return Lake(lake.spark, lake.warehouse, folder, name="made", settings=settings)


def at_place(number: int, place: str, event: str, copy: int = 0) -> Line:
    """A trace of the place at which the stream ends, a minute later: at no whole half hour."""
    acked_at = T0 + timedelta(seconds=number + 61)
    return {**sighting(number, place, event, copy), "acked_at": acked_at.isoformat()}


def upper_lines(place: str) -> Iterator[Line]:
    """EACH messages lost before the router, the place, within it; doubled by it; and whole ones."""
    for number in range(5 * EACH):
        yield trace_line(number)
        fault = number % 5
        if fault > 0:
            yield from passed(number, ("router",))
        if fault > 1:
            yield at_place(number, place, "received")
        if fault > 2:
            yield at_place(number, place, "sent")
        if fault == 3:
            yield at_place(number, place, "sent", copy=1)


@pytest.mark.parametrize("place", ["splitter", "joiner"])
def test_what_a_place_never_handed_over_is_missing_and_its_hop_named(
    lake: Lake, place: str
) -> None:
    upper = ended_at(lake, place)
    upper.log("all.jsonl", upper_lines(place))
    upper.ingest()
    report = audited(upper)
    assert report.verdict is Verdict.MIXED
    assert told(upper) == {
        ("missing", "router"): EACH,
        ("missing", place): EACH,
        ("missing", "sink"): EACH,
        ("duplicated", place): EACH,
    }
    assert report.counts["matched"] == 2 * EACH
