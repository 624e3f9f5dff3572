"""Counts, times and sizes as sentences say them."""

from datetime import datetime, timedelta

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def at(instant: datetime) -> str:
    """The UTC time to the minute: a backfill is not started to the second."""
    return instant.strftime("%Y-%m-%dT%H:%MZ")


def length(span: timedelta) -> str:
    """A length of time in its two largest units, as `3 d 4 h`, `5 min` or `12 s`."""
    seconds = int(abs(span).total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def time_left(left: timedelta) -> str:
    """How long some messages can still be read; of those that leave one by one till the last."""
    return f"{length(left)} left" if left > timedelta(0) else "the first are gone"


def counted(count: int, noun: str) -> str:
    """The number with its noun, as `1 window` or `2 windows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def messages(count: int) -> str:
    """How many messages, in words."""
    return counted(count, "message")


def byte_size(count: float) -> str:
    """A number of bytes in its unit, as `1.5 MiB`."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,.0f} B"
