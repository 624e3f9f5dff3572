"""The ledger's aggregation in plain Python: what Spark gives the watch, from single messages.

`tests/spark/watch/test_frontiers.py` holds the Spark one against this.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from shardaudit.watch.rules.facts import EarlierWatch, Holes, LedgerProgress, Pause, Span
from tests.builders import T0, sequence

MINUTE = timedelta(minutes=1)
SETTLE_GRACE = 10  # minutes


def instant(minutes: float) -> datetime:
    """The time of so many minutes after T0."""
    return T0 + timedelta(minutes=minutes)


@dataclass
class Cell:
    """Both sides of a cell; keys are message numbers, -1 before the first.

    `apart`: per message how often it was sent less how often it landed.
    """

    sent_n: int = 0
    sent_key: int = -1
    landed_n: int = 0
    landed_key: int = -1
    last_landed: float | None = None
    apart: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True)
class HoleCells:
    """A shard's holes, what is missing in each of their cells, at least, and the doubted cells."""

    facts: Holes
    lacking: dict[int, int]
    doubts: frozenset[int]


@dataclass
class ShardLedger:
    """A shard's cells so far, by the minute of `sent_at`."""

    name: str
    cells: dict[int, Cell] = field(default_factory=dict)
    hours: dict[int, list[int]] = field(default_factory=dict)
    produced_until: float | None = None

    def send(self, number: int, sent_at: float) -> None:
        """A trace."""
        cell = self.cells.setdefault(int(sent_at // 1), Cell())
        cell.sent_n += 1
        cell.sent_key = max(cell.sent_key, number)
        cell.apart[number] += 1
        self.produced_until = max(sent_at, self.produced_until or sent_at)

    def land(self, at: float, number: int, sent_at: float) -> None:
        """A row of the sink."""
        cell = self.cells.setdefault(int(sent_at // 1), Cell())
        cell.landed_n += 1
        cell.landed_key = max(cell.landed_key, number)
        cell.apart[number] -= 1
        cell.last_landed = max(at, cell.last_landed or at)
        seconds = max((at - sent_at) * 60, 0)
        hour = self.hours.setdefault(int(sent_at // 60), [0] * 22)
        hour[next(i for i in range(22) if seconds <= 2**i)] += 1

    def progress(self, now: float, before: EarlierWatch | None) -> LedgerProgress:
        """What the watch is told at that time."""
        landed = [start for start, cell in self.cells.items() if cell.landed_n]
        landed_until = max(landed, default=None)
        first = min(self.cells, default=0)
        since = first if landed_until is None else min(landed_until, now) - 360
        recent = {start: c for start, c in sorted(self.cells.items()) if start >= since}
        frontier = max((cell.landed_key for cell in recent.values()), default=-1)
        known = -1 if before is None or before.frontier is None else int(before.frontier[-20:])
        frontier = max(frontier, known)
        at = [c.last_landed for c in recent.values() if c.landed_key == frontier and c.landed_n]
        last = max((c.last_landed for c in self.cells.values() if c.last_landed), default=None)
        settled = _settled(recent, now)
        return LedgerProgress(
            self.name,
            produced_until=_instant(self.produced_until),
            frontier=None if frontier < 0 else sequence(frontier),
            settled_frontier=None if settled < 0 else sequence(settled),
            frontier_at=_instant(at[0]) if at else (before.frontier_at if before else None),
            last_landed_at=_instant(last),
            landed_until=_instant(landed_until),
            relanded_until=_instant(
                max(
                    (s for s, c in recent.items() if c.last_landed == last and last is not None),
                    default=None,
                )
            ),
            ahead=_ahead(recent, frontier),
            pause=_pause(recent, before),
        )

    def holes(self, *, settled: int, told: Mapping[int, int]) -> HoleCells:
        """The holes now.

        Input:
            settled: `settled_frontier` at the look before; told: `lacking` of the holes that were
            told before.
        """
        differing = {start: self.cells[start] for start in self._differing()}
        past = {s: c for s, c in differing.items() if c.sent_n and c.sent_key <= settled}
        lacking = {
            s: max(cell.sent_n - cell.landed_n, 1)
            for s, cell in past.items()
            if cell.sent_n >= cell.landed_n
        }
        doubts = [s for s in past if s not in lacking]
        facts = Holes(
            cells=len(lacking),
            messages=sum(lacking.values()),
            sent=sum(past[s].sent_n for s in lacking),
            even=sum(past[s].sent_n == past[s].landed_n for s in lacking),
            news=sum(missing > told.get(s, 0) for s, missing in lacking.items()),
            since=instant(min(lacking)) if lacking else None,
            until=instant(max(lacking) + 1) if lacking else None,
            doubts=len(doubts),
            doubted_since=instant(min(doubts)) if doubts else None,
            unnamed=len(lacking),
            unnamed_since=instant(min(past)) if past else None,
            unnamed_until=instant(max(past) + 1) if past else None,
        )
        return HoleCells(facts, lacking, frozenset(doubts))

    def _differing(self) -> list[int]:
        """The cells that differ, but of hours in which all that was sent landed once."""
        differing = [start for start, cell in self.cells.items() if any(cell.apart.values())]
        hours: dict[int, Counter[int]] = {}
        for start in differing:  # in the others nothing is apart
            hours.setdefault(start // 60, Counter()).update(self.cells[start].apart)
        return [start for start in differing if any(hours[start // 60].values())]


def _settled(recent: dict[int, Cell], now: float) -> int:
    rested = [
        cell.landed_key
        for cell in recent.values()
        if cell.last_landed is not None and cell.last_landed <= now - SETTLE_GRACE
    ]
    return max(rested, default=-1)


def _ahead(recent: dict[int, Cell], frontier: int) -> Span | None:
    ahead = {s: c for s, c in recent.items() if c.sent_n and c.sent_key > frontier}
    if not ahead:
        return None
    waiting = sum(max(cell.sent_n - cell.landed_n, 1) for cell in ahead.values())
    return Span(waiting, instant(min(ahead)), instant(max(ahead) + 1))


def _pause(recent: dict[int, Cell], before: EarlierWatch | None) -> Pause | None:
    landings = sorted((c.last_landed, s) for s, c in recent.items() if c.last_landed is not None)
    new = 0  # the place of the first landing since the look before
    if before is not None:
        new = bisect_right(landings, before.observed_at, key=lambda landing: instant(landing[0]))
        if before.frontier_at is not None:
            landings.insert(0, ((before.frontier_at - T0) / MINUTE, 0))
            new += 1
    pauses = []
    for (earlier, _), (at, start) in pairwise(landings[max(new - 1, 0) :]):
        waits_from = max(earlier, start + 1)
        pauses.append((at - waits_from, waits_from, at))
    if not pauses:
        return None
    length, since, until = max(pauses)
    return Pause(instant(since), instant(until)) if length > 0 else None


def _instant(minutes: float | None) -> datetime | None:
    return None if minutes is None else instant(minutes)
