"""The places of a route that leave messages out by design, and how far their share explains that.

A place that traces what it leaves out says it of each message. Of others nobody does: a message was
received, never sent on, and did not land. So is one that got lost in the filter. What such a filter
declares to pass on at least tells many of the latter from the former, none of few: that is said by
counts, never of a single message.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar

from shardaudit.model.rates import is_surely_below
from shardaudit.model.route.route import Route

_CERTAIN = 1e-9  # there are many shards: by chance no one is to be told in a lifetime
_Key = TypeVar("_Key", bound=Hashable)

_UNTOLD, _FEW = 0.01, 3  # of what a filter passed on it did not trace so much, and so many


@dataclass(frozen=True, slots=True)
class RouteFilter:
    """A place that passes on a share of what arrives there.

    `before`: those that a message may have come by; `behind`: those to which it may go on.
    `tells`: it traces each message that it leaves out: the share says nothing.
    """

    places: tuple[str, ...]
    share: float
    before: frozenset[str]
    behind: frozenset[str]
    tells: bool = False


def filters(route: Route) -> tuple[RouteFilter, ...]:
    """The filters of a route, in its order; none where all that is sent is to land.

    Places that tell what they leave out, and those that pass less than all on and have none beside
    them. Where others are, whose ways are not the same, nobody can tell which share of what is
    meant: that is no filter, and what does not land is missing.
    """
    found: list[RouteFilter] = []
    for name, place in route.places.items():
        if place.tells:
            found.append(_filter(route, (name,), place.share, tells=True))
            continue
        if route.may_leave_out(name) and not route.beside(name):
            found.append(_filter(route, (name,), place.share))
    return tuple(found)


def filter_places(route: Route) -> tuple[str, ...]:
    """The places of a route that leave messages out by design."""
    return tuple(name for each in filters(route) for name in each.places)


@dataclass(frozen=True, slots=True)
class Beside:
    """Places to which the same ones lead, `before`, and of which one tells what it leaves out.

    Each of them may read everything, and leave a part to the others: that says so of messages that
    these pass on.
    """

    names: tuple[str, ...]
    before: tuple[str, ...]


def beside_filters(route: Route) -> tuple[Beside, ...]:
    """The places beside each other of which one tells what it leaves out: each in one group."""
    groups: list[Beside] = []
    for name, place in route.places.items():
        if not place.tells or any(name in group.names for group in groups):
            continue
        names, before = {name}, {*place.after}
        while more := {n for n, one in route.places.items() if before & {*one.after}} - names:
            names |= more
            before |= {one for n in more for one in route.places[n].after}
        if len(names) > 1:
            in_order = tuple(n for n in route.places if n in names)
            groups.append(Beside(in_order, tuple(sorted(before))))
    return tuple(groups)


def _filter(
    route: Route, names: tuple[str, ...], share: float, *, tells: bool = False
) -> RouteFilter:
    behind = [n for n in route.places if any(route.is_before(one, [n]) for one in names)]
    before = [n for n in route.places if route.is_before(n, names)]
    return RouteFilter(names, share, frozenset(before), frozenset(behind), tells)


class Unexplained(StrEnum):
    """Why a filter explains nothing of what did not land in an hour."""

    BELOW = "below"  # it passed on less than its share
    NOTHING = "nothing"  # of a shard it passed on nothing
    UNTOLD = "untold"  # it did not trace what it passed on


UnexplainedHours = Mapping[tuple[str | None, datetime], Unexplained]


@dataclass(frozen=True, slots=True)
class Passage:
    """Messages that came to a filter, of a shard and hour: distinct ids.

    `passed`: those of `received` that were sent on, or seen later, or landed; `told`: those of
    them that the filter traced as sent; `left_out`: of the others those that it says it left out.
    """

    shard_id: str
    start: datetime
    received: int
    passed: int
    told: int
    left_out: int = 0

    def __add__(self, other: "Passage") -> "Passage":
        return Passage(
            self.shard_id,
            self.start,
            self.received + other.received,
            self.passed + other.passed,
            self.told + other.told,
            self.left_out + other.left_out,
        )

    @property
    def is_explained(self) -> bool:
        """Whether each message is known to have passed it, or to be left out."""
        return self.received <= self.passed + self.left_out

    @property
    def is_untold(self) -> bool:
        """Whether so many of what was passed on lack the filter's trace that others may."""
        untold = self.passed - self.told
        return untold >= _FEW and untold > _UNTOLD * self.passed


