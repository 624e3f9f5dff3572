"""A stream's route: the places between producer and sink, and what they tell of a message."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import PRODUCER

SINK = "sink"  # the end of each route; it bears no traces, its rows tell
ENDS = (PRODUCER, SINK)  # no place in between has their names
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RoutePlace:
    """A place: what it comes after, and which share of what arrives it passes on.

    `tells`: it traces each message that it leaves out, and passes on all others; in a route its
    share is then what the places beside it do not have.
    """

    after: tuple[str, ...]
    share: float = 1.0
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Sighting:
    """How often a place traced a message, as received, sent on, left out; 2 is more than once."""

    received: int = 0
    sent: int = 0
    left_out: int = 0

    @property
    def copies(self) -> int:
        """How many the place had in the end: what it sent on counts before what it received."""
        return self.sent or max(self.received, self.left_out)


@dataclass(frozen=True)
class Route:
    """The places of a stream, each behind all that it comes after.

    Without any, messages go straight from the producer to the sink. Where a place leads to several
    others, a message takes one of them, by their shares; a message lands once.
    """

    places: Mapping[str, RoutePlace]

    @classmethod
    def of(cls, places: Mapping[str, RoutePlace]) -> "Route":
        """The route that a configuration says.

        Raises:
            ConfigError: none can be gone as it says.
        """
        for name, place in places.items():
            _check_names(name, place.after, known=places)
        rest = _with_rest(places)
        route = cls({name: rest[name] for name in _in_order(places)})
        if route.landing > 1 + _ROUNDING:
            raise ConfigError(
                "locations",
                f"shares that bring each message {route.landing:g} times to the sink",
                "at most once: where a place leads to several, give them shares that add up to 1; "
                "where a part p comes by a place that the rest goes round, give that place p, and "
                "the one behind it 1 / (1 + p)",
            )
        for name in route.places:
            _check_branches(route, name)
        return route

    @cached_property
    def arriving(self) -> dict[str, float]:
        """By place the share of the producer's messages that arrive there."""
        arriving: dict[str, float] = {}
        for name, place in self.places.items():
            passed = (
                arriving[one] * self.places[one].share for one in place.after if one in arriving
            )
            arriving[name] = (PRODUCER in place.after) + sum(passed)
        return arriving

    @property
    def last(self) -> tuple[str, ...]:
        """The places that nothing comes after: what they pass on lands."""
        followed = {one for place in self.places.values() for one in place.after}
        return tuple(name for name in self.places if name not in followed) or (PRODUCER,)

    @property
    def landing(self) -> float:
        """How often a message of the producer lands, by the shares."""
        if not self.places:
            return 1.0
        return sum(self.arriving[name] * self.places[name].share for name in self.last)

    @property
    def telling(self) -> tuple[str, ...]:
        """The places that tell what they leave out."""
        return tuple(name for name, place in self.places.items() if place.tells)

    @property
    def lands_all(self) -> bool:
        """Whether all branches together pass everything on, but for what they tell."""
        return self.landing > 1 - _ROUNDING

    def is_before(self, name: str, others: Collection[str]) -> bool:
        """Whether a message of one of the other places may have come by this one."""
        return any(name in self._before[other] for other in others)

    def never_reached(self, seen: Mapping[str, Sighting], *, silent: Collection[str]) -> str | None:
        """The first place that a message that did not land never reached; else the sink.

        None: it stopped where a filter passes only a share on, and nothing says that it passed
        this one.

        Input:
            seen: by place, of those that traced it.
            silent: places of which there are no traces at all: that theirs lacks says nothing.
        """
        reached = self._reached(seen, silent)
        for name, place in self.places.items():
            is_due = self._is_passed_on(place.after, reached, seen)
            # A place beside it that also leads to it is no other way that the message took.
            instead = self.beside(name) - self._before[name]
            if is_due and not {name, *instead} & reached and name not in silent:
                return name
        is_anywhere = self.lands_all and reached.issuperset(self.last)
        is_anywhere = is_anywhere and not any(self.is_left_out(name, seen) for name in self.last)
        return SINK if is_anywhere or self._is_passed_on(self.last, reached, seen) else None

    def doubled_after(self, seen: Mapping[str, Sighting]) -> str:
        """The last place that is known to have had a message once which landed more than once.

        A place that received it once and sent it several times is that place. Where its copies
        went by several places, it is one that all of them had passed.
        """
        twice = next((name for name in self.places if name in seen and seen[name].copies > 1), None)
        if twice is not None and seen[twice].received == 1:
            return twice
        earlier = set(self.places) if twice is None else self._before[twice]
        single = [name for name in self.places if name in seen and name in earlier]
        common = [name for name in single if all(self._in_line(name, one) for one in single)]
        return common[-1] if common else PRODUCER

    @property
    def ways(self) -> tuple[tuple[str, str], ...]:
        """From each place to each of the next, in their order; those to the sink at the end."""
        ways = [(one, name) for name, place in self.places.items() for one in place.after]
        return (*ways, *((one, SINK) for one in self.last))

    def ways_between(
        self, after: str, before: str, *, silent: Collection[str]
    ) -> tuple[tuple[str, str], ...]:
        """The ways by which a message may come to a place from one before it.

        Input:
            silent: the places that it may pass in between.
        """
        return tuple(
            (one, other)
            for one, other in self.ways
            if (one == after or (one in silent and self._leads(after, one)))
            and (other == before or (other in silent and self._leads(other, before)))
        )

    def doubled_on(self, seen: Mapping[str, Sighting]) -> tuple[tuple[str, str], ...]:
        """The ways behind the place of `doubled_after`: those that the message was seen to take."""
        place = self.doubled_after(seen)
        behind = [(one, other) for one, other in self.ways if one == place]
        taken = tuple(way for way in behind if way[1] in seen)
        return taken or tuple(behind)

    def _leads(self, one: str, other: str) -> bool:
        """Whether a message of one place may come to the other."""
        return one == PRODUCER or other == SINK or one in self._before[other]

    @cached_property
    def _before(self) -> dict[str, set[str]]:
        """By place all places that are before it, the producer aside."""
        before: dict[str, set[str]] = {}
        for name, place in self.places.items():
            direct = [one for one in place.after if one != PRODUCER]
            before[name] = set(direct).union(*(before[one] for one in direct))
        return before

    def _in_line(self, one: str, other: str) -> bool:
        return one == other or one in self._before[other] or other in self._before[one]

    def beside(self, name: str) -> set[str]:
        """The other places to which a message may have gone instead."""
        after = set(self.places[name].after)
        return {other for other, place in self.places.items() if after & set(place.after)} - {name}

    def _reached(self, seen: Mapping[str, Sighting], silent: Collection[str]) -> set[str]:
        """Where a message was: what a later place saw had passed the earlier ones."""
        reached = {PRODUCER, *seen}.union(*(self._before[name] for name in seen))
        for name, place in self.places.items():
            if name in silent and self._is_passed_on(place.after, reached, seen):
                reached.add(name)
        return reached

    def _is_passed_on(
        self, by: Sequence[str], reached: set[str], seen: Mapping[str, Sighting]
    ) -> bool:
        """Whether one of some places had the message and is to have passed it on."""
        return any(self._passes(name, seen) for name in by if name in reached)

    def _passes(self, name: str, seen: Mapping[str, Sighting]) -> bool:
        if name == PRODUCER or seen.get(name, Sighting()).sent:
            return True
        if self.is_left_out(name, seen):
            return False
        # It took this branch, and all branches together pass everything on. Where it was on
        # several, one of them lost it.
        return self.places[name].tells or not self.may_leave_out(name)

    def is_left_out(self, name: str, seen: Mapping[str, Sighting]) -> bool:
        """Whether a place that may leave a message out says that it did, and not that it sent it.

        Of one that is to pass on all that says nothing.
        """
        if name not in self.places or not (here := seen.get(name, Sighting())).left_out:
            return False
        return (self.places[name].tells or self.may_leave_out(name)) and not here.sent

    def passed_beside(self, name: str) -> float | None:
        """Which share a place and those beside it pass on together.

        None: to some of them others lead, too, and nobody can tell which share of what is meant.
        """
        alike = [self.places[one] for one in (name, *self.beside(name))]
        if any({*one.after} != {*alike[0].after} for one in alike):
            return None
        return sum(one.share for one in alike)

    def may_leave_out(self, name: str) -> bool:
        """Whether a place may leave messages out without a word, as those beside it may."""
        if self.places[name].share == 1 or self.lands_all:
            return False
        passed = self.passed_beside(name)
        return passed is None or passed < 1 - _ROUNDING


