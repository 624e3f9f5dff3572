"""On which hop a message was lost: the ones that lead on from where it was seen last."""

import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from shardaudit.model.route.lost_hops import (
    HopLine,
    LostHops,
    TracedAlike,
    hop_lines,
    lost_hops_as_json,
    lost_hops_from_json,
    place_of,
)
from shardaudit.model.route.route import Route, RoutePlace, Sighting
from shardaudit.model.verdict import Verdict
from tests.unit.model.routes import (
    BOTH,
    BRANCHES,
    FANNED_OUT,
    FILTER,
    LEFT,
    LINE,
    RECEIVED,
    ROUND,
    TELLING_BRANCHES,
    TELLS,
    Seen,
)

TO_ROUTER = {"router": BOTH}
TWO_SENT, TWICE = Sighting(1, 2), Sighting(2, 2)
BOTH_ENDS = {"eu": RoutePlace(("producer",), 0.5), "us": RoutePlace(("producer",), 0.5)}
DEAD_END = {"router": RoutePlace(("producer",)), "eu": RoutePlace(("router",), 0.3)}


@pytest.mark.parametrize(
    ("places", "seen", "silent", "found"),
    [
        ({}, {}, (), "producer>sink 1"),
        (LINE, {}, (), "producer>router 1"),
        (LINE, {"enricher": RECEIVED}, (), "enricher>writer 1"),  # the router's trace is lost
        (LINE, {"writer": BOTH}, (), "writer>sink 1"),
        (LINE, {}, ("router",), "producer>enricher 1"),
        (LINE, {"router": BOTH}, ("enricher", "writer"), "router>sink 1"),
        (BRANCHES, {"router": BOTH}, (), "router>eu 0.4, router>us 0.6"),
        (BRANCHES, {"router": BOTH}, ("us",), "router>eu 0.4, router>writer 0.6"),
        (BRANCHES, {}, ("router",), "producer>eu 0.4, producer>us 0.6"),
        (BRANCHES, {"us": BOTH}, (), "us>writer 1"),
        (BRANCHES, {"eu": BOTH, "us": BOTH}, (), "eu>writer 0.5, us>writer 0.5"),
        (BRANCHES, {"eu": RECEIVED, "us": RECEIVED}, (), "eu>writer 0.5, us>writer 0.5"),
        (BRANCHES, {"eu": BOTH, "router": BOTH, "writer": RECEIVED}, (), "writer>sink 1"),
        (BOTH_ENDS, {"us": RECEIVED}, (), "us>sink 1"),
        (FILTER, {}, (), "producer>sieve 1"),
        (FILTER, {"sieve": RECEIVED}, (), ""),
        (FILTER, {"sieve": BOTH}, (), "sieve>writer 1"),
        (FILTER, {"writer": RECEIVED}, (), "writer>sink 1"),
        (ROUND, {"router": BOTH}, (), "router>writer 1"),
        (DEAD_END, {"eu": BOTH}, (), "eu>sink 1"),
        (FANNED_OUT, {"eu": RECEIVED}, (), "eu>sink 1"),
    ],
)
def test_message_is_lost_behind_where_it_was_seen_last(
    places: dict[str, RoutePlace], seen: Seen, silent: tuple[str, ...], found: str
) -> None:
    lost = LostHops(Route.of(places), frozenset(silent)).of(seen)
    assert ", ".join(f"{h.after}>{h.before} {round(h.probability, 4):g}" for h in lost) == found
    assert lost_hops_from_json(lost_hops_as_json(lost)) == lost
    never_reached = set(re.findall(r">(\w+)", found))
    assert {place_of(lost)} == (never_reached if len(never_reached) == 1 else {None})