@dataclass(frozen=True, slots=True)
class FilterTime:
    """Hours in a row in which what a filter left out is not explained; counts are messages.

    `shard_id`: None: of all shards; `because`: a value of `Unexplained`; `told`: of `passed` those
    that the filter traced as sent; None: an older audit did not say.
    """

    since: datetime
    until: datetime
    because: str
    received: int
    passed: int
    shard_id: str | None = None
    told: int | None = None


def unexplained_hours(passages: Sequence[Passage], share: float) -> UnexplainedHours:
    """The hours, and hours of a shard, in which a filter's share does not explain what lacks.

    Of hours that are too thin to tell, those of a UTC day are judged together, and then of all days
    that were looked at: nothing is to be hidden for long by there being little of it.

    Output:
        by shard (None: all of them) and start why.
    """
    by_hour = _summed(passages, _hour)

    def below(of: Passage) -> Unexplained | None:
        if of.is_explained:
            return None
        if is_surely_below(of.passed, of.received, share):
            return Unexplained.BELOW
        return Unexplained.UNTOLD if of.is_untold else None

    found: dict[tuple[str | None, datetime], Unexplained] = {
        (None, start): why for start, why in _by_levels(by_hour.values(), below).items()
    }

    def nothing(of: Passage) -> Unexplained | None:
        is_dark = of.passed == 0 and not of.is_explained
        is_dark = is_dark and is_surely_below(0, of.received, share, chance=_CERTAIN)
        return Unexplained.NOTHING if is_dark else None

    each: dict[str, list[Passage]] = {}
    for one in passages:
        if (None, one.start) not in found:
            each.setdefault(one.shard_id, []).append(one)
    for shard_id, mine in each.items():
        found |= {(shard_id, start): why for start, why in _by_levels(mine, nothing).items()}
    return found


def _by_levels(
    hours: Iterable[Passage], why: Callable[[Passage], Unexplained | None]
) -> dict[datetime, Unexplained]:
    """By hour why it is unexplained: for itself, else with its day, else with all."""
    left, found = list(hours), dict[datetime, Unexplained]()
    levels: tuple[Callable[[Passage], datetime | None], ...] = (_hour, _day, lambda _: None)
    for level in levels:
        sums = _summed(left, level)
        broken = {at: because for at, of in sums.items() if (because := why(of)) is not None}
        found |= {one.start: broken[level(one)] for one in left if level(one) in broken}
        left = [one for one in left if level(one) not in broken]
    return found


def _hour(one: Passage) -> datetime:
    return one.start


def _day(one: Passage) -> datetime:
    return datetime.combine(one.start.date(), time(), UTC)


def _summed(passages: Iterable[Passage], key: Callable[[Passage], _Key]) -> dict[_Key, Passage]:
    sums: dict[_Key, Passage] = {}
    for one in passages:
        sums[key(one)] = sums[key(one)] + one if key(one) in sums else one
    return sums


def _in_order(one: tuple[tuple[str | None, datetime], Unexplained]) -> tuple[str, datetime]:
    (shard_id, start), _ = one
    return shard_id or "", start


def filter_times(
    passages: Sequence[Passage], hours: UnexplainedHours, *, width: timedelta
) -> tuple[FilterTime, ...]:
    """What people are told of unexplained hours: those in a row as one, in order.

    Input:
        hours: of `unexplained_hours`; width: how long one is.
    """
    sums: dict[tuple[str | None, datetime], Passage] = {
        (one.shard_id, one.start): one for one in passages
    }
    sums |= {(None, start): of for start, of in _summed(passages, _hour).items()}
    rows: list[FilterTime] = []
    for (shard_id, start), why in sorted(hours.items(), key=_in_order):
        of = sums[shard_id, start]
        counts = (of.received, of.passed)
        new = FilterTime(start, start + width, why.value, *counts, shard_id, told=of.told)
        last = rows[-1] if rows else None
        if last and (last.until, last.because, last.shard_id) == (start, why.value, shard_id):
            rows[-1] = replace(
                last,
                until=new.until,
                received=last.received + of.received,
                passed=last.passed + of.passed,
                told=(last.told or 0) + of.told,
            )
        else:
            rows.append(new)
    return tuple(sorted(rows, key=lambda one: (one.since, one.shard_id or "")))
