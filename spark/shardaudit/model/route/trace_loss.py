"""Which share of the messages that passed a place it did not trace.

Messages that landed tell: they passed the places of their way, with a trace or not.
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.route import Route

FEW_TRACED = 10  # messages: fewer say nothing of what a place loses
_WEIGHT = FEW_TRACED  # as so many count the window beside a minute, what was before beside it


@dataclass(frozen=True, slots=True)
class Traced:
    """Messages that landed, and how many of them each place traced; all add up.

    `passed_on`: messages that a place traced, and not as left out: it was to send them on, whatever
    became of them behind it; `sent`: those of them that it traced as sent; `behind`: those of them
    that a filter left out all the same. `unread`: of a minute, the share of its missing messages
    that a place may have traced in what never came.
    """

    landed: int = 0
    by_place: Mapping[str, int] = field(default_factory=dict)
    passed_on: Mapping[str, int] = field(default_factory=dict)
    sent: Mapping[str, int] = field(default_factory=dict)
    behind: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: "Traced") -> "Traced":
        return Traced(
            self.landed + other.landed,
            *(
                {name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}}
                for mine, theirs in zip(self.counts, other.counts, strict=True)
            ),
        )

    @property
    def counts(self) -> tuple[Mapping[str, int], ...]:
        """By place, in the order of the fields."""
        return self.by_place, self.passed_on, self.sent, self.behind


def as_if_always(route: Route, window: Traced, since: Mapping[str, int]) -> Traced:
    """What places would have traced of a window, had new ones traced all the time as they do since.

    Not where another place to which messages go instead traced before: it had those of then. Nor by
    fewer than ten messages: they say nothing.

    Input:
        since: by new place how many messages of the window landed since it traces.
    """
    new = [
        name
        for group in _groups(route)
        if all(since.get(name, 0) >= FEW_TRACED for name in group)
        for name in group
    ]
    counts = (
        {**of, **{name: round(of.get(name, 0) * window.landed / since[name]) for name in new}}
        for of in window.counts
    )
    return replace(Traced(window.landed, *counts), unread=window.unread)


def trace_losses(route: Route, traced: Traced) -> dict[str, float]:
    """By place, which share of the messages that passed it it did not trace.

    Of places to which a message goes instead of each other it is of all of them together: which
    one a message without a trace took is not known. A place that is not here may be gone round, or
    nothing came there.
    """
    return {name: _loss(*of) for name, of in traced_of_passed(route, traced).items()}


def losses_as_of_new(route: Route, traced: Traced, since: Mapping[str, int]) -> dict[str, float]:
    """`trace_losses` by what new places trace since they trace; what landed before says nothing.

    Input:
        since: as of `as_if_always`; of a part of the time it may be all, or none.
    """
    unknown = too_new(route, since, landed=traced.landed)
    losses = trace_losses(route, as_if_always(route, traced, since))
    return {name: loss for name, loss in losses.items() if name not in unknown}


def too_new(route: Route, since: Mapping[str, int], *, landed: int) -> Set[str]:
    """The new places of which nobody knows what they lose: too few messages landed since.

    Input:
        since: as of `losses_as_of_new`; landed: in all of the time.
    """
    few = {name for name, since_then in since.items() if since_then < min(FEW_TRACED, landed)}
    unknown = (of for of in _groups(route) if few & set(of) and since.keys() >= set(of))
    return {name for group in unknown for name in group}


def traced_of_passed(route: Route, traced: Traced) -> dict[str, tuple[int, float]]:
    """By place how many messages it traced, and of how many that passed it: as `trace_losses`."""
    found: dict[str, tuple[int, float]] = {}
    for group in _groups(route):
        losses = {name: _loss(*of) for name, of in found.items()}
        if passed := _passed(route, group, traced, losses):
            seen = sum(_seen(route, name, traced) for name in group)
            found |= dict.fromkeys(group, (seen, passed))
    return found


def usual_losses(route: Route, window: Traced, before: Mapping[str, float]) -> dict[str, float]:
    """By place the trace loss over a window, and what was known before; none: nobody knows any.

    Fewer than ten messages say nothing without what was known before of all places.

    Input:
        before: what is known of the time before it; the fewer messages, the more that counts.
    """
    if is_thin(window) and not _knowable(route) <= before.keys():
        return {}
    own = trace_losses(route, window)
    return {**before, **_joint(window, own, before)}


def losses_of_a_minute(
    route: Route, minute: Traced, usual: Mapping[str, float]
) -> dict[str, float]:
    """The trace losses of a minute: its own, as far as it has messages, else the usual ones.

    Where one cannot be told, the greatest of the others stands for it. What is `unread` of a place
    it lost, at least: one cause may have taken messages and traces, and left none to tell it.

    Input:
        usual: of `usual_losses`.
    """
    own = {name: loss for name, loss in trace_losses(route, minute).items() if name in usual}
    told = {**usual, **_joint(minute, own, usual)}
    greatest = max(told.values(), default=0.0)
    return at_least({name: told.get(name, greatest) for name in route.places}, minute.unread)


def at_least(losses: Mapping[str, float], others: Mapping[str, float]) -> dict[str, float]:
    """By place the greater one of both."""
    return {name: max(loss, others.get(name, 0.0)) for name, loss in losses.items()}


def with_minutes(
    window: Traced,
    landed: Mapping[datetime, Traced],
    exact: Collection[datetime],
    begins: Mapping[str, datetime],
) -> tuple[Traced, Traced]:
    """The window with the minutes of which all is known; and with the others where that is thin.

    Input:
        window: of the other minutes; landed, exact: of `PlaceCounts.landed`; begins: of
            `traces_begin`: the minutes before say nothing.
    """
    since = {start for start in landed if all(at <= start for at in begins.values())}
    known = sum((landed[start] for start in since & set(exact)), start=window)
    if not is_thin(known):
        return known, known
    return known, sum((landed[start] for start in since - set(exact)), start=known)


def end_losses(
    route: Route, traced: Traced, before: Mapping[str, float], *, least: int = 0
) -> dict[str, float]:
    """By place that tells what it leaves out: of how many it did not tell how they ended.

    What it did not leave out, and is not missing, it sent on: where it traced only that it received
    it, the other trace is lost. So may be one that says that it left a message out. A place that
    is not here: nobody knows.

    Input:
        before: what is known besides, which counts as `_WEIGHT` messages; least: fewer messages of
            a place say nothing without that.
    """
    losses: dict[str, float] = {}
    for name in route.telling:
        here = traced.passed_on.get(name, 0)
        if here < least and name not in before:
            continue
        own = max(0.0, 1 - traced.sent.get(name, 0) / here) if here else before.get(name, 1.0)
        weight = here / (here + _WEIGHT)
        losses[name] = weight * own + (1 - weight) * before.get(name, own)
    return losses


def is_thin(window: Traced) -> bool:
    """Whether too few messages landed to say what places lose of their traces."""
    return window.landed < FEW_TRACED


def _loss(seen: int, passed: float) -> float:
    return min(1.0, max(0.0, 1 - seen / passed))


def _knowable(route: Route) -> Set[str]:
    """The places of which messages that landed can tell it."""
    one_each = dict.fromkeys(route.places, 1)
    return trace_losses(route, Traced(1, one_each, one_each)).keys()


def _joint(
    traced: Traced, own: Mapping[str, float], others: Mapping[str, float]
) -> dict[str, float]:
    """What places lose by these messages, and by others, as if those were `_WEIGHT` messages."""
    weight = traced.landed / (traced.landed + _WEIGHT)
    return {
        name: weight * loss + (1 - weight) * others.get(name, loss) for name, loss in own.items()
    }


def _groups(route: Route) -> list[tuple[str, ...]]:
    """The places, with those to which a message goes instead; in the route's order."""
    groups: list[tuple[str, ...]] = []
    for name in route.places:
        if not any(name in group for group in groups):
            groups.append(_with_others(route, name))
    return groups


