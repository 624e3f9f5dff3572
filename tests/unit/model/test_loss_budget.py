"""What a month may lose, and how fast it does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.window import Window

DAY = timedelta(days=1)
NOVEMBER = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
NONE = timedelta(0)
# A third of the month is gone: 3,000,000 messages by its end, of which 300 may be lost.
SO_FAR = LossBudget(
    allowed=0.0001,
    month=NOVEMBER,
    as_of=NOVEMBER.start + 10 * DAY,
    sent=1_000_000,
    lost=50,
    stuck=0,
    unaudited=NONE,
    inconclusive=NONE,
)


@pytest.mark.parametrize(
    ("lost", "used", "burn_rate", "left"),
    [(0, 0.0, 0.0, 300), (50, 1 / 6, 0.5, 250), (100, 1 / 3, 1.0, 200), (600, 2.0, 6.0, -300)],
)
def test_the_budget_is_of_the_month_as_it_would_go_on(
    lost: int, used: float, burn_rate: float, left: int
) -> None:
    found = replace(SO_FAR, lost=lost)
    assert (found.used, found.burn_rate) == pytest.approx((used, burn_rate))
    assert found.left == left


def test_what_nobody_audited_counts_as_if_it_were_like_the_rest() -> None:
    found = replace(SO_FAR, lost=50, unaudited=5 * DAY)  # so 6,000,000 by its end, 600 of them
    assert found.used == pytest.approx(1 / 6)
    assert found.left == 500


def test_of_a_sample_the_share_that_is_used_has_an_interval() -> None:
    sampled = replace(SO_FAR, sent=1000, lost=3, allowed=0.01, is_sampled=True)
    # Wilson's of 3 of 1,000 is 0.10208 % to 0.87830 %; of 1 % in a third of the month.
    assert sampled.used_between == pytest.approx((0.034026, 0.292767), rel=1e-4)
    assert replace(sampled, is_sampled=False).used_between is None
    assert replace(sampled, sent=0).used_between is None


def test_of_a_month_of_several_samples_no_share_is_told() -> None:
    mixed = replace(SO_FAR, is_sampled=True, is_mixed=True)
    assert (mixed.used, mixed.burn_rate, mixed.left, mixed.used_between) == (None,) * 4


def test_a_month_of_which_nothing_is_known_is_not_unspent() -> None:
    unknown = replace(SO_FAR, sent=0, lost=0, unaudited=10 * DAY)
    assert (unknown.used, unknown.burn_rate, unknown.left) == (None, None, None)
    first = replace(unknown, as_of=NOVEMBER.start, unaudited=NONE)
    assert (first.used, first.burn_rate, first.left) == (None, None, None)


def test_a_month_is_a_calendar_month_in_utc() -> None:
    assert month_of(NOVEMBER.start) == month_of(NOVEMBER.end - DAY / 9) == NOVEMBER
    assert month_of(datetime(2026, 12, 31, 23, tzinfo=UTC)).end == datetime(2027, 1, 1, tzinfo=UTC)
