"""On which hop of a route a message was lost, and how sure that is.

A message that a place did not trace was lost before it, or further on, and its trace was lost too.
How likely the latter is tell the messages that landed: they passed the place, with a trace or not.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.route import SINK, Route, Sighting
from shardaudit.model.route.trace_loss import at_least
from shardaudit.model.verdict import Verdict

SURE = 0.95  # likely enough to be said; what is less is inconclusive
_SHOWN = 0.01  # less likely hops are not listed
_ROUNDS = 50  # of the estimate of `loss_rates`, which comes to rest long before
_UNTOLD = 0.5  # messages that each hop counts as lost, beside those that are known

_Way = tuple[str, str | None]  # from a place to the next; None: a filter left the message out
_Seen = Mapping[str, Sighting]


@dataclass(frozen=True, slots=True)
class LostHop:
    """A hop on which a message may have been lost: behind one place, before the next.

    `before`: None where a filter may have left it out on purpose; `probability`: a fraction.
    """

    after: str
    before: str | None
    probability: float


@dataclass(frozen=True)
class LostHops:
    """Where messages of a route were lost.

    `silent`: places of which there are no traces at all; `trace_losses`: by place, the share of its
    messages that it did not trace; `loss_rates`: by hop, how often it loses a message, in any
    unit; those that are absent lose as often as each other. Of places that tell what they leave
    out: `end_losses`: the share of the messages that it had of which it did not tell how they
    ended, where that is known; `left_out`: how many it told; `lacking`: how many numbers of its log
    are of no trace that came, each of which may have said that it left a message out. `dark`:
    places whose traces of the time are gone.
    """

    route: Route
    silent: frozenset[str] = frozenset()
    trace_losses: Mapping[str, float] = field(default_factory=dict)
    loss_rates: Mapping[_Way, float] = field(default_factory=dict)
    end_losses: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)
    dark: frozenset[str] = frozenset()

    def of(self, seen: _Seen) -> tuple[LostHop, ...]:
        """The hops that a missing message may have been lost on, in the route's order.

        Where one place is sure enough never to have been reached, the hops that lead to it alone.
        None of them: it stopped at a filter that passes only a share on, and nothing says that it
        passed this one. Where one may have left it out and lost the trace that says so, the hops on
        which it may be lost stand beside that.

        Input:
            seen: by place, of those that traced it.
        """
        if self.route.never_reached(seen, silent=self.silent) is None:
            return ()
        weights = self._weights(seen, self.trace_losses)
        guesses = [_shares(weights, self.loss_rates)]
        if self.may_have_passed(self.dark, seen):
            # What took its traces may have taken messages, wherever they are lost else.
            guesses.append(_shares(weights, {}))
        shares = {way: sum(of[way] for of in guesses) / len(guesses) for way in weights}
        sure = [_by_place(of) for of in guesses]
        place, share = max(
            ((name, min(of[name] for of in sure)) for name in sure[0]), key=lambda told: told[1]
        )
        return tuple(
            LostHop(after, before, shares[after, before])
            for after, before in shares
            if shares[after, before] >= _SHOWN
            and (share < SURE or place is None or before == place)
        )

    def may_have_passed(self, dark: Collection[str], seen: _Seen) -> bool:
        """Whether a missing message may have passed one of these places, or been lost before it.

        Not where it was seen there or behind it, nor where it hardly comes so far untraced.
        """
        shares = _by_place(_shares(self._weights(seen, self.trace_losses), {}))
        return sum(shares.get(name, 0.0) for name in dark) > 1 - SURE

    def unknowing(self) -> "LostHops":
        """The same where nobody knows how many traces places lose: each hop is as likely.

        None of those that trace loss alone may explain is sure.
        """
        unknown = dict.fromkeys(self.route.places, 1.0)
        return replace(self, trace_losses=unknown, end_losses={}, loss_rates={})

    def with_loss_rates(
        self,
        missing: Sequence[tuple[_Seen, int]],
        unread: Sequence[tuple[_Seen, Mapping[str, float], int]] = (),
    ) -> "LostHops":
        """The same, with the loss rates under which these missing messages are the likeliest.

        Input:
            missing: by which places messages were traced, and how many they are; unread: the same
            of times in which places lost more of their traces, at least those shares.

        Source: A. P. Dempster, N. M. Laird, D. B. Rubin, Maximum likelihood from incomplete data
            via the EM algorithm, Journal of the Royal Statistical Society B 39 (1977), 1-38.
        """
        traffic = self._weights({}, dict.fromkeys(self.route.places, 1.0))
        weighed = [(self._weights(seen, self.trace_losses), count) for seen, count in missing]
        weighed += [
            (self._weights(seen, at_least(self.trace_losses, losses)), count)
            for seen, losses, count in unread
        ]
        known = self._told(traffic)
        rates = dict(known)
        for _ in range(_ROUNDS):
            lost = dict.fromkeys(traffic, _UNTOLD)
            for weights, count in weighed:
                for way, share in _shares(weights, rates).items():
                    lost[way] += count * share
            rates = {way: lost[way] / traffic[way] for way in traffic} | known
        return replace(self, loss_rates=rates)

    def _told(self, traffic: Mapping[_Way, float]) -> dict[_Way, float]:
        """How often places that tell it leave a message out: as often as they say, and lose that.

        Where nobody knows how many of these one loses, at least as often as it says, if it does.
        Of one that tells of nothing what it sent on that is no measure.
        """
        rates: dict[_Way, float] = {}
        for name in self.route.telling:
            way, told = (name, None), self.left_out.get(name, 0)
            lost = self._end_loss(name, 0.0 if told else 1.0)
            if way in traffic and lost < 1 and name not in self.silent:
                rates[way] = (told + _UNTOLD) / (1 - lost) / traffic[way]
        return rates

    def _weights(self, seen: _Seen, trace_losses: Mapping[str, float]) -> dict[_Way, float]:
        """By hop, how likely a message came to it that has these traces, and no later one."""
        here = defaultdict[str, float](float, dict.fromkeys(self._last_seen(seen), 1.0))
        weights = defaultdict[_Way, float](float)
        for name in (PRODUCER, *self.route.places):
            if name not in here:
                continue
            for (by, following), part in self._behind(name, seen).items():
                weights[by, following] += here[name] * part
                if following is not None:
                    here[following] += here[name] * part * trace_losses.get(following, 0.0)
        return {way: weight for way, weight in weights.items() if weight}

    def _last_seen(self, seen: _Seen) -> Sequence[str]:
        """The places that traced a message which none behind them did."""
        last = [n for n in seen if not self.route.is_before(n, seen)]
        on_way = [n for n in last if not self.route.is_left_out(n, seen)]
        return on_way or last or [PRODUCER]

    def _behind(self, name: str, seen: _Seen) -> dict[_Way, float]:
        """Which part of what a place had goes to each of the next that are not silent.

        What is left out is so by this one, or by a silent one behind it.
        """
        places = self.route.places
        direct = [one for one, place in places.items() if name in place.after]
        whole = sum(places[one].share for one in direct)
        parts = defaultdict[_Way, float](float)
        if out := self._leaves_out(name, seen):
            parts[name, None] = out
        for one in direct:
            part = places[one].share / whole
            is_silent = one in self.silent
            further = self._behind(one, seen) if is_silent else {(name, one): 1.0}
            for (by, following), share in further.items():
                parts[by if following is None else name, following] += part * share
        if not direct:
            parts[name, SINK] = 1.0
        return parts

    def _leaves_out(self, name: str, seen: _Seen) -> float:
        """How likely a place that left a message out has no other traces of it than these."""
        if name == PRODUCER or seen.get(name, Sighting()).sent:
            return 0.0
        if self.route.places[name].tells:
            return self._end_loss(name, 1.0) if name in seen else 1.0
        return float(self.route.may_leave_out(name))

    def _end_loss(self, name: str, unknown: float) -> float:
        """How often a place that tells what it leaves out loses the trace that says it, at least.

        It may lose those alone: of what it sent on it lacks nothing then, but numbers of its log.
        """
        if name not in self.end_losses:
            return unknown
        lacking = self.lacking.get(name, 0)
        of_numbers = lacking / (self.left_out.get(name, 0) + _UNTOLD + lacking)
        return max(self.end_losses[name], of_numbers)


@dataclass(frozen=True, slots=True)
class TracedAlike:
    """So many missing or doubled messages that the same places traced.

    `seen`: by which places; `lost`: of `LostHops.of`; None: they are doubled. `silent`: places of
    which there are no traces of their time.
    """

    ids: int
    seen: _Seen
    lost: tuple[LostHop, ...] | None = None
    silent: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class HopLine:
    """A way from one place to the next over the window of an audit; counts are messages.

    `lost`: on it; `doubtful`: those of which it is inconclusive that it was there; `doubled`: of
    the last place that had them once those on the ways that they may have taken from there.
    """

    after: str
    before: str
    lost: int = 0
    doubtful: int = 0
    doubled: int = 0

    @property
    def verdict(self) -> Verdict:
        """What happened on it, in the words of a cell."""
        if self.lost:
            return Verdict.MIXED if self.doubled else Verdict.LOSS
        if self.doubled:
            return Verdict.DUPLICATION
        return Verdict.INCONCLUSIVE if self.doubtful else Verdict.OK


def hop_lines(route: Route, found: Sequence[TracedAlike]) -> tuple[HopLine, ...]:
    """The ways of a route, in its order, with what was lost and doubled on them.

    Before or behind a silent place nobody can tell which.
    """
    lost, doubtful, doubled = Counter[_Way](), Counter[_Way](), Counter[_Way]()
    for each in found:
        if each.lost is None:
            doubled.update(dict.fromkeys(route.doubled_on(each.seen), each.ids))
            continue
        ways = {
            way
            for hop in each.lost
            if hop.before is not None
            for way in route.ways_between(hop.after, hop.before, silent=each.silent)
        }
        is_sure = len(each.lost) == len(ways) == 1
        (lost if is_sure else doubtful).update(dict.fromkeys(ways, each.ids))
    return tuple(
        HopLine(*way, lost=lost[way], doubtful=doubtful[way], doubled=doubled[way])
        for way in route.ways
    )


def place_of(hops: Sequence[LostHop]) -> str | None:
    """The place that the message never reached; None: nobody can tell, or a filter kept it."""
    places = {hop.before for hop in hops}
    return places.pop() if len(places) == 1 else None


def lost_before(
    missing: Iterable[tuple[int, Sequence[LostHop]]],
) -> tuple[Counter[str], Counter[str]]:
    """Missing messages by place: that never reached it, and that may not have reached it.

    Input:
        missing: so many messages, with the hops on which they may have been lost.
    """
    lost, doubtful = Counter[str](), Counter[str]()
    for ids, hops in missing:
        # One before which a filter may have left it out is no place that lost it.
        places = {hop.before for hop in hops if hop.before is not None}
        (doubtful if place_of(hops) is None else lost).update(dict.fromkeys(places, ids))
    return lost, doubtful


def lost_hops_as_json(hops: Sequence[LostHop]) -> str | None:
    """The text that FINDINGS holds; None: nothing is known."""
    told = [
        {"after": hop.after, "before": hop.before, "probability": round(hop.probability, 4)}
        for hop in hops
    ]
    return json.dumps(told) if told else None


def lost_hops_from_json(text: str | None) -> tuple[LostHop, ...]:
    """The hops of such a text."""
    return tuple(LostHop(**hop) for hop in json.loads(text or "[]"))


def _by_place(shares: Mapping[_Way, float]) -> dict[str | None, float]:
    places = defaultdict[str | None, float](float)
    for (_, before), share in shares.items():
        places[before] += share
    return places


def _shares(weights: Mapping[_Way, float], rates: Mapping[_Way, float]) -> dict[_Way, float]:
    """What is likely by how messages come there and how often they are lost there: sums to 1."""
    each = {way: weight * rates.get(way, 1.0) for way, weight in weights.items()}
    whole = sum(each.values())
    return {way: share / whole for way, share in each.items()}
