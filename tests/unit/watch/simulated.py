"""Random histories of a stream's shards, message by message, and what really happened in them.

Independent of the code under test: nothing of `watch` is imported here. Times are minutes from
START. A consumer flushes what it read every few minutes, within its capacity; a KCL-like one begins
a child when the parent is drained.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

HOURS = 24
END = HOURS * 60.0
KINDS = (
    *("steady", "burst", "trickle", "idle night", "late flush", "reshard"),
    *("stop", "restart", "rewind"),
)
HEALTHY = ("steady", "burst", "trickle", "idle night", "late flush", "reshard")


@dataclass
class SimShard:
    """One shard: its messages (arrival, sent_at), its landings (time, message number)."""

    name: str
    parent: str | None = None
    opened: float = 0.0
    closed: float = END
    arrivals: list[float] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    landings: list[tuple[float, int]] = field(default_factory=list)


@dataclass
class History:
    """A stream's day. `stops`: (shard, begin, end of the consumer's rest) as they were planted."""

    kind: str
    shards: dict[str, SimShard]
    stops: list[tuple[str, float, float]]


def history(seed: int) -> History:
    """The history of that number; the kinds take turns."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    kind = KINDS[seed % len(KINDS)]
    shards = _shards(kind, chance)
    for shard in shards.values():
        _produce(shard, kind, chance)
    stops = _stops(kind, shards, chance)
    for shard in shards.values():
        mine = [(since, until) for name, since, until in stops if name == shard.name]
        _consume(shard, shards, kind, mine, chance)
    return History(kind, shards, stops if kind == "stop" else [])


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
            if arrival < until and first_landed.get(number, END + 1) >= until
        ]
        if waiting:
            yield name, min(waiting), until


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
    landed = {number for _, number in parent.landings}
    if len(landed) < len(parent.arrivals):
        return END
    return max(shard.opened, max((at for at, _ in parent.landings), default=shard.opened))


def events(shard: SimShard) -> list[tuple[float, str, int]]:
    """Traces and landings in the order of their times: (time, side, message number)."""
    sent = [(at, "sent", number) for number, at in enumerate(shard.arrivals)]
    return list(heapq.merge(sent, [(at, "landed", number) for at, number in shard.landings]))