@pytest.mark.parametrize(
    ("losses", "missing", "found"),
    [
        ({"router": 0.05}, (24, 80, 0), "producer>router 0.83, router>enricher 0.17"),
        ({"router": 0.05}, (80, 20, 0), "producer>router 0.99"),
        ({"router": 0.05}, (1, 0, 0), "producer>router 0.98"),
        ({"router": 0.5}, (1, 0, 0), "producer>router 0.78, router>enricher 0.22"),
        ({"router": 0.5}, (20, 0, 0), "producer>router 0.98"),
        (
            {"router": 0.05, "enricher": 0.05},
            (40, 0, 800),
            "producer>router 0.95, enricher>writer 0.05",
        ),
        ({"router": 0.05}, (5, 95, 0), "producer>router 0.27, router>enricher 0.73"),
        ({}, (1, 10**6, 10**6), "producer>router 1"),
    ],
)
def test_loss_that_trace_loss_explains_is_inconclusive(
    losses: dict[str, float], missing: tuple[int, int, int], found: str
) -> None:
    seen: tuple[Seen, ...] = ({}, {"router": BOTH}, {"enricher": RECEIVED})
    lost = LostHops(Route.of(LINE), trace_losses=losses).with_loss_rates(
        list(zip(seen, missing, strict=True))
    )
    told = ", ".join(f"{h.after}>{h.before} {h.probability:.2g}" for h in lost.of({}))
    assert told == found


def test_what_a_filter_left_out_is_not_lost_before_it_where_it_loses_traces() -> None:
    lost = LostHops(Route.of(FILTER), trace_losses={"sieve": 0.01})
    lost = lost.with_loss_rates([({"sieve": RECEIVED}, 7000), ({"sieve": BOTH}, 5), ({}, 70)])
    assert place_of(lost.of({})) is None
    assert [hop.before for hop in lost.of({"sieve": BOTH})] == ["writer"]


def test_message_goes_on_by_the_shares_of_branches_where_these_lose_traces() -> None:
    lost = LostHops(Route.of(BRANCHES), trace_losses={"eu": 0.5, "us": 0.5})
    found = [(hop.after, hop.before, round(hop.probability, 4)) for hop in lost.of(TO_ROUTER)]
    assert found == [
        *(("router", "eu", 0.2667), ("router", "us", 0.4)),
        *(("eu", "writer", 0.1333), ("us", "writer", 0.2)),
    ]


def test_at_a_filter_a_message_was_left_out_as_likely_as_lost_behind_it() -> None:
    route = Route.of({"sieve": RoutePlace(("producer",), 0.3)})
    lost = LostHops(route, trace_losses={"sieve": 0.01})
    lost = lost.with_loss_rates([({"sieve": RECEIVED}, 7000), ({}, 150)])
    # Without a trace are 1 % of what came to the sieve: 71 of the 7,071, beside 80 before it.
    assert {(hop.after, hop.before): round(hop.probability, 2) for hop in lost.of({})} == {
        ("producer", "sieve"): 0.53,
        ("sieve", None): 0.23,
        ("sieve", "sink"): 0.23,
    }


@pytest.mark.parametrize(
    ("end_loss", "told", "lacking", "missing", "found"),
    [
        (0.0, 1000, 0, 1, "sieve>writer 1"),
        (0.01, 1000, 0, 400, "sieve>writer 0.97"),
        (0.01, 1000, 0, 12, "sieve>None 0.73, sieve>writer 0.27"),
        (0.01, 0, 0, 1, "sieve>writer 1"),
        (0.5, 1000, 0, 12, "sieve>None 1"),
        (1.0, 1000, 0, 12, "sieve>None 0.5, sieve>writer 0.5"),  # it tells nothing
        # By the numbers of its log it loses traces, though not of what it sent on.
        (0.0, 1000, 10, 12, "sieve>None 0.72, sieve>writer 0.28"),
        (0.0, 1000, 1, 1, "sieve>None 0.5, sieve>writer 0.5"),
        (0.0, 0, 10, 12, "sieve>None 0.72, sieve>writer 0.28"),
        (0.0, 1000, 10, 400, "sieve>writer 0.98"),
        (0.01, 1000, 2, 400, "sieve>writer 0.97"),
    ],
)
def test_lost_word_of_a_filter_makes_a_loss_in_it_doubtful(
    end_loss: float, told: int, lacking: int, missing: int, found: str
) -> None:
    seen = {"sieve": RECEIVED}
    ends, out, never_came = {"sieve": end_loss}, {"sieve": told}, {"sieve": lacking}
    lost = LostHops(Route.of(TELLS), end_losses=ends, left_out=out, lacking=never_came)
    hops = lost.with_loss_rates([(seen, missing)]).of(seen)
    assert ", ".join(f"{h.after}>{h.before} {h.probability:.2g}" for h in hops) == found
    assert place_of(hops) == ("writer" if len(hops) == 1 and hops[0].before else None)
    # What it sent on it did not leave out.
    assert [h.before for h in lost.with_loss_rates([]).of({"sieve": BOTH})] == ["writer"]


