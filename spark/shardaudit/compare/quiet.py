"""Silence on both sides: nothing was sent and nothing landed, where there used to be something.

Producers whose traces are no longer shipped, and a consumer that stopped, look like a quiet night.
The rule counts in whole hours, off what the shard itself did before:

- An hour without messages is missed when the shard had some in the same hour of the week before.
- Its usual silence is the greatest number of hours missed in one silence of the week before. Those
  that were told do not count, unless a person said that they were quiet.
- A silence is told when it misses three times its usual one and four hours more. One that lasts
  until now is open to doubt as soon as it misses more than the usual one.
- Only of a shard that was busy: active in 24 hours of the week before.
- A shard is new in its first week, and in its second unless it was active in each of the 24 hours
  before. A new one was busy with 8 active hours in the day before. Its silence is told after three
  days, longer than a weekend; one that lasts until now is open to doubt as soon as it misses an
  hour that had messages the day before.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

DAY, WEEK = 24, 7 * 24  # hours

TOLD_TIMES, TOLD_HOURS = 3, 4
TOLD_HOURS_OF_THE_NEW = 72  # longer than a weekend, of which it may have had none yet
BUSY_HOURS = 24  # of a week
BUSY_HOURS_OF_THE_NEW = 8  # of a day

LOOK_BACK = 4 * WEEK  # so far back the hours of a shard are read: the usual of its usual silences


@dataclass(frozen=True, slots=True)
class Silence:
    """Hours `[start, end)` since 1970 without a message on either side.

    `missed`: how many of them used to have some. `is_told`: more than can be usual; else it lasts
    until now, and is open to doubt.
    """

    start: int
    end: int
    missed: int
    is_told: bool


def doubtful_silences(
    active: Sequence[int],
    *,
    until: int,
    born: int,
    is_quiet: Callable[[int], bool] = lambda _: False,
) -> list[Silence]:
    """The silences of a shard that are not like those before, in the order of time.

    Input:
        active: the hours with messages, in order, from at least LOOK_BACK before those of interest.
        until: hours from here on are not over, or not settled.
        born: the first hour that ever had a message.
        is_quiet: whether a person said of a silence that begins in an hour that it was quiet.
    """
    found: list[Silence] = []
    usual: list[tuple[int, int]] = []  # the start of each usual silence, and what it missed
    for last, after in zip(active, [*active[1:], None], strict=True):
        start, end = last + 1, until if after is None else min(after, until)
        if start >= end:
            continue
        age, of_week = start - born, _usual(usual, start)
        missed = _hours(active, start - WEEK, end - WEEK) if age >= WEEK else 0
        if _is_new(active, start, age):
            lacking, told = end - start, TOLD_HOURS_OF_THE_NEW
            is_busy = _hours(active, start - DAY, start) >= BUSY_HOURS_OF_THE_NEW
            is_doubted = _misses_the_day_before(active, start, end)
        else:
            lacking, told = missed, TOLD_HOURS + TOLD_TIMES * of_week
            is_busy = age < 2 * WEEK or _hours(active, start - WEEK, start) >= BUSY_HOURS
            is_doubted = missed > of_week
        is_told = is_busy and lacking >= told
        if is_quiet(start) or not is_told:
            usual.append((start, missed))
        lasts = after is None
        if (is_told or (lasts and is_busy and is_doubted)) and not is_quiet(start):
            found.append(Silence(start, end, lacking, is_told))
    return found


def _is_new(known: Sequence[int], start: int, age: int) -> bool:
    """Whether too little is known of a shard to know its usual silences."""
    never_paused = _hours(known, start - DAY, start) == DAY
    return age < WEEK or (age < 2 * WEEK and not never_paused)


def _misses_the_day_before(active: Sequence[int], start: int, end: int) -> bool:
    """Whether a silence lacks what the day before it had, day after day."""
    day = active[bisect_left(active, start - DAY) : bisect_left(active, start)]
    return any(hour + DAY < end for hour in day)


def _usual(silences: Iterable[tuple[int, int]], start: int) -> int:
    return max((missed for at, missed in silences if start - WEEK <= at < start), default=0)


def _hours(known: Sequence[int], start: int, end: int) -> int:
    """How many of the hours `[start, end)` are among them."""
    return bisect_left(known, end) - bisect_left(known, start)
