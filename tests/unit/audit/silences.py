"""Random shards for the rule of silence: the hours in which each had messages, by kind."""

import math
from collections.abc import Callable, Iterator
from random import Random

from shardaudit.audit.rules.quiet import DAY_HOURS, WEEK_HOURS, Silence, doubtful_silences

HOURS = 8 * WEEK_HOURS
FEW = (0.02, 0.1, 0.3, 1.0, 1.5)  # messages an hour
MANY = (2, 3, 4, 5, 8, 20, 1000)

Rate = Callable[[int], float]


def _day_and_night(random: Random) -> Rate:
    begin, end, level = random.uniform(5, 10), random.uniform(15, 24), random.choice([3, 10, 100])
    jitter = random.choice([0, 0.5, 1])
    edges = [
        (begin + random.uniform(-jitter, jitter), end + random.uniform(-jitter, jitter))
        for _ in range(HOURS // DAY_HOURS)
    ]
    return lambda h: (
        level if edges[h // DAY_HOURS][0] <= h % DAY_HOURS < edges[h // DAY_HOURS][1] else 0
    )


def _office(random: Random) -> Rate:
    days, first = _day_and_night(random), random.randrange(7)
    return lambda h: 0 if (h // DAY_HOURS + first) % 7 > 4 else days(h)


def _but_weekends(random: Random) -> Rate:
    first = random.randrange(7)
    return lambda h: 0 if (h // DAY_HOURS + first) % 7 > 4 else 50


def _low_nights(random: Random) -> Rate:
    low, high = random.choice([0.1, 0.3, 1]), random.choice([5, 20, 100])
    return lambda h: high if 8 <= h % DAY_HOURS < 20 else low


def _steady(random: Random) -> Rate:
    level = random.choice(MANY)
    return lambda _: level


def _sparse(random: Random) -> Rate:
    level = random.choice(FEW)
    return lambda _: level


def _bursts(random: Random) -> Rate:
    every = random.choice([2, 4, 6, 12, 24])
    return lambda h: 100 if h % every == 0 else 0


REGULAR = {
    "day and night": _day_and_night,
    "office hours": _office,
    "but weekends": _but_weekends,
    "low nights": _low_nights,
    "steady": _steady,
    "sparse": _sparse,
    "bursts": _bursts,
}


def histories(kind: str, random: Random, count: int) -> Iterator[list[int]]:
    """The hours with messages of so many shards of a kind."""
    for _ in range(count):
        rate = REGULAR[kind](random)
        yield [h for h in range(HOURS) if random.random() > math.exp(-rate(h))]


def told(active: list[int], *, until: int = HOURS) -> list[Silence]:
    """The silences of which people are told."""
    if not active:
        return []
    found = doubtful_silences(active, until=until, born=active[0])
    return [silence for silence in found if silence.is_told]


def hours_until_told(active: list[int], stop: int) -> int | None:
    """How long after the beginning of an outage it is told; None: not in two weeks."""
    left = [hour for hour in active if hour < stop]
    for hours in range(1, 2 * WEEK_HOURS):
        silences = told(left, until=stop + hours)
        if silences and silences[-1].end == stop + hours:
            return hours
    return None
