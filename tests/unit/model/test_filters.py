"""Which places leave messages out by design, and which of it their share explains."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.rates import is_surely_below
from shardaudit.model.route.filters import (
    Beside,
    Passage,
    beside_filters,
    filter_times,
    filters,
    unexplained_hours,
)
from shardaudit.model.route.route import Route, RoutePlace

HOUR, START = timedelta(hours=1), datetime(2026, 11, 20, 12, tzinfo=UTC)


def route(**places: tuple[str, float]) -> Route:
    return Route.of({n: RoutePlace(tuple(of.split()), share) for n, (of, share) in places.items()})


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ({"router": ("producer", 1.0)}, []),
        ({"eu": ("producer", 0.4), "us": ("producer", 0.6)}, []),
        ({"filter": ("producer", 0.7)}, [(("filter",), 0.7)]),
        ({"one": ("producer", 0.7), "two": ("one", 0.5)}, [(("one",), 0.7), (("two",), 0.5)]),
        # The branches pass all on together, the place behind one of them does not.
        (
            {"eu": ("producer", 0.4), "us": ("producer", 0.6), "some": ("us", 0.5)},
            [(("some",), 0.5)],
        ),
        # Nobody can tell which part of what is meant.
        ({"a": ("producer", 1.0), "eu": ("a", 0.4), "us": ("a producer", 0.2)}, []),
    ],
)
def test_filters_of_a_route(
    places: Mapping[str, tuple[str, float]], found: list[tuple[tuple[str, ...], float]]
) -> None:
    told = [(of.places, round(of.share, 9)) for of in filters(route(**places))]
    assert told == found


def test_each_place_that_tells_what_it_leaves_out_is_a_filter_of_its_own() -> None:
    tells = RoutePlace(("a",), tells=True)
    places = {"a": RoutePlace(("producer",), 0.5), "b": tells, "c": tells, "d": RoutePlace(("b",))}
    told = [(of.places, of.share, of.tells) for of in filters(Route.of(places))]
    assert told == [(("a",), 0.5, False), (("b",), 0.5, True), (("c",), 0.5, True)]


def test_what_is_before_and_behind_a_filter() -> None:
    [one] = filters(route(a=("producer", 1.0), b=("a", 0.7), c=("b", 1.0), d=("c", 1.0)))
    assert (set(one.before), set(one.behind)) == ({"a"}, {"c", "d"})


@pytest.mark.parametrize(
    ("passed", "received", "share", "is_below"),
    [
        (0, 0, 0.7, False),
        (0, 6, 0.7, False),  # 0.3 ** 6 is 0.07 %
        (0, 7, 0.7, True),
        (0, 1, 0.99, False),
        (0, 2, 0.99, True),
        (7, 10, 0.7, False),
        (65_000, 100_000, 0.7, True),
        (69_800, 100_000, 0.7, False),
        (90_000, 100_000, 0.7, False),
    ],
)
def test_what_is_surely_below_a_share(
    passed: int, received: int, share: float, is_below: bool
) -> None:
    assert is_surely_below(passed, received, share) == is_below


def passage(hour: int, received: int, passed: int, told: int | None = None) -> Passage:
    by = passed if told is None else told
    return Passage("a", START + hour * HOUR, received, passed, by)


@pytest.mark.parametrize(
    ("passages", "found"),
    [
        ([passage(0, 1000, 690), passage(1, 1000, 200)], [(1, 2, "below", 1000, 200)]),
        # Thin hours are told as a day, and thin days as all that is looked at.
        ([passage(n, 2, 0) for n in range(4)], [(0, 4, "below", 8, 0)]),
        ([passage(24 * n, 1, 0) for n in range(3)], []),
        (
            [passage(24 * n, 1, 0) for n in range(7)],
            [(24 * n, 24 * n + 1, "below", 1, 0) for n in range(7)],
        ),
        # One broken hour does not take the day with it.
        ([passage(n, 1000, 700 if n else 0) for n in range(3)], [(0, 1, "below", 1000, 0)]),
        ([passage(0, 1000, 750, told=746), passage(1, 10, 9, told=7)], []),
        ([passage(0, 1000, 750, told=600)], [(0, 1, "untold", 1000, 750)]),
        ([passage(0, 400, 300, told=297)], []),  # no more than one in a hundred
        ([passage(0, 400, 299, told=296)], [(0, 1, "untold", 400, 299)]),
        ([passage(0, 4, 4, told=2)], []),
        ([passage(n, 1000, 200 + n) for n in range(2)], [(0, 2, "below", 2000, 401)]),
        # What it told itself is explained, and nothing else by that.
        ([replace(passage(0, 1000, 200), left_out=800)], []),
        ([replace(passage(0, 1000, 200), left_out=799)], [(0, 1, "below", 1000, 200)]),
        ([replace(passage(0, 100, 0), left_out=100)], []),
    ],
)
def test_hours_that_a_share_does_not_explain(
    passages: list[Passage], found: list[tuple[int, int, str, int, int]]
) -> None:
    told = filter_times(passages, unexplained_hours(passages, 0.7), width=HOUR)
    assert [
        ((t.since - START) // HOUR, (t.until - START) // HOUR, t.because, t.received, t.passed)
        for t in told
    ] == found


def test_shards_are_told_in_their_order() -> None:
    whole = [Passage(f"s{n}", START, 100, 90, 90) for n in range(9)]
    dark = [Passage(name, START, 100, 0, 0) for name in ("t1", "t0")]
    told = filter_times([*whole, *dark], unexplained_hours([*whole, *dark], 0.5), width=HOUR)
    assert [one.shard_id for one in told] == ["t0", "t1"]


def test_shard_of_which_nothing_is_passed_on_is_told_apart() -> None:
    whole = [Passage(f"s{n}", START, 100, 90, 90) for n in range(9)]
    dark, thin = Passage("s9", START, 100, 0, 0), Passage("t", START, 9, 0, 0)
    told = filter_times(
        [*whole, dark, thin], unexplained_hours([*whole, dark, thin], 0.7), width=HOUR
    )
    assert [(one.shard_id, one.because, one.received) for one in told] == [("s9", "nothing", 100)]


BETWEEN = {"a": ("eu",), "b": ("eu", "us"), "c": ("us",)}


def test_places_beside_one_that_tells_may_read_what_it_left_out() -> None:
    eu, us = RoutePlace(("producer",), 0.4), RoutePlace(("producer",), tells=True)
    behind = {"one": RoutePlace(("us",), tells=True), "writer": RoutePlace(("eu", "one"))}
    found = beside_filters(Route.of({"eu": eu, "us": us, **behind}))
    assert found == (Beside(("eu", "us"), ("producer",)),)
    # Nothing else leads to `a` and `c`, but `b` stands beside both.
    row = {name: RoutePlace(after, tells=True) for name, after in BETWEEN.items()}
    found = beside_filters(Route.of({"eu": eu, "us": us, **row}))
    assert found[1:] == (Beside(("a", "b", "c"), ("eu", "us")),)
    assert beside_filters(route(eu=("producer", 0.4), us=("producer", 0.6))) == ()