def test_without_a_trace_of_a_filter_a_message_may_have_been_left_out_there() -> None:
    route = Route.of(TELLS)
    for ends in ({"sieve": 0.0}, {}):
        losses = LostHops(
            route, trace_losses={"sieve": 0.1}, end_losses=ends, left_out={"sieve": 900}
        )
        hops = losses.with_loss_rates([({}, 100)]).of({})
        assert {hop.before for hop in hops} == {"sieve", None}
    assert {hop.before for hop in LostHops(route).unknowing().of({})} == {*TELLS, "sink", None}
    silent = LostHops(route, frozenset({"sieve"})).with_loss_rates([({}, 100)])
    assert [(hop.after, hop.before) for hop in silent.of({})] == [
        *(("sieve", None), ("producer", "writer")),
    ]
    two = LostHops(Route.of(TELLING_BRANCHES)).of({"us": LEFT, "eu": BOTH})
    assert [(hop.after, hop.before) for hop in two] == [("eu", "writer")]


@pytest.mark.parametrize(("trace_loss", "most_wrong"), [(0.0, 0.0), (0.01, 0.01), (0.2, 0.03)])
def test_hop_that_is_named_is_hardly_ever_wrong(trace_loss: float, most_wrong: float) -> None:
    chance = random.Random(3)  # noqa: S311 - to be repeated
    route, losses = Route.of(BRANCHES), dict.fromkeys(BRANCHES, trace_loss)
    told = Counter[bool | None]()  # whether the place is right; None: inconclusive
    for _ in range(20):
        lost = Counter[tuple[frozenset[str], str]]()
        for hop in range(4):
            for _message in range(chance.choice((1, 20, 20, 200))):
                way = ("router", chance.choice(("eu", "us")), "writer", "sink")
                seen = frozenset(p for p in way[:hop] if chance.random() >= trace_loss)
                lost[seen, way[hop]] += 1
        hops = LostHops(route, trace_losses=losses).with_loss_rates(
            [(dict.fromkeys(seen, BOTH), count) for (seen, _), count in lost.items()]
        )
        for (seen, place), count in lost.items():
            named = place_of(hops.of(dict.fromkeys(seen, BOTH)))
            told[None if named is None else named == place] += count
    assert told[False] <= most_wrong * told[True]
    assert told[True] > told[None] / 2


TO_ENRICHER = {"enricher": BOTH}


@pytest.mark.parametrize(
    ("missing", "seen", "found"),
    [
        # However many are lost on one of the hops around it at other times.
        ((), {}, "producer>router 0.49, router>enricher 0.49, enricher>writer 0.02"),
        (
            ({},) * 3,
            {},
            "producer>router 0.68, router>enricher 0.31, enricher>writer 0.012",
        ),
        # What another place loses of its traces alone names no hop behind that, either.
        ((TO_ENRICHER,) * 99, {}, "producer>router 0.3, router>enricher 0.3, enricher>writer 0.41"),
        # A trace behind it tells, as ever.
        (({},) * 3, TO_ENRICHER, "enricher>writer 0.96"),
        ((), {"writer": BOTH}, "writer>sink 1"),
    ],
)
def test_hops_around_a_dark_place_are_not_told_apart(
    missing: tuple[Seen, ...], seen: Seen, found: str
) -> None:
    losses = {"router": 1.0, "enricher": 0.04, "writer": 0.04}
    lost = LostHops(Route.of(LINE), trace_losses=losses, dark=frozenset({"router"}))
    often = replace(lost, trace_losses=dict.fromkeys(LINE, 0.04), dark=frozenset())
    rates = often.with_loss_rates([(each, 1) for each in missing]).loss_rates
    hops = replace(lost, loss_rates=rates).of(seen)
    assert ", ".join(f"{h.after}>{h.before} {h.probability:.2g}" for h in hops) == found


