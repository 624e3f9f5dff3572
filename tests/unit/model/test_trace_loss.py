"""What places lose of their traces, by what landed."""

import pytest

from shardaudit.model.route.route import Route, RoutePlace
from shardaudit.model.route.trace_loss import (
    Traced,
    as_if_always,
    end_losses,
    losses_as_of_new,
    losses_of_a_minute,
    trace_losses,
    usual_losses,
)
from tests.unit.model.routes import BRANCHES, FILTER, LINE, TELLING_BRANCHES, TELLS

PIPELINES = {
    "a": RoutePlace(("producer",), 0.5),
    "b": RoutePlace(("producer",), 0.5),
    "c": RoutePlace(("a",)),
    "d": RoutePlace(("b",)),
}
ROUND = {
    "router": RoutePlace(("producer",)),
    "extra": RoutePlace(("router",), 0.5),
    "writer": RoutePlace(("router", "extra"), 0.5),
}


@pytest.mark.parametrize(
    ("places", "traced", "losses"),
    [
        (LINE, {"router": 100, "enricher": 90}, {"router": 0, "enricher": 0.1, "writer": 1}),
        (LINE, {"router": 103, "enricher": 100, "writer": 100}, dict.fromkeys(LINE, 0)),
        (
            BRANCHES,
            {"router": 100, "eu": 30, "us": 50, "writer": 99},
            {"router": 0, "eu": 0.2, "us": 0.2, "writer": 0.01},
        ),
        (FILTER, {"sieve": 80, "writer": 100}, {"sieve": 0.2, "writer": 0}),
        # 40 of a with a loss of a tenth: 44 went to c.
        (
            PIPELINES,
            {"a": 40, "b": 50, "c": 33, "d": 55},
            {"a": 0.1, "b": 0.1, "c": 0.26, "d": 0.01},
        ),
        (PIPELINES, {"c": 33, "d": 55}, {"a": 1, "b": 1}),
        (ROUND, {"router": 90, "extra": 20, "writer": 80}, {"router": 0.1, "writer": 0.2}),
    ],
)
def test_place_lost_what_landed_without_its_trace(
    places: dict[str, RoutePlace], traced: dict[str, int], losses: dict[str, float]
) -> None:
    found = trace_losses(Route.of(places), Traced(100, traced))
    assert {name: round(loss, 2) for name, loss in found.items()} == losses
    assert trace_losses(Route.of(places), Traced()) == {}


def test_what_a_place_left_to_another_stands_for_no_trace_that_this_one_lost() -> None:
    # Each reads everything; one of them lost half of its traces.
    traced = {"eu": 50, "us": 100, "writer": 99}
    found = Traced(100, traced, {"eu": 20, "us": 60, "writer": 99})
    losses = trace_losses(Route.of(TELLING_BRANCHES), found)
    assert losses == pytest.approx({"eu": 0.2, "us": 0.2, "writer": 0.01})
    # Nor does what a filter behind them left out.
    passed_on, behind = {"eu": 40, "us": 120, "writer": 99}, {"eu": 20, "us": 60}
    assert trace_losses(Route.of(TELLING_BRANCHES), Traced(100, traced, passed_on, {}, behind)) == (
        pytest.approx(losses)
    )


def test_place_that_tells_lost_how_a_message_ended_where_it_did_not_trace_it_as_sent() -> None:
    traced = Traced(60, {}, {"sieve": 50, "writer": 60}, {"sieve": 30, "writer": 1})
    traced += Traced(60, {}, {"sieve": 50}, {"sieve": 50})
    assert end_losses(Route.of(TELLS), traced, {}) == pytest.approx({"sieve": 0.2})
    # Of one branch alone, whatever goes by the other.
    both = Traced(1000, {}, {"eu": 990, "us": 10}, {"eu": 990, "us": 5})
    assert end_losses(Route.of(TELLING_BRANCHES), both, {}, least=10) == {"us": 0.5}


