"""Where the traces of a place are gone for a while, by what landed about then."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from shardaudit.model.route.dark_places import LandedMinutes
from shardaudit.model.route.route import Route, RoutePlace
from shardaudit.model.route.trace_loss import Traced
from tests.builders import T0
from tests.unit.model.routes import BRANCHES, LINE

ALL, BEHIND, NONE = (1, 1, 1), (0, 1, 1), (0, 0, 0)  # of what landed: router, enricher, writer


def minutes_of(each: int, shares: Sequence[Sequence[float]]) -> dict[datetime, Traced]:
    return {
        T0 + n * timedelta(minutes=1): Traced(
            each if any(of) else 0,
            {name: round(each * share) for name, share in zip(LINE, of, strict=True)},
        )
        for n, of in enumerate(shares)
    }


@pytest.mark.parametrize(
    ("each", "shares", "usual", "dark"),
    [
        (9, [ALL, ALL, NONE, ALL, ALL], 0.0, set()),
        (9, [ALL, ALL, BEHIND, ALL, ALL], 0.0, {"router"}),
        (9, [ALL, ALL, NONE, BEHIND, BEHIND], 0.5, {"router"}),
        (9, [BEHIND, BEHIND, NONE, ALL, ALL], 0.5, {"router"}),
        (9, [ALL, BEHIND, ALL, BEHIND, ALL], 0.0, set()),
        # One trace that lacks, or two, of a place that loses none else.
        (1, [ALL, ALL, BEHIND, ALL, ALL], 0.0, set()),
        (2, [ALL, ALL, BEHIND, ALL, ALL], 0.0, set()),
        (3, [ALL, ALL, BEHIND, ALL, ALL], 0.0, {"router"}),
        (1, [ALL, ALL, BEHIND, BEHIND, BEHIND], 0.0, {"router"}),
        (3, [ALL, ALL, BEHIND, ALL, ALL], 0.2, set()),
        # It traces some: these tell.
        (90, [ALL, ALL, (0.12, 1, 1), ALL, ALL], 0.0, set()),
        (90, [ALL, ALL, (0.05, 1, 1), ALL, ALL], 0.0, {"router"}),
        # What it loses always is no darkness.
        (90, [(0.05, 1, 1)] * 5, 0.95, set()),
        (90, [BEHIND] * 5, 1.0, set()),
    ],
)
def test_place_is_dark_that_traced_hardly_any_of_what_landed(
    each: int, shares: Sequence[Sequence[float]], usual: float, dark: set[str]
) -> None:
    at = T0 + timedelta(minutes=2)
    losses = {"router": usual, "enricher": 0.0, "writer": 0.0}
    landed = LandedMinutes(Route.of(LINE), minutes_of(each, shares), {})
    assert landed.dark([at], losses)[0].get(at, frozenset()) == dark


def test_usual_loss_is_of_the_time_in_which_a_place_is_not_dark() -> None:
    minutes = minutes_of(100, [(0.9, 1, 1)] * 3 + [BEHIND] * 3)
    [*_, last] = minutes
    landed = LandedMinutes(Route.of(LINE), minutes, {})
    usual = {"router": 0.55, "enricher": 0.0}
    assert landed.dark([T0], usual) == ({}, usual)
    dark, else_lost = landed.dark([last], usual)
    assert dark == {last: {"router"}}
    assert else_lost == pytest.approx({"router": 0.1, "enricher": 0.0})


def test_a_place_that_never_traces_costs_no_look_at_all_the_minutes_around() -> None:
    class Counted(dict[datetime, Traced]):
        reads = 0

        def __getitem__(self, at: datetime) -> Traced:
            self.reads += 1
            return super().__getitem__(at)

    minutes = Counted(minutes_of(90, [BEHIND] * 300 + [(0, 0, 1)] + [BEHIND] * 300))
    at = T0 + timedelta(minutes=300)
    usual = {"router": 1.0, "enricher": 0.0, "writer": 0.0}
    dark, _ = LandedMinutes(Route.of(LINE), minutes, {}).dark([at], usual)
    assert dark == {at: {"enricher"}}
    assert minutes.reads < 10 * len(minutes)


def test_new_place_is_not_dark_before_its_traces_begin() -> None:
    minutes = minutes_of(90, [BEHIND, BEHIND, ALL, ALL, ALL])
    landed = LandedMinutes(Route.of(LINE), minutes, {"router": T0 + timedelta(minutes=2)})
    assert landed.dark(minutes, dict.fromkeys(LINE, 0.0))[0] == {}


@pytest.mark.parametrize(
    ("places", "traced", "dark"),
    [
        (BRANCHES, {"router": 60, "eu": 24, "writer": 60}, set()),  # the other branch has the rest
        (BRANCHES, {"router": 60, "writer": 60}, {"eu", "us"}),
    ],
)
def test_branches_are_dark_together(
    places: dict[str, RoutePlace], traced: dict[str, int], dark: set[str]
) -> None:
    usual = dict.fromkeys(places, 0.1)
    found, _ = LandedMinutes(Route.of(places), {T0: Traced(60, traced)}, {}).dark([T0], usual)
    assert found.get(T0, frozenset()) == dark
