"""What is said of a route, and how the tables keep it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.route.filters import Passage, filter_times, unexplained_hours
from shardaudit.model.route.lost_hops import HopLine
from shardaudit.report.route_lines import hops_as_json, hops_from_json, lost_told, route_notes
from shardaudit.report.summary import AuditedPlace


def test_missing_messages_that_are_on_no_hop_are_told() -> None:
    # One of the three may have been lost on either.
    ways = (HopLine("producer", "router", lost=2, doubtful=1), HopLine("router", "sink", 0, 1))
    hops = [AuditedPlace("router", ("producer",), 1.0, 90, 90, ways=ways, on_hops=3)]
    [note] = route_notes(hops, sent=100, missing=10, landed=90)
    assert "7 missing messages are on no hop" in note
    assert route_notes(hops, sent=100, missing=3, landed=90) == ()
    assert route_notes([replace(hops[0], on_hops=None)], sent=100, missing=10, landed=90) == ()


@pytest.mark.parametrize(
    ("received", "after", "is_told"),
    [(240, "producer", True), (450, "producer", False), (0, "producer", False), (240, "us", False)],
)
def test_filter_that_far_more_messages_went_past_is_named(
    received: int, after: str, is_told: bool
) -> None:
    us = AuditedPlace("us", ("producer",), 0.5, 260, 260)  # beside others
    half = AuditedPlace("half", (after,), 0.5, received, received, is_filter=True)
    notes = " ".join(route_notes([us, half], sent=480, missing=20, landed=458))
    assert ("half received 240 messages, and 458 landed that are to come by it" in notes) == is_told


def test_places_are_read_as_they_were_kept_also_with_what_was_told_once() -> None:
    ways, since = (HopLine("producer", "router"),), datetime(2026, 11, 20, tzinfo=UTC)
    hops = (AuditedPlace("router", ("producer",), 1.0, 90, 90, ways=ways, traces_since=since),)
    kept = hops_as_json(hops)
    assert kept is not None and hops_from_json(kept) == hops
    older = [{**row, "coverage": 0.4} for row in json.loads(kept)]
    assert hops_from_json(json.dumps(older)) == hops


def test_note_says_how_few_a_filter_traced_of_what_it_passed_on() -> None:
    hour, start = timedelta(hours=1), datetime(2026, 11, 20, 12, tzinfo=UTC)
    passages = [Passage("a", start + n * hour, 1000, 750, told=300 + n) for n in range(2)]
    times = filter_times(passages, unexplained_hours(passages, 0.7), width=hour)
    hops = (AuditedPlace("filter", ("producer",), 0.7, 2000, 601, unexplained=times),)
    for kept in (hops, hops_from_json(hops_as_json(hops))):
        [note] = route_notes(kept, sent=2000, missing=0, landed=2000)
        assert "filter passed on 1,500 of 2,000 messages, but traced too few of these (601)" in note


@pytest.mark.parametrize(
    ("hops", "told"),
    [
        ([], None),
        ([("us", "writer", 1.0)], "us → writer"),
        ([("eu", "writer", 0.5), ("us", "writer", 0.5)], "eu → writer or us → writer"),
        ([("a", "b", 0.4), ("b", "c", 0.6)], "inconclusive: a → b 40%, b → c 60%"),
        ([("sieve", None, 1.0)], "inconclusive: left out by sieve 100%"),
        (
            [("a", "sieve", 0.4), ("sieve", None, 0.6)],
            "inconclusive: a → sieve 40%, left out by sieve 60%",
        ),
    ],
)
def test_hop_is_told_as_sure_when_no_other_may_have_lost_the_message(
    hops: list[tuple[str, str | None, float]], told: str | None
) -> None:
    names = ("after", "before", "probability")
    assert lost_told(json.dumps([dict(zip(names, hop, strict=True)) for hop in hops])) == told
