"""What is said of producers whose traces did not all come; nothing where they did."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.report.producer_lines import (
    producer_notes,
    producers_as_json,
    producers_from_json,
)
from shardaudit.report.summary import BrokenSession, HoleLine, ProducerLine, as_json
from tests.unit.report.reports import report

AT = datetime(2026, 11, 24, 12, 0, 59, tzinfo=UTC)
HOLE = HoleLine("9b1d", 4711, 4722, AT, AT + timedelta(minutes=1))
LOSSY = ProducerLine(
    "producer", "orders-1", 30_750, 30_504, dropped=234, lost=12, unnumbered=0, holes=(HOLE,)
)
WELL = ProducerLine("producer", "orders-2", 9, 9, dropped=0, lost=0)


def test_who_lost_traces_is_told_by_name_number_and_share() -> None:
    [note] = producer_notes([LOSSY, WELL])
    assert note.startswith(
        "producer orders-1: 234 traces were dropped, 12 numbers never came (session 9b1d: 4711 to "
        "4722, 2026-11-24T12:00:59Z to 2026-11-24T12:01:59Z): 99.20% "
        "of what it numbered in this window came. Dropped: its queue was full"
    )
    assert note.endswith(
        "What of them landed is untraced here; whether the others did, nobody sees"
    )


def test_traces_of_a_place_that_never_came_make_no_landed_message_untraced() -> None:
    [note] = producer_notes([replace(LOSSY, location="valid")])
    assert note.startswith("valid, producer orders-1: 234 traces were dropped, ")
    assert note.endswith("and looks lost where it was left out by design")


def test_not_all_holes_nor_producers_are_named() -> None:
    many = tuple(replace(HOLE, first=n, last=n, since=None, until=None) for n in range(9))
    some = [replace(LOSSY, location="router", producer_id="", lost=50, dropped=0, holes=many)] * 12
    first, *others = producer_notes(some)
    assert first.startswith("router, a nameless producer: 50 numbers never came (session 9b1d: 0; ")
    assert "session 9b1d: 2; and 47 more)" in first
    assert (len(others), others[-1][:24]) == (10, "2 more of producers whos")


def test_share_is_never_all_where_some_did_not_come() -> None:
    [note] = producer_notes([replace(LOSSY, numbered=10**9, came=10**9 - 12, dropped=0)])
    assert ": 99.99% of what it numbered" in note


def test_sessions_that_cannot_be_counted_are_told() -> None:
    [note] = producer_notes([replace(WELL, unnumbered=2)])
    assert note.startswith("producer orders-2: the numbers of 2 sessions are not consecutive")


def test_a_session_that_nobody_closed_is_told_with_its_last_number() -> None:
    broken = (BrokenSession("9b1d", 4711, AT),) * 4
    [note] = producer_notes([replace(WELL, broken_off=5, broken=broken)])
    one = "session 9b1d ended 2026-11-24T12:00:59Z, at number 4710"
    assert note.startswith(f"producer orders-2: {one}; {one}; {one}; and 2 more, and did not close")


def test_lines_are_kept_as_they_are_and_stand_in_the_document() -> None:
    lines = (LOSSY, WELL)
    assert producers_from_json(producers_as_json(lines)) == lines
    assert producers_as_json(()) is None
    assert producers_from_json(None) == ()
    [first, _] = json.loads(as_json(report(producers=lines)))["producers"]
    assert (first["lost"], first["holes"][0]["first"]) == (12, 4711)
