"""Rates, and the budget of what may be lost, in words."""

from collections.abc import Mapping

from shardaudit.model.loss_budget import LossBudget
from shardaudit.model.rates import Rate
from shardaudit.model.words import length, messages

_OF = {"missing": "what was sent", "duplicated": "what landed", "untraced": "what landed"}


def sampled_line(rates: Mapping[str, Rate]) -> str | None:
    """A sentence about an audit's rates and their intervals; None where all ids are audited."""
    parts = [
        f"{name} {between_line(rate.between)} of {_OF[name]} ({rate.count:,} of {rate.of:,})"
        for name, rate in rates.items()
    ]
    return f"{', '.join(parts)}: 95 % intervals, of a sample of the ids" if parts else None


def between_line(between: tuple[float, float]) -> str:
    """The two ends."""
    least, most = between
    return f"{least:.4%} to {most:.4%}"


def rated(told: str, name: str, rates: Mapping[str, Rate]) -> str:
    """With the interval, where it has one."""
    return f"{told} ({between_line(rates[name].between)})" if name in rates else told


def used_line(budget: LossBudget) -> str:
    """How much of it is used, beside how much nobody knows."""
    used = "unknown" if budget.used is None else f"{budget.used:.1%} used"
    return f"{used}, {length(budget.unaudited)} not audited" if budget.unaudited else used


def budget_lines(budget: LossBudget) -> list[str]:
    """The month in sentences: what is lost, how long that lasts, and what is not known of it."""
    lines = [
        f"Loss budget of {budget.month.start:%B %Y} (UTC), {budget.allowed * 100:g} % of the "
        f"messages: {budget.lost:,} of {messages(budget.sent)} lost{_lasts(budget)}"
    ]
    if budget.stuck:
        lines.append(f"{messages(budget.stuck)} more will be lost if their shards stay behind")
    if budget.unaudited:
        lines.append(
            f"{length(budget.unaudited)} of the month so far was not audited: nothing is known of "
            "it, and it counts as if it were like the rest"
        )
    if budget.inconclusive:
        lines.append(f"{length(budget.inconclusive)} of it was inconclusive on some shard")
    return lines


def _lasts(budget: LossBudget) -> str:
    if budget.is_mixed:
        return (
            ", counted in samples of several rates, as sample_rate changed: what is used is unknown"
        )
    if budget.used is None or budget.left is None:
        return ", and no message is known to be sent: what is used is unknown"
    left = f"{messages(budget.left)} more may be lost"
    if budget.left < 0:
        left = f"overspent by {messages(-budget.left)}"
    between = budget.used_between
    sampled = f" ({between[0]:.1%} to {between[1]:.1%})" if between else ""
    return (
        f"; {budget.used:.1%}{sampled} of it used with {budget.gone:.1%} of the month gone "
        f"(burn rate {budget.burn_rate:,.3f}); at this month's volume {left}"
    )