def _with_others(route: Route, name: str) -> tuple[str, ...]:
    group, before = {name}, set[str]()
    while before != (now := {one for other in group for one in route.places[other].after}):
        before = now
        group = {other for other, place in route.places.items() if before & set(place.after)}
    # Where one of them leads to another a message may pass both: each is for itself.
    if any(route.is_before(other, group) for other in group):
        return (name,)
    return tuple(other for other in route.places if other in group)


def _seen(route: Route, name: str, traced: Traced) -> int:
    """How many of the messages that landed by a place it traced.

    Where places beside each other may each read everything, one leaves to another what it traces
    as left out: that did not pass it, and would stand for what the other one did not trace.
    """
    group = _with_others(route, name)
    if len(group) > 1 and any(route.places[one].tells for one in group):
        return traced.passed_on.get(name, 0) - traced.behind.get(name, 0)
    return traced.by_place.get(name, 0)


def _passed(
    route: Route, group: tuple[str, ...], traced: Traced, losses: Mapping[str, float]
) -> float | None:
    """How many of the messages that landed passed one of the places; None: nobody knows."""
    if _is_passed_by_all(route, group):
        return traced.landed
    before = {one for name in group for one in route.places[name].after}
    leads = {name for name, place in route.places.items() if before & set(place.after)}
    if leads - set(group) or not before <= losses.keys() or any(losses[n] == 1 for n in before):
        return None
    return sum(_seen(route, name, traced) / (1 - losses[name]) for name in before)


def _is_passed_by_all(route: Route, group: tuple[str, ...]) -> bool:
    """Whether no way leads round all of them from the producer to the sink."""
    reached = {PRODUCER}
    for name, place in route.places.items():
        if name not in group and reached & set(place.after):
            reached.add(name)
    return not reached & set(route.last)