def counted(places: dict[str, RoutePlace], found: TracedAlike) -> str:
    """What the ways of a route have that is not nothing: lost, doubtful and doubled."""
    return ", ".join(
        f"{way.after}>{way.before} {way.lost}/{way.doubtful}/{way.doubled}"
        for way in hop_lines(Route.of(places), [found])
        if way.lost or way.doubtful or way.doubled
    )


@pytest.mark.parametrize(
    ("places", "seen", "silent", "ways"),
    [
        (LINE, {}, (), "producer>router 3/0/0"),
        (LINE, {"writer": BOTH}, (), "writer>sink 3/0/0"),
        (LINE, {}, ("router",), "producer>router 0/3/0, router>enricher 0/3/0"),
        (LINE, {"enricher": BOTH}, ("writer",), "enricher>writer 0/3/0, writer>sink 0/3/0"),
        (BRANCHES, {"router": BOTH}, (), "router>eu 0/3/0, router>us 0/3/0"),
        (
            BRANCHES,
            {"router": BOTH},
            ("us",),
            "router>eu 0/3/0, router>us 0/3/0, us>writer 0/3/0",
        ),
        (BRANCHES, {"us": BOTH}, (), "us>writer 3/0/0"),
        (FILTER, {"sieve": RECEIVED}, (), ""),
    ],
)
def test_lost_messages_count_on_the_way_that_lost_them(
    places: dict[str, RoutePlace], seen: Seen, silent: tuple[str, ...], ways: str
) -> None:
    lost = LostHops(Route.of(places), frozenset(silent)).of(seen)
    assert counted(places, TracedAlike(3, seen, lost, silent)) == ways


@pytest.mark.parametrize(
    ("places", "seen", "ways"),
    [
        (LINE, {}, "producer>router 0/0/2"),
        (LINE, {"router": TWO_SENT}, "router>enricher 0/0/2"),
        (BRANCHES, {"router": TWO_SENT, "us": TWICE}, "router>us 0/0/2"),
        # One copy by each branch, or nobody knows by which.
        (
            BRANCHES,
            {"router": TWO_SENT, "eu": BOTH, "us": BOTH},
            "router>eu 0/0/2, router>us 0/0/2",
        ),
        (BRANCHES, {"router": TWO_SENT}, "router>eu 0/0/2, router>us 0/0/2"),
        (BRANCHES, {"writer": TWO_SENT}, "writer>sink 0/0/2"),
    ],
)
def test_doubled_messages_count_on_the_way_that_they_took(
    places: dict[str, RoutePlace], seen: Seen, ways: str
) -> None:
    assert counted(places, TracedAlike(2, seen)) == ways


def test_each_way_of_a_route_is_there_once_when_nothing_is_found() -> None:
    ways = hop_lines(Route.of(BRANCHES), [])
    assert [(way.after, way.before) for way in ways] == [
        *(("producer", "router"), ("router", "eu"), ("router", "us")),
        *(("eu", "writer"), ("us", "writer"), ("writer", "sink")),
    ]
    assert {way.verdict for way in ways} == {Verdict.OK}


@pytest.mark.parametrize(
    ("way", "verdict"),
    [
        (HopLine("a", "b", lost=1, doubtful=1), Verdict.LOSS),
        (HopLine("a", "b", lost=1, doubled=1), Verdict.MIXED),
        (HopLine("a", "b", doubtful=1, doubled=1), Verdict.DUPLICATION),
        (HopLine("a", "b", doubtful=1), Verdict.INCONCLUSIVE),
        (HopLine("a", "b"), Verdict.OK),
    ],
)
def test_verdict_of_a_way_is_what_happened_on_it(way: HopLine, verdict: Verdict) -> None:
    assert way.verdict == verdict
