"""Where the traces of a place are gone for a while: its log was not shipped, its disk was full.

Messages that landed passed the places of their way. A place that traced hardly any of a minute's
is dark then: that it has no trace of a missing one says nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from shardaudit.model.rates import is_surely_below
from shardaudit.model.route.route import Route
from shardaudit.model.route.trace_loss import (
    FEW_TRACED,
    Traced,
    is_thin,
    trace_losses,
    traced_of_passed,
)

DARK = 0.9  # of its messages a place did not trace as many: those that lack say nothing
_LEAST = 0.05  # of its traces any place may lose: so one or two that lack are no darkness
_NEAR = timedelta(hours=1)


@dataclass(frozen=True)
class LandedMinutes:
    """What places traced of what landed, minute by minute.

    `minutes`: those of which all is known; `begins`: by new place when its traces begin: that it
    lacks what was sent before says nothing.
    """

    route: Route
    minutes: Mapping[datetime, Traced]
    begins: Mapping[str, datetime]

    def dark(
        self, starts: Iterable[datetime], usual: Mapping[str, float]
    ) -> tuple[dict[datetime, frozenset[str]], dict[str, float]]:
        """Which places are dark in some minutes; and the usual losses, of where they are not.

        Input:
            usual: of `usual_losses`.
        """
        starts = list(starts)
        if not any(self._dark_at(start, usual) for start in starts):
            return {}, dict(usual)
        # What it loses while it is dark is no measure of what it loses else.
        dark = {start: self._dark_at(start, usual) for start in self._starts}
        usual = {name: self._loss(name, dark, loss) for name, loss in usual.items()}
        return {start: self._dark_at(start, usual) for start in starts}, usual

    def _loss(self, name: str, dark: Mapping[datetime, frozenset[str]], usual: float) -> float:
        begin = self.begins.get(name)
        own = (start for start in self._starts if begin is None or start >= begin)
        lit = sum((self.minutes[at] for at in own if name not in dark[at]), start=Traced())
        return usual if is_thin(lit) else trace_losses(self.route, lit).get(name, usual)

    @cached_property
    def _starts(self) -> list[datetime]:
        return sorted(start for start, minute in self.minutes.items() if minute.landed)

    def _dark_at(self, at: datetime, usual: Mapping[str, float]) -> frozenset[str]:
        """By the minute itself and, where few of it landed, by those next to it on either side."""
        starts = self._starts
        before = starts[bisect_left(starts, at - _NEAR) : bisect_right(starts, at)][::-1]
        behind = starts[bisect_left(starts, at) : bisect_right(starts, at + _NEAR)]
        return frozenset(name for side in (before, behind) for name in self._gone(side, usual))

    def _gone(self, side: Iterable[datetime], usual: Mapping[str, float]) -> Iterator[str]:
        """The places that surely traced less of some minutes than usual, and hardly any.

        Of each so many minutes, in this order, that they tell.
        """
        # Of one that traces nothing at all nothing can be gone.
        unknown, near = {name for name, loss in usual.items() if loss < 1}, Traced()
        for start in side:
            unknown -= {name for name, begin in self.begins.items() if start < begin}
            near += self.minutes[start]
            for name, (traced, of) in traced_of_passed(self.route, near).items():
                passed, due = round(of), 1 - max(usual.get(name, 0.0), _LEAST)
                if name not in unknown:
                    continue
                if traced <= (1 - DARK) * passed and is_surely_below(traced, passed, due):
                    yield name
                    unknown.discard(name)
                elif passed >= FEW_TRACED and traced:
                    unknown.discard(name)
            if not unknown:
                return
