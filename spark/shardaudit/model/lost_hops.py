"""On which hop of a route a message was lost, and how sure that is."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route import SINK, Route, Sighting

SURE = 0.95  # likely enough to be said; what is less is inconclusive
_SHOWN = 0.01  # less likely hops are not listed

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

    `silent`: places of which there are no traces at all; `rates`: by hop, how often it loses a
    message, as a multiple of any unit; those that are absent lose as often as each other.
    """

    route: Route
    silent: frozenset[str] = frozenset()
    rates: Mapping[_Way, float] = field(default_factory=dict)

    def of(self, seen: _Seen) -> tuple[LostHop, ...]:
        """The hops that a missing message may have been lost on, in the route's order.

        Where one place is sure enough never to have been reached, the hops that lead to it alone.
        None of them: it stopped at a filter that passes only a share on, and nothing says that it
        passed this one.

        Input:
            seen: by place, of those that traced it.
        """
        if self.route.never_reached(seen, silent=self.silent) is None:
            return ()
        shares = _shares(self._weights(seen), self.rates)
        places = defaultdict[str | None, float](float)
        for (_, before), share in shares.items():
            places[before] += share
        place, share = max(places.items(), key=lambda told: told[1])
        return tuple(
            LostHop(after, before, shares[after, before])
            for after, before in shares
            if shares[after, before] >= _SHOWN and (share < SURE or before == place)
        )

    def _weights(self, seen: _Seen) -> dict[_Way, float]:
        """By hop, how likely a message with these traces came to it."""
        here = dict.fromkeys(self._last_seen(seen), 1.0)
        weights = defaultdict[_Way, float](float)
        for name, weight in here.items():
            for following, part in self._behind(name, seen).items():
                weights[name, following] += weight * part
        return weights

    def _last_seen(self, seen: _Seen) -> Sequence[str]:
        """The places that traced a message which none behind them did."""
        return [n for n in seen if not self.route.is_before(n, seen)] or [PRODUCER]

    def _behind(self, name: str, seen: _Seen) -> dict[str | None, float]:
        """Which part of what a place had goes to each of the next that are not silent."""
        hops = self.route.hops
        direct = [one for one, hop in hops.items() if name in hop.after]
        whole = sum(hops[one].share for one in direct)
        parts = defaultdict[str | None, float](float)
        if self._leaves_out(name, seen):
            parts[None] = 1.0
        for one in direct:
            part = hops[one].share / whole if len(direct) > 1 else 1.0
            is_silent = one in self.silent
            further = self._behind(one, seen) if is_silent else {one: 1.0}
            for following, share in further.items():
                parts[following] += part * share
        if not direct:
            parts[SINK] += 1.0
        return parts

    def _leaves_out(self, name: str, seen: _Seen) -> bool:
        if name == PRODUCER or self.route.lands_all:
            return False
        return self.route.hops[name].share < 1 and not seen.get(name, Sighting()).sent


def place_of(hops: Sequence[LostHop]) -> str | None:
    """The place that the message never reached; None: nobody can tell, or a filter kept it."""
    places = {hop.before for hop in hops}
    return places.pop() if len(places) == 1 else None


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


def _shares(weights: Mapping[_Way, float], rates: Mapping[_Way, float]) -> dict[_Way, float]:
    """What is likely by how messages come there and how often they are lost there: sums to 1."""
    each = {way: weight * rates.get(way, 1.0) for way, weight in weights.items()}
    whole = sum(each.values())
    return {way: share / whole for way, share in each.items()}
