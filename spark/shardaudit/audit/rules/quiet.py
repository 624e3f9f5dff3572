"""Silence on both sides: nothing was sent and nothing landed, where there used to be something.

Producers whose traces are no longer shipped, and a consumer that stopped, look like a quiet night.
The rule counts in whole hours, off what the shard itself did before:

- An hour without messages is missed when the shard had some in the same hour of the week before.
- Its usual silence is the greatest number of hours missed in one silence of the week before. What
  was told does not count, nor what a person said was quiet: that holds for its time alone.
- A silence is told when it misses three times its usual one and four hours more, or all the hours
  of a week. One that lasts until now is open to doubt as soon as it misses more than the usual one.
- Only of a shard that was busy: active in 24 hours of the week before.
- A shard's record begins with the first hour that another one follows upon within a day, and eight
  within a week: not with a message that a device wrote long before. Nor with hours of which all
  messages came into the stream more than a day later, unless it has no others.
- A shard is new in its first week, and in its second unless it was active in each of the 24 hours
  before. A new one was busy with 8 active hours in the day before, its own or, of a child, those of
  the shards whose place it took. Its silence is told after three days, longer than a weekend; one
  that lasts until now is open to doubt as soon as it misses an hour that had messages the day
  before.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

DAY_HOURS, WEEK_HOURS = 24, 7 * 24  # hours

TOLD_TIMES, TOLD_HOURS = 3, 4
TOLD_HOURS_OF_THE_NEW = 72  # longer than a weekend, of which it may have had none yet
BUSY_HOURS = 24  # of a week
BUSY_HOURS_OF_THE_NEW = 8  # of a day

QUIET_LOOK_BACK = (
    4 * WEEK_HOURS
)  # so far back the hours of a shard are read: the usual of its usual silences


@dataclass(frozen=True, slots=True)
class Silence:
    """Hours `[start, end)` since 1970 without a message on either side.

    `missed`: how many of them used to have some. `is_told`: more than can be usual; else it is open
    to doubt. `lasts`: until now.
    """

    start: int
    end: int
    missed: int
    is_told: bool
    lasts: bool


def doubtful_silences(
    active: Sequence[int],
    *,
    until: int,
    born: int,
    is_quiet: Callable[[int], bool] = lambda _: False,
) -> list[Silence]:
    """The silences of a shard that are not like those before, in the order of time.

    Input:
        active: the hours with messages, in order, from QUIET_LOOK_BACK before those of interest on.
        until: hours from here on are not over, or not settled.
        born: the first hour of its record.
        is_quiet: whether a person said of an hour that it was quiet.
    """
    found: list[Silence] = []
    usual: list[tuple[int, int]] = []  # the start of each usual silence, and what it missed
    for last, after in zip(active, [*active[1:], None], strict=True):
        start, end = last + 1, until if after is None else min(after, until)
        if start >= end or start < born:
            continue
        rule = _rule(active, usual, start=start, born=born)
        missed = 0
        for begin, stop in _not_quiet(start, end, is_quiet):
            of_week = (
                _hours(active, begin - WEEK_HOURS, stop - WEEK_HOURS)
                if start - born >= WEEK_HOURS
                else 0
            )
            lacking = stop - begin if rule.is_new else of_week
            is_told = rule.is_busy and lacking >= rule.told_at
            lasts = after is None and stop == end
            is_unusual = (
                _misses_the_day_before(active, start, stop) if rule.is_new else of_week > rule.usual
            )
            missed = max(missed, 0 if is_told else of_week)
            if is_told or (lasts and rule.is_busy and is_unusual):
                found.append(Silence(begin, stop, lacking, is_told, lasts))
        usual.append((start, missed))
    return found


def inherited(
    hours: Mapping[str, Sequence[int]],
    born: Mapping[str, int],
    parents: Mapping[str, Iterable[str]],
) -> dict[str, list[int]]:
    """By child the active hours of the shards whose place it took, of the day before its record.

    The record of a child of few hours begins with its first message, and theirs goes on until its
    last one: what a clock is ahead there is no message here.

    Input:
        hours: of each shard that had messages, in order; born: when its record begins.
        A child's name is after its parents'.
    """
    found: dict[str, list[int]] = {}
    lines: dict[str, list[int]] = {}
    for name in sorted(hours.keys() | parents.keys()):
        line = sorted({hour for parent in parents.get(name, ()) for hour in lines.get(parent, ())})
        if own := hours.get(name):
            is_young = len(own) < BUSY_HOURS_OF_THE_NEW
            since, until = (own[0], own[-1]) if is_young else (born[name], born[name])
            taken = [h for h in line if since - DAY_HOURS <= h < until]
            if taken:
                found[name] = taken
            line = sorted({*taken, *own})
        lines[name] = line[-DAY_HOURS:]
    return found


def resharded(ended: Mapping[str, int], born: Mapping[str, int]) -> set[str]:
    """The shards that fell silent because others took their place, by their times alone.

    A merge ends two shards for each that begins, nothing ends more: where more fell silent within
    an hour of a shard than twice those that began around that time, it is not known to be closed.

    Input:
        ended: of each shard that is silent until now, its last hour with a message.
        born: of each shard, its first hour with one.
    """
    ends, begins = Counter(ended.values()), Counter(born.values())

    def around(counts: Counter[int], hour: int, hours: int) -> int:
        return sum(counts[hour + k] for k in range(-hours, hours + 1))

    def is_closed(name: str, last: int) -> bool:
        is_own = abs(born[name] - last) <= 1
        has_begun = around(begins, last, 1) > is_own
        # Those that began after the last of these ended count, too.
        return has_begun and around(ends, last, 1) <= 2 * around(begins, last, 2)

    return {name for name, last in ended.items() if is_closed(name, last)}


@dataclass(frozen=True, slots=True)
class _Rule:
    """What holds for a silence by what was before it. `told_at`: missed hours."""

    is_new: bool
    is_busy: bool
    usual: int
    told_at: int


def _rule(
    active: Sequence[int], silences: Iterable[tuple[int, int]], *, start: int, born: int
) -> _Rule:
    age, usual = start - born, _usual(silences, start)
    if _is_new(active, start, age):
        is_busy = _hours(active, start - DAY_HOURS, start) >= BUSY_HOURS_OF_THE_NEW
        return _Rule(True, is_busy, usual, TOLD_HOURS_OF_THE_NEW)
    in_week = _hours(active, start - WEEK_HOURS, start)
    is_busy = age < 2 * WEEK_HOURS or in_week >= BUSY_HOURS
    # Never more than a week without a message, whatever is usual.
    return _Rule(False, is_busy, usual, min(TOLD_HOURS + TOLD_TIMES * usual, in_week))


def _not_quiet(start: int, end: int, is_quiet: Callable[[int], bool]) -> Iterable[tuple[int, int]]:
    """The parts of a silence that nobody said were quiet."""
    for quiet, hours in groupby(range(start, end), key=is_quiet):
        if not quiet:
            part = list(hours)
            yield part[0], part[-1] + 1


def _is_new(known: Sequence[int], start: int, age: int) -> bool:
    """Whether too little is known of a shard to know its usual silences."""
    never_paused = _hours(known, start - DAY_HOURS, start) == DAY_HOURS
    return age < WEEK_HOURS or (age < 2 * WEEK_HOURS and not never_paused)


def _misses_the_day_before(active: Sequence[int], start: int, end: int) -> bool:
    """Whether a silence lacks what the day before it had, day after day."""
    day = active[bisect_left(active, start - DAY_HOURS) : bisect_left(active, start)]
    return any(hour + DAY_HOURS < end for hour in day)


def _usual(silences: Iterable[tuple[int, int]], start: int) -> int:
    return max((missed for at, missed in silences if start - WEEK_HOURS <= at < start), default=0)


def _hours(known: Sequence[int], start: int, end: int) -> int:
    """How many of the hours `[start, end)` are among them."""
    return bisect_left(known, end) - bisect_left(known, start)
