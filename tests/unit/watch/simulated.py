"""Random histories of a stream's shards, message by message, and what really happened in them.

Independent of the code under test: nothing of `watch` is imported here. Times are minutes from
START. A consumer flushes what it read every few minutes, within its capacity; a KCL-like one begins
a child when the parent is drained.
"""

import heapq
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

HOURS = 24
END = HOURS * 60.0
KINDS = (
    *("steady", "burst", "trickle", "idle night", "late flush", "reshard"),
    *("stop", "restart", "rewind"),
    *("decoys", "hole", "hole at a stop", "hole at a reshard"),
)
STOPPED = ("stop", "stop behind a hole")
HEALTHY = ("steady", "burst", "trickle", "idle night", "late flush", "reshard", "decoys")
# Not where nothing is sent for a while: there a row that lands again reads as a pause that is over.
_DECOYS = ("steady", "burst", "late flush")
_SHAPES = {
    "stop behind a hole": ("stop",),
    "decoys": _DECOYS,
    "hole": ("steady", "burst", "trickle", "late flush", "restart", "rewind"),
    "hole at a stop": ("stop",),
    "hole at a reshard": ("reshard",),
}


@dataclass
class SimShard:
    """One shard: its messages (arrival, sent_at), its landings (time, message number).

    `lost`: read by the consumer and never landed.
    """

    name: str
    parent: str | None = None
    opened: float = 0.0
    closed: float = END
    arrivals: list[float] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    landings: list[tuple[float, int]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def minute(self, number: int) -> int:
        """The cell of a message."""
        return int(self.sent_at[number] // 1)


@dataclass
class History:
    """A stream's day. `stops`: (shard, begin, end of the consumer's rest) as they were planted."""

    kind: str
    shards: dict[str, SimShard]
    stops: list[tuple[str, float, float]]


def kinds(seed: int) -> tuple[str, ...]:
    """The kinds of that number's histories: they take turns, each stop is also behind a hole."""
    kind = KINDS[seed % len(KINDS)]
    return STOPPED if kind in STOPPED else (kind,)


def history(seed: int, kind: str) -> History:
    """The history of that number, of that kind."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    shape = chance.choice(_SHAPES[kind]) if kind in _SHAPES else kind
    shards = _shards(shape, chance)
    for shard in shards.values():
        _produce(shard, shape, chance)
    stops = _stops(shape, shards, chance)
    for shard in shards.values():
        mine = [(since, until) for name, since, until in stops if name == shard.name]
        _consume(shard, shards, shape, mine, chance)
    if kind == "stop behind a hole":
        _lose_before(shards, stops, chance)
    elif kind in _SHAPES:
        for shard in shards.values():
            _double_and_delay(shard, chance)
        if kind != "decoys":
            _lose(shards, stops, chance)
    return History(kind, shards, stops if kind in STOPPED else [])


def real_stops(past: History) -> Iterator[tuple[str, float, float]]:
    """Every planted stop over which a message really waited: (shard, since when, until when)."""
    for name, since, until in past.stops:
        shard = past.shards[name]
        if _begin(shard, past.shards) > since:
            continue  # it rests before its parent is drained: the stop is the parent's
        first_landed: dict[int, float] = {}
        for at, number in shard.landings:
            first_landed.setdefault(number, at)
        waiting = [
            max(arrival, since)
            for number, arrival in enumerate(shard.arrivals)
            if arrival < until
            and first_landed.get(number, END + 1) >= until
            and number not in shard.lost
        ]
        if waiting:
            yield name, min(waiting), until


def settled_cells(shard: SimShard) -> dict[int, float]:
    """Per cell in which something was lost the first observation at which all of it was settled.

    It is when something that arrived later had landed, and nothing more had landed in the cell of
    that for ten minutes. A cell that never was is not there.
    """
    lost = {shard.minute(number) for number in shard.lost}
    found: dict[int, float] = {}
    sent: dict[int, int] = {}  # by cell, the newest that was sent
    landed: dict[int, tuple[int, float]] = {}  # by cell, the newest that landed, the last landing
    pending = events(shard)
    for now in range(15, int(END) + 1, 15):
        ready = pending[: bisect_right(pending, now, key=itemgetter(0))]
        pending = pending[len(ready) :]
        for at, side, number in ready:
            cell = shard.minute(number)
            if side == "sent":
                sent[cell] = max(number, sent.get(cell, -1))
            else:
                landed[cell] = (max(number, landed.get(cell, (-1, at))[0]), at)
        passed = max((key for key, last in landed.values() if last <= now - 10), default=-1)
        for cell in lost - found.keys():
            if sent.get(cell, END * 10**6) <= passed:
                found[cell] = float(now)
    return found


def _shards(kind: str, chance: random.Random) -> dict[str, SimShard]:
    shards = {f"s{i}": SimShard(f"s{i}") for i in range(2)}
    if kind == "reshard" or (kind == "stop" and chance.random() < 0.3):
        split_at = chance.uniform(300, 900)
        shards["s0"].closed = split_at
        for child in ("s2", "s3"):
            shards[child] = SimShard(child, parent="s0", opened=split_at)
    return shards


def _produce(shard: SimShard, kind: str, chance: random.Random) -> None:
    """Poisson arrivals; three producers whose clocks are off by up to two minutes."""
    skews = [chance.uniform(-2, 2) for _ in range(3)]
    rate = chance.uniform(0.5, 4)
    slow = kind == "trickle" or (kind in {"stop", "restart"} and chance.random() < 0.2)
    burst_at = chance.uniform(120, 1200)
    at = shard.opened
    while True:
        now_rate = 1 / 60 if slow else rate
        if kind in {"burst", "stop"} and burst_at <= at < burst_at + 20:
            now_rate *= 6
        at += chance.expovariate(now_rate) if not slow else chance.uniform(50, 70)
        if kind in {"idle night", "stop"} and 600 <= at < 900:
            at = 900 + chance.expovariate(rate)
        if at >= min(shard.closed, END):
            return
        shard.arrivals.append(at)
        shard.sent_at.append(at + chance.choice(skews))


def _stops(
    kind: str, shards: dict[str, SimShard], chance: random.Random
) -> list[tuple[str, float, float]]:
    """Rests of the consumer: long ones, or a minute or three for a restart."""
    if kind not in {"stop", "restart"}:
        return []
    found = []
    for name, shard in shards.items():
        at = shard.opened + chance.uniform(30, 300)
        while at < shard.closed - 60:
            longest = 240 if chance.random() < 0.5 else 25
            length = chance.uniform(15, longest) if kind == "stop" else chance.uniform(1, 4)
            if kind == "stop" and chance.random() < 0.2:
                length = END  # until the end
            found.append((name, at, min(at + length, END)))
            at += length + chance.uniform(60, 300)
    return found


def _consume(
    shard: SimShard,
    shards: dict[str, SimShard],
    kind: str,
    rests: list[tuple[float, float]],
    chance: random.Random,
) -> None:
    every = chance.uniform(0.3, 5)
    capacity = 4 * 1.5 * 60 if kind != "burst" else 4 * 3  # messages a minute
    rewinds = [chance.uniform(200, 1300)] if kind == "rewind" else []
    rewinds += [until for _, until in rests if kind == "restart"]
    at, position = _begin(shard, shards), 0
    while at < END:
        late = kind == "late flush" and chance.random() < 0.1
        at += chance.uniform(5, 8) if late else every * chance.uniform(0.8, 1.2)
        for since, until in rests:
            if since <= at < until:
                at = until + 0.05
        if rewinds and at >= rewinds[0]:
            back = at - rewinds.pop(0) + (chance.uniform(20, 90) if kind == "rewind" else 5)
            position = sum(arrival < at - back for arrival in shard.arrivals[:position])
        limit = int(capacity * every) + 1
        while limit and position < len(shard.arrivals) and shard.arrivals[position] < at:
            if at < END:
                shard.landings.append((at, position))
            position, limit = position + 1, limit - 1


def _begin(shard: SimShard, shards: dict[str, SimShard]) -> float:
    """When its consumer may begin: an undrained parent first."""
    if shard.parent is None:
        return shard.opened
    parent = shards[shard.parent]
    landed = {number for _, number in parent.landings} | parent.lost
    if len(landed) < len(parent.arrivals):
        return END
    return max(shard.opened, max((at for at, _ in parent.landings), default=shard.opened))


def _double_and_delay(shard: SimShard, chance: random.Random) -> None:
    """What is no hole: rows that land twice, and rows that land minutes after later ones."""
    landings = list(shard.landings)
    for index, (at, number) in enumerate(landings):
        if chance.random() < 0.005:
            landings.append((at + chance.uniform(0, 60), number))
        if chance.random() < 0.005:
            landings[index] = (at + chance.uniform(0, 20), number)
    shard.landings = sorted(landing for landing in landings if landing[0] < END)


def _lose(
    shards: dict[str, SimShard], stops: list[tuple[str, float, float]], chance: random.Random
) -> None:
    """Takes messages out of the sink: single ones, stretches, before a stop, beside a duplicate."""
    for shard in shards.values():
        number_of = len(shard.arrivals)
        begins = [since for name, since, _ in stops if name == shard.name]
        firsts = [chance.randrange(number_of) for _ in range(3) if number_of]
        firsts += [sum(arrival < since for arrival in shard.arrivals) - 1 for since in begins]
        for first in firsts:
            length = min(chance.choice((1, 1, 2, 5, 40)), 1 + number_of // 10)
            lost = set(range(max(first, 0), min(first + length, number_of)))
            shard.lost |= lost
            if chance.random() < 0.5:
                _make_even(shard, lost, chance)
        shard.landings = sorted(one for one in shard.landings if one[1] not in shard.lost)


def _lose_before(
    shards: dict[str, SimShard], stops: list[tuple[str, float, float]], chance: random.Random
) -> None:
    """Takes a message or two out of the sink that the consumer was past before its first stop."""
    for shard in shards.values():
        first = min((since for name, since, _ in stops if name == shard.name), default=0)
        passed = sum(arrival < first - 10 for arrival in shard.arrivals)
        if passed > 1:
            shard.lost |= {chance.randrange(passed - 1) for _ in range(2)}
            shard.landings = [one for one in shard.landings if one[1] not in shard.lost]


def _make_even(shard: SimShard, lost: set[int], chance: random.Random) -> None:
    """Lands others of the same minutes twice, so that the counts cancel."""
    for number in lost:
        others = [
            (at, other)
            for at, other in shard.landings
            if other not in shard.lost and shard.minute(other) == shard.minute(number)
        ]
        if others:
            at, other = chance.choice(others)
            shard.landings.append((min(at + chance.uniform(0, 2), END - 0.01), other))


def events(shard: SimShard) -> list[tuple[float, str, int]]:
    """Traces and landings in the order of their times: (time, side, message number)."""
    sent = [(at, "sent", number) for number, at in enumerate(shard.arrivals)]
    return list(heapq.merge(sent, [(at, "landed", number) for at, number in shard.landings]))
