"""A few of the random days of `tests/histories`."""

from tests.unit.watch.outcomes import outcomes


def test_stops_are_reported_and_healthy_histories_are_not_disturbed() -> None:
    outcomes(8)
