"""Times, lengths and sizes as the watch's sentences write them."""

from datetime import datetime, timedelta

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def at(instant: datetime) -> str:
    """The UTC time to the minute: a backfill is not started to the second."""
    return instant.strftime("%Y-%m-%dT%H:%MZ")


def duration(span: timedelta) -> str:
    """A length of time in its two largest units."""
    minutes = int(abs(span).total_seconds()) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def size(number: int) -> str:
    """A number of bytes."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number} B"


def how_many(count: int) -> str:
    """The number with its noun."""
    return f"{count:,} message" if count == 1 else f"{count:,} messages"