def _check_names(name: str, after: Sequence[str], *, known: Mapping[str, RoutePlace]) -> None:
    where = f"locations.{name}"
    if name in ENDS:
        raise ConfigError(where, name, f"a name of its own: each route has its {name} anyway")
    if not after:
        raise ConfigError(f"{where}.after", [], f"what leads to it: {PRODUCER}, or other places")
    for one in after:
        if one not in known and one != PRODUCER:
            others = sorted({PRODUCER, *known} - {name})
            raise ConfigError(f"{where}.after", one, f"one of {', '.join(others)}")
    if len(set(after)) < len(after):
        raise ConfigError(f"{where}.after", list(after), "each place once")


def _check_branches(route: Route, name: str) -> None:
    """Refuses branches that leave a part to nobody: a loss on one would hide in it."""
    passed, beside = route.passed_beside(name), route.beside(name)
    if beside and passed is not None and passed < 1 - _ROUNDING:
        who = " and ".join(one for one in route.places if one in {name, *beside})
        raise ConfigError(
            "locations",
            f"shares of {who} that add up to {passed:g}",
            "shares that add up to 1, as a message takes one of them. Where the rest is left out, "
            'or goes elsewhere, write share = "traced" at one of them, or '
            f"share = {passed:g} at a place of its own before them",
        )


def _with_rest(places: Mapping[str, RoutePlace]) -> dict[str, RoutePlace]:
    """The places; those that tell what they leave out with the share that others leave them."""
    found = dict(places)
    for name, place in places.items():
        if not place.tells:
            continue
        beside = [one for one in places.values() if {*one.after} & {*place.after}]
        rest = 1 - sum(one.share for one in beside if not one.tells)
        if rest < _ROUNDING:
            wanted = "shares of the places beside it that add up to less than 1"
            raise ConfigError(f"locations.{name}.share", "traced", wanted)
        found[name] = replace(place, share=rest / sum(one.tells for one in beside))
    return found


def _in_order(places: Mapping[str, RoutePlace]) -> list[str]:
    """The places, each behind all that it comes after, else as they were given."""
    ordered: list[str] = []
    while len(ordered) < len(places):
        ready = (
            name
            for name, place in places.items()
            if name not in ordered and {*place.after} <= {PRODUCER, *ordered}
        )
        following = next(ready, None)
        if following is None:
            found = _cycle({name: places[name] for name in places if name not in ordered})
            raise ConfigError(
                "locations", found, "an order from the producer to the sink: no place before itself"
            )
        ordered.append(following)
    return ordered


def _cycle(places: Mapping[str, RoutePlace]) -> str:
    """One of the cycles among places of which each comes after another of them."""
    path = [next(iter(places))]
    while path[-1] not in path[:-1]:
        path.append(next(one for one in places[path[-1]].after if one in places))
    return " after ".join(path[path.index(path[-1]) :])
