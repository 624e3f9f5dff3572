"""Rates in words."""

from collections.abc import Mapping

from shardaudit.model.rates import Rate

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
