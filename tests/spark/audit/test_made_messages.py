"""Messages that are split into others, or joined: each half of the way, and where it lost any."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from pyspark.sql import Row

from shardaudit.model.config.parts import Sink
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.route_tables import handed_over
from shardaudit.model.verdict import Verdict
from tests.builders import NOW, T0, Line, Value, sink_row, trace_line
from tests.spark.audit.on_routes import EACH, audited, passed, sighting, told
from tests.spark.lake import Lake


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


def lower_lines(children: Sequence[tuple[str, int, Value]]) -> Iterator[Line]:
    """What was made, of which number and parents: a third lost before the writer, a third in it."""
    for at, (message, number, parents) in enumerate(children):
        who = {"message_id": message}
        yield trace_line(number, **who, parent_ids=parents)
        if at % 3:
            yield from ({**line, **who} for line in passed(number, ("writer",)))


@pytest.mark.parametrize("place", ["splitter", "joiner"])
def test_what_was_made_is_missing_with_its_hop_and_its_parents(lake: Lake, place: str) -> None:
    if place == "splitter":
        children: list[tuple[str, int, Value]] = [
            (f"m{number}/{part}", number, f"m{number}") for number in range(30) for part in range(3)
        ]
    else:
        children = [
            (f"j{number}", number, [f"m{number}", f"m{number + 1}"]) for number in range(90)
        ]
    lower = made(lake)
    lower.land(
        {**sink_row(number), "message_id": message}
        for at, (message, number, _) in enumerate(children)
        if at % 3 == 2
    )
    lower.log("made.jsonl", lower_lines(children))
    lower.ingest()
    report = audited(lower)
    assert (report.verdict, report.counts["sent"]) == (Verdict.LOSS, 90)
    assert told(lower) == {("missing", "writer"): 30, ("missing", "sink"): 30}
    parents = {one: of if isinstance(of, list) else [of] for one, _, of in children}
    assert {row.message_id: json.loads(row.attributes["parent_ids"]) for row in found(lower)} == {
        one: parents[one] for at, (one, _, _) in enumerate(children) if at % 3 < 2
    }


def found(lake: Lake) -> list[Row]:
    return lake.rows(FINDINGS)


def handed(lake: Lake) -> Counter[str]:
    """How often each message was handed over."""
    place = str(lake.stream.sink.place)
    return Counter(
        row.message_id for row in lake.warehouse.read(handed_over(lake.name, place)).collect()
    )


def test_a_trace_that_comes_again_is_handed_over_once_and_one_before_its_place_was_named_too(
    lake: Lake,
) -> None:
    upper = ended_at(lake, "splitter")
    lake.settings = {"locations": upper.settings["locations"]}
    one, other = (at_place(number, "splitter", "sent") for number in range(2))
    lake.log("first.jsonl", [trace_line(0), trace_line(1), one, one])
    lake.ingest()  # into a lake of its own, so far
    upper.log("again.jsonl", [one, other, at_place(0, "splitter", "received")])
    upper.ingest()
    assert handed(upper) == {"m0": 1, "m1": 1}
    assert upper.ingest().sink_rows == 0
    assert audited(upper).verdict is Verdict.OK


def test_parents_of_a_trace_of_a_place_are_refused(lake: Lake) -> None:
    upper = ended_at(lake, "splitter")
    sent = at_place(0, "splitter", "sent")
    child = {**sent, "message_id": "m0/1", "parent_ids": "m0"}
    upper.log("all.jsonl", [trace_line(0), child])
    upper.ingest()
    assert [row.reason for row in upper.refused()] == [
        "parent_ids at splitter: the producer's traces alone have it"
    ]
    assert handed(upper) == {}


def test_of_a_damaged_file_of_the_end_nothing_is_said(lake: Lake) -> None:
    """It lags behind the producers' traces that came with it, and may hold older messages."""
    upper = ended_at(lake, "splitter")
    upper.log("p1.jsonl", map(trace_line, range(60)))
    upper.log("s1.jsonl", [at_place(n, "splitter", "sent") for n in range(30, 60)])
    upper.ingest()
    upper.log("p2.jsonl", map(trace_line, range(200, 260)))
    upper.log("s2.jsonl", [at_place(n, "splitter", "sent") for n in range(200, 260)])
    late = upper.log("late.jsonl.gz", [at_place(n, "splitter", "sent") for n in range(30)])
    late.write_bytes(late.read_bytes()[:20])
    written = (NOW - timedelta(minutes=1)).timestamp()
    os.utime(late, (written, written))
    upper.ingest()
    report = audited(upper)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert (report.counts["missing"], report.counts["pending"]) == (0, 30)