def test_how_few_messages_ended_is_known_by_what_was_before_alone() -> None:
    route = Route.of(TELLS)
    few, more = (Traced(10, {}, {"sieve": n}, {"sieve": 0}) for n in (9, 10))
    assert end_losses(route, few, {}, least=10) == {}
    assert end_losses(route, more, {}, least=10) == {"sieve": 1}
    assert end_losses(route, more, {"sieve": 0.0}, least=10) == {"sieve": 0.5}
    assert end_losses(route, Traced(), {"sieve": 0.25}, least=10) == {"sieve": 0.25}
    # What it sent may count for more than what it had.
    assert end_losses(route, Traced(10, {}, {"sieve": 10}, {"sieve": 11}), {}) == {"sieve": 0}


def test_new_place_traces_as_it_does_since_but_not_what_another_traced_instead() -> None:
    line, branches = Route.of(LINE), Route.of(BRANCHES)
    first, *_ = line.places
    half = Traced(1000, dict.fromkeys(line.places, 1000) | {first: 450})
    assert trace_losses(line, as_if_always(line, half, {first: 500}))[first] == pytest.approx(0.1)
    # Too few since, or none: it is not known that it traces any.
    assert as_if_always(line, half, {first: 9}) == as_if_always(line, half, {}) == half
    # All went by `eu` before, which loses a fifth of its traces, as `us` does since.
    both = Traced(24_000, {"router": 24_000, "eu": 14_400, "us": 4_800, "writer": 24_000})
    since = as_if_always(branches, both, {"us": 12_000})
    assert trace_losses(branches, since)["us"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("landed", "eu", "us", "since", "loss"),
    [
        (100, 30, 10, {"eu": 100, "us": 20}, 0.2),
        (100, 30, 5, {"eu": 100, "us": 9}, None),  # of `us` it is too few to tell
        (100, 0, 0, {"eu": 0, "us": 0}, None),
        (5, 3, 1, {"eu": 5, "us": 5}, 0.2),
        (100, 70, 0, {"us": 0}, 0.3),  # `eu` had those of both
    ],
)
def test_losses_of_new_places_are_of_what_landed_since_they_trace(
    landed: int, eu: int, us: int, since: dict[str, int], loss: float | None
) -> None:
    traced = Traced(landed, {"router": landed, "eu": eu, "us": us, "writer": landed})
    losses = losses_as_of_new(Route.of(BRANCHES), traced, since)
    assert [losses.get("eu"), losses.get("us")] == pytest.approx([loss, loss])
    assert (losses["router"], losses["writer"]) == (0, 0)


def test_losses_of_a_minute_are_its_own_as_far_as_it_has_messages() -> None:
    route = Route.of(ROUND)
    window = Traced(1000, {"router": 990, "extra": 1, "writer": 1000})
    broken = Traced(90, {"writer": 90})
    usual = usual_losses(route, window, {})
    assert losses_of_a_minute(route, broken, usual) == pytest.approx(
        {"router": 0.901, "extra": 0.901, "writer": 0}
    )
    assert losses_of_a_minute(route, Traced(), usual)["router"] == pytest.approx(0.01)
    usual = usual_losses(route, window + broken, {})
    assert losses_of_a_minute(route, broken, usual)["router"] > 0.9


def test_usual_losses_are_those_of_before_where_few_landed_and_unknown_without() -> None:
    route = Route.of(ROUND)
    few, more = (Traced(landed, {"router": 0, "writer": landed}) for landed in (9, 10))
    assert usual_losses(route, Traced(), {}) == {}
    assert usual_losses(route, few, {}) == usual_losses(route, few, {"router": 0.01}) == {}
    assert usual_losses(route, more, {}) == {"router": 1, "writer": 0}
    before = {"router": 0.01, "writer": 0.5}
    assert usual_losses(route, Traced(), before) == before
    assert usual_losses(route, more, before) == pytest.approx({"router": 0.505, "writer": 0.25})
