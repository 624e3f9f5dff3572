"""What a route may be, and where on it a message was lost or doubled."""

import pytest

from shardaudit.model.errors import ConfigError
from shardaudit.model.route.route import Route, RoutePlace, Sighting
from tests.unit.model.routes import (
    BOTH,
    BRANCHES,
    FANNED_OUT,
    FILTER,
    LEFT,
    LINE,
    RECEIVED,
    ROUND,
    SENT,
    TELLING_BRANCHES,
    TELLS,
    Seen,
)


def test_places_are_in_order_whatever_the_order_of_the_file() -> None:
    route = Route.of(dict(reversed(BRANCHES.items())))
    assert list(route.places) == ["router", "us", "eu", "writer"]
    assert route.arriving == pytest.approx({"router": 1, "us": 1, "eu": 1, "writer": 1})
    assert route.last == ("writer",)
    assert route.landing == pytest.approx(1)
    assert Route.of(FILTER).landing == pytest.approx(0.3)
    assert Route.of({}).landing == 1
    assert Route.of(TELLING_BRANCHES).places["us"].share == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("places", "where", "found"),
    [
        ({"sink": RoutePlace(("producer",))}, "locations.sink", "sink"),
        ({"producer": RoutePlace(("producer",))}, "locations.producer", "producer"),
        ({"a": RoutePlace(())}, "locations.a.after", []),
        ({"a": RoutePlace(("b",))}, "locations.a.after", "b"),
        ({"a": RoutePlace(("sink",))}, "locations.a.after", "sink"),
        (
            {"a": RoutePlace(("producer", "producer"))},
            "locations.a.after",
            ["producer", "producer"],
        ),
        ({"a": RoutePlace(("a",))}, "locations", "a after a"),
        (
            {
                "x": RoutePlace(("producer",)),
                "a": RoutePlace(("x", "b")),
                "b": RoutePlace(("c",)),
                "c": RoutePlace(("b",)),
            },
            "locations",
            "b after c after b",
        ),
        (
            {
                "a": RoutePlace(("producer",)),
                "b": RoutePlace(("a",), 0.7),
                "c": RoutePlace(("a",), 0.7),
            },
            "locations",
            "shares that bring each message 1.4 times to the sink",
        ),
        (
            {"eu": RoutePlace(("producer",), 0.4), "us": RoutePlace(("producer",), 0.5)},
            "locations",
            "shares of eu and us that add up to 0.9",
        ),
        (
            {"a": RoutePlace(("producer",)), "b": RoutePlace(("producer",), tells=True)},
            "locations.b.share",
            "traced",
        ),
    ],
)
def test_what_is_no_route_is_refused(
    places: dict[str, RoutePlace], where: str, found: object
) -> None:
    with pytest.raises(ConfigError) as refused:
        Route.of(places)
    assert (refused.value.where, refused.value.found) == (where, found)


@pytest.mark.parametrize(
    ("places", "seen", "silent", "place"),
    [
        ({}, {}, (), "sink"),
        (LINE, {}, (), "router"),
        (LINE, {"router": RECEIVED}, (), "enricher"),
        (LINE, {"router": SENT}, (), "enricher"),
        (LINE, {"enricher": RECEIVED}, (), "writer"),  # the router's trace is lost
        (LINE, {"writer": RECEIVED}, (), "sink"),
        (LINE, {}, ("router",), "enricher"),
        (LINE, {"router": BOTH}, ("enricher", "writer"), "sink"),
        (LINE, {}, tuple(LINE), "sink"),
        (BRANCHES, {"router": BOTH}, (), "eu"),
        (BRANCHES, {"us": RECEIVED}, (), "writer"),  # it took that branch
        (BRANCHES, {"us": RECEIVED, "eu": RECEIVED}, (), "writer"),  # one of them lost it
        (BRANCHES, {"us": RECEIVED, "eu": BOTH}, (), "writer"),
        (BRANCHES, {"writer": RECEIVED}, (), "sink"),
        (FILTER, {}, (), "sieve"),
        (FILTER, {"sieve": RECEIVED}, (), None),
        (FILTER, {"sieve": BOTH}, (), "writer"),
        (FILTER, {"sieve": BOTH}, ("writer",), "sink"),
        (FILTER, {}, ("sieve",), None),
        (FILTER, {"sieve": LEFT}, (), None),
        (LINE, {"router": LEFT}, (), "enricher"),  # it is to pass all on
        (FANNED_OUT, {"sieve": RECEIVED}, (), None),
        (FANNED_OUT, {"eu": RECEIVED}, (), "sink"),  # both are to pass all on
        (FANNED_OUT, {"eu": LEFT}, (), "sink"),
        (TELLS, {"sieve": RECEIVED}, (), "writer"),
        (TELLS, {"sieve": LEFT}, (), None),
        (TELLS, {"sieve": Sighting(1, 1, 1)}, (), "writer"),
        (TELLS, {"sieve": LEFT, "writer": RECEIVED}, (), "sink"),
        (TELLING_BRANCHES, {"us": RECEIVED}, (), "writer"),
        (TELLING_BRANCHES, {"us": LEFT}, (), None),
        (TELLING_BRANCHES, {"us": LEFT, "eu": RECEIVED}, (), "writer"),
        (TELLING_BRANCHES, {"us": RECEIVED, "eu": RECEIVED}, (), "writer"),
        ({"sieve": RoutePlace(("producer",), tells=True)}, {"sieve": LEFT}, (), None),
        (ROUND, {"router": BOTH}, (), "writer"),
        (ROUND, {"writer": BOTH}, (), "sink"),  # it went round the router, or that lost its trace
    ],
)
def test_missing_message_never_reached(
    places: dict[str, RoutePlace], seen: Seen, silent: tuple[str, ...], place: str | None
) -> None:
    assert Route.of(places).never_reached(seen, silent=silent) == place


@pytest.mark.parametrize(
    ("places", "seen", "place"),
    [
        ({}, {}, "producer"),
        (LINE, {}, "producer"),
        (LINE, {"router": Sighting(2, 2), "enricher": Sighting(2, 2)}, "producer"),
        (LINE, {"router": Sighting(1, 2), "enricher": Sighting(2, 2)}, "router"),
        (LINE, {"router": BOTH, "enricher": Sighting(2, 2)}, "router"),
        (LINE, {"router": BOTH, "enricher": Sighting(2, 1), "writer": BOTH}, "writer"),
        (LINE, {"router": BOTH, "writer": Sighting(0, 2)}, "router"),  # the enricher's is lost
        (LINE, {"router": BOTH, "enricher": BOTH, "writer": Sighting(1, 2)}, "writer"),
        (LINE, {"router": BOTH, "enricher": BOTH, "writer": RECEIVED}, "writer"),
        (BRANCHES, {"router": BOTH, "eu": BOTH, "us": BOTH}, "router"),
        (BRANCHES, {"router": BOTH, "eu": BOTH, "us": BOTH, "writer": Sighting(2, 2)}, "router"),
        (BRANCHES, {"router": BOTH, "us": BOTH, "writer": Sighting(2, 2)}, "us"),
        (BRANCHES, {"eu": BOTH, "us": BOTH}, "producer"),
    ],
)
def test_doubled_message_was_single_until(
    places: dict[str, RoutePlace], seen: Seen, place: str
) -> None:
    assert Route.of(places).doubled_after(seen) == place
