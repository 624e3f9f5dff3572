"""Which share of the messages that passed a place it did not trace.

Messages that landed tell: they passed the places of their way, with a trace or not.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.route import Route

FEW_TRACED = 10  # messages: fewer say nothing of what a place loses
_WEIGHT = FEW_TRACED  # as so many count the window beside a minute, what was before beside it


@dataclass(frozen=True, slots=True)
class Traced:
    """Messages that landed, and how many of them each place traced; all add up.

    `passed_on`: messages that a place traced, and not as left out: it was to send them on, whatever
    became of them behind it; `sent`: those of them that it traced as sent. `unread`: of a minute,
    the share of its missing messages that a place may have traced in numbers that never came.
    """

    landed: int = 0
    by_place: Mapping[str, int] = field(default_factory=dict)
    passed_on: Mapping[str, int] = field(default_factory=dict)
    sent: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: "Traced") -> "Traced":
        return Traced(
            self.landed + other.landed,
            *(
                {name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}}
                for mine, theirs in zip(self._counts, other._counts, strict=True)
            ),
        )

    @property
    def _counts(self) -> tuple[Mapping[str, int], ...]:
        return self.by_place, self.passed_on, self.sent


def as_if_always(route: Route, window: Traced, since: Mapping[str, int]) -> Traced:
    """What places would have traced of a window, had new ones traced all the time as they do since.

    Not where another place to which messages go instead traced before: it had those of then. Nor by
    fewer than ten messages: they say nothing.

    Input:
        since: by new place how many messages of the window landed since it traces.
    """
    by_place = dict(window.by_place)
    for group in _groups(route):
        if all(since.get(name, 0) >= FEW_TRACED for name in group):
            whole = {name: by_place.get(name, 0) * window.landed / since[name] for name in group}
            by_place |= {name: round(ids) for name, ids in whole.items()}
    return replace(window, by_place=by_place)


def trace_losses(route: Route, traced: Traced) -> dict[str, float]:
    """By place, which share of the messages that passed it it did not trace.

    Of places to which a message goes instead of each other it is of all of them together: which
    one a message without a trace took is not known. A place that is not here may be gone round, or
    nothing came there.
    """
    losses: dict[str, float] = {}
    for group in _groups(route):
        passed = _passed(route, group, traced, losses)
        if passed:
            seen = sum(traced.by_place.get(name, 0) for name in group)
            losses |= dict.fromkeys(group, min(1.0, max(0.0, 1 - seen / passed)))
    return losses


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
    unread = minute.unread
    return {n: max(told.get(n, greatest), unread.get(n, 0.0)) for n in route.places}


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


def _knowable(route: Route) -> Set[str]:
    """The places of which messages that landed can tell it."""
    return trace_losses(route, Traced(1, dict.fromkeys(route.places, 1))).keys()


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
    return sum(traced.by_place.get(name, 0) / (1 - losses[name]) for name in before)


def _is_passed_by_all(route: Route, group: tuple[str, ...]) -> bool:
    """Whether no way leads round all of them from the producer to the sink."""
    reached = {PRODUCER}
    for name, place in route.places.items():
        if name not in group and reached & set(place.after):
            reached.add(name)
    return not reached & set(route.last)
