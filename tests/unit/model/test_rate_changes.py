"""Changes of rates: told where there is one, and of a rate that stays nearly never."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from shardaudit.model.rates import rate_changes

Audits = list[tuple[int, int]]
SENT, NIGHTS, RUNS = 10**6, 60, 1000
USUAL, MORE, INCIDENT = (10, SENT), (100, SENT), (5000, SENT)


def test_a_rate_changed_where_three_audits_in_a_row_are_beyond_all_before() -> None:
    assert rate_changes([USUAL] * 12 + [INCIDENT] + [USUAL] * 8) == {}  # one bad night
    assert rate_changes([USUAL] * 12 + [INCIDENT, INCIDENT] + [USUAL] * 5) == {}
    assert rate_changes([USUAL] * 9 + [MORE] * 3) == {}  # too few to know what is usual
    assert rate_changes([USUAL] * 10 + [MORE] * 3) == {10: 1e-5}
    assert rate_changes([USUAL] * 12 + [MORE] * 12 + [USUAL] * 3) == {12: 1e-5, 24: 1e-4}
    assert rate_changes([(0, SENT)] * 20 + [(5, SENT)] * 3) == {20: 0.0}
    # A night that was as bad is forgotten after thirty.
    assert rate_changes([USUAL] * 12 + [INCIDENT] + [USUAL] * 8 + [MORE] * 3) == {}
    assert rate_changes([USUAL] * 12 + [INCIDENT] + [USUAL] * 17 + [MORE] * 3) == {30: 1e-5}


def test_a_rate_did_not_change_where_little_is_lost_or_as_ever() -> None:
    rare = [(1, SENT), (0, SENT), (0, SENT), (2, SENT), (0, SENT)]
    assert rate_changes(rare * 3 + [(1, SENT)] * 3) == {}
    assert rate_changes([(0, SENT)] * 20 + [(1, SENT)] * 3) == {}
    assert rate_changes([(10, 10)] * 20) == {}  # nothing has a trace, as ever
    assert rate_changes([(8, SENT), (12, SENT)] * 6 + [(13, SENT)] * 3) == {}
    assert rate_changes([]) == {}


def test_nights_of_hardly_any_messages_say_nothing() -> None:
    week = [USUAL] * 5 + [(1, 10), (0, 0)]
    assert rate_changes([(0, 0)] * 20 + [MORE] * 3) == {}
    assert rate_changes(week * 2 + [MORE, (0, 0), MORE, (0, 10), MORE]) == {14: 1e-5}
    assert rate_changes([USUAL] * 12 + [(1, 10)] * 3) == {}


def nights(rng: np.random.Generator, rate: float, count: int = NIGHTS) -> Audits:
    return [(int(lost), SENT) for lost in rng.binomial(SENT, rate, count)]


def clumped(share: float) -> Callable[[np.random.Generator], Audits]:
    """Five hundred lost in such a share of the nights, none in the others."""
    return lambda rng: [(500 * bool(is_bad), SENT) for is_bad in rng.random(NIGHTS) < share]


def spread(deviation: float) -> Callable[[np.random.Generator], Audits]:
    """A rate of its own each night: twenty lost in the middle, its logarithm with a deviation."""
    return lambda rng: [
        (int(lost), SENT) for lost in rng.poisson(20 * np.exp(rng.normal(0, deviation, NIGHTS)))
    ]


STEADY: dict[str, Callable[[np.random.Generator], Audits]] = {
    **{
        f"{rate:g}": partial(nights, rate=rate)
        for rate in (1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    },
    **{f"500 in one night of {1 / share:g}": clumped(share) for share in (1 / 20, 1 / 8, 1 / 4)},
    **{f"each night its own, {deviation:g}": spread(deviation) for deviation in (0.3, 1)},
}


@pytest.mark.parametrize("which", STEADY)
@pytest.mark.slow
def test_of_a_rate_that_stays_a_change_is_told_in_less_than_one_of_a_hundred_times(
    which: str,
) -> None:
    rng = np.random.default_rng(16)
    told = sum(bool(rate_changes(STEADY[which](rng))) for _ in range(RUNS))
    assert told < RUNS / 100


@pytest.mark.parametrize(("rate", "share"), [(2e-6, 0.97), (2e-5, 0.999), (2e-4, 0.999)])
def test_ten_times_as_much_is_told_within_three_nights(rate: float, share: float) -> None:
    rng = np.random.default_rng(16)
    runs = [
        (before, nights(rng, rate, before) + nights(rng, 10 * rate, 3))
        for before in (10, 20, 45)
        for _ in range(RUNS // 5)
    ]
    told = sum(max(rate_changes(audits), default=0) >= before - 1 for before, audits in runs)
    assert told >= share * len(runs)
