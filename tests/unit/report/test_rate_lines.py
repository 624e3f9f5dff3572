"""What is said of a loss budget, and what is not known of it beside that."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.report.figures import budget_figures
from shardaudit.report.rate_lines import budget_lines, used_line

NONE, DAY = timedelta(0), timedelta(days=1)
NOVEMBER = month_of(datetime(2026, 11, 11, tzinfo=UTC))
WELL = LossBudget(0.0001, NOVEMBER, NOVEMBER.start + 10 * DAY, 1_000_000, 50, 0, NONE, NONE)


def test_a_budget_says_what_is_lost_how_fast_and_what_is_left() -> None:
    assert used_line(WELL) == "16.7% used"
    assert budget_lines(WELL) == [
        "Loss budget of November 2026 (UTC), 0.01 % of the messages: 50 of 1,000,000 messages "
        "lost; 16.7% of it used with 33.3% of the month gone (burn rate 0.500); at this month's "
        "volume 250 messages more may be lost"
    ]
    sampled = replace(WELL, is_sampled=True)
    assert "; 16.7% (12.6% to 22.0%) of it used with" in budget_lines(sampled)[0]
    assert budget_lines(replace(WELL, lost=301))[0].endswith("overspent by 1 message")


def test_what_is_not_known_stands_beside_it() -> None:
    unsure = replace(WELL, lost=0, stuck=7, unaudited=DAY, inconclusive=DAY / 24)
    assert used_line(unsure) == "0.0% used, 1 d 0 h not audited"
    said = budget_lines(unsure)[1:]
    assert said[0] == "7 messages more will be lost if their shards stay behind"
    assert said[1].startswith("1 d 0 h of the month so far was not audited: nothing is known")
    assert said[2] == "1 h 0 min of it was inconclusive on some shard"


def test_nothing_known_is_no_budget_unspent() -> None:
    unknown = replace(WELL, sent=0, lost=0, unaudited=10 * DAY)
    assert used_line(unknown) == "unknown, 10 d 0 h not audited"
    mixed = replace(WELL, is_mixed=True)
    assert (used_line(mixed), set(budget_figures(mixed))) == (
        "unknown",
        set(budget_figures(unknown)),
    )
    for one in (unknown, mixed):
        assert "what is used is unknown" in budget_lines(one)[0]
    assert budget_figures(unknown) == {
        "known": 0,
        "month_timestamp": unknown.month.start.timestamp(),
        "lost": 0,
        "stuck": 0,
        "unaudited_seconds": 864_000,
    }
    assert set(budget_figures(WELL)) - set(budget_figures(unknown)) == {"used", "burn_rate", "left"}
