"""Random small histories, aimed at the edges: equal times, odd numbers, odd ids.

`random_terms` draws what a whole stream shares (as_of, durations, floors, which faults may occur);
`random_case` draws one history of 1 to 4 shards under them. Many cases are put into one stream:
`Case.history` gives shards and ids of its own to each. Not by hypothesis: nothing is shrunk here,
and it takes a hundred times as long.
"""

import uuid
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from tests.cases import PAUSING_SHARD, Case, Terms

FAULTS = frozenset(
    {"lost", "doubled", "untraced", "moved", "stalled", "silent", "late", "unnumbered"}
    | {"backfilled", "buffered", "untimed", "fresh", "pauses", "nights", "outages"}
)
DROPPED = frozenset({"dropped", "late", "fresh", "buffered", "backfilled"})
PALETTES = (
    FAULTS | {"dark"},
    (FAULTS - {"silent", "stalled"}) | {"dark"},
    FAULTS - {"silent", "stalled", "lost", "doubled"},
    frozenset({"late", "unnumbered", "doubled", "buffered", "lost", "gains"}),
    frozenset({"late", "moved", "lost", "doubled", "untimed", "placeless"}),
    frozenset({"backfilled", "lost", "silent", "stalled", "late", "pauses", "nights", "outages"}),
)
CASES_PER_PALETTE = 110  # of six: 660 cases
HOUR_MS = 3_600_000

# Neighbours of every limit that a number is wrongly squeezed through: one digit, a double,
# a bigint, a decimal(38), what Kinesis gives today, what its API allows.
FIRST_NUMBERS = (
    0, 8, 98, 2**53 - 2, 2**63 - 3, 10**19 - 2, 10**38 - 3, 2**186 - 4, 10**56 - 2, 10**128 - 3,
    10**129 - 400,
)  # fmt: skip

ODD_IDS = (
    "", " ", "a", "A", "a ", "é", "e\u0301", "'", '"', ";--", "%s", "\\", "\\N", "\n", "\r\n", "\t",
    "\x00", "\u2028", "\u0085", "\ufeff", "😀", "👩‍👩‍👧", "null", "None", "nan", "0", "00", "1e3",
    "{}", "$.a", "`", "_sa_", "../..", "x" * 980, "😀" * 240,
)  # fmt: skip


def _seeded(seed: object) -> Random:
    """The same numbers for the same seed, in every process."""
    return Random(str(seed))  # noqa: S311 - to be repeated, not to be secret


def random_terms(seed: int, *, faults: frozenset[str] = FAULTS) -> Terms:
    """The terms of a stream; `as_of` sits on an edge of the grace or the retention, or near one."""
    random = _seeded(seed)
    buckets = random.randint(1, 8)
    bucket_ms = random.choice([10_000, 60_000, 300_000])
    grace_ms = random.choice([30_000, 120_000, 600_000])
    retention_ms = random.choice([1_200_000, 7_200_000, 86_400_000, 604_800_000])
    edges = [-bucket_ms, 0, grace_ms, grace_ms - bucket_ms // 2, 3 * grace_ms]
    edges += [retention_ms // 10, retention_ms - buckets * bucket_ms // 2, retention_ms + 1]
    return Terms(
        buckets=buckets,
        bucket_ms=bucket_ms,
        grace_ms=grace_ms,
        retention_ms=retention_ms,
        as_of_ms=random.choice(edges) + random.choice([0, -1, 1]),
        floor=random.choice([0.99, 0.5, 0.0, 1.0, 2 / 3]),
        tolerance=random.choice([0.0, 0.0, 0.25, 0.5]),
        sink_has_numbers=random.choice([True, True, True, False]),
        faults=faults,
        batches=2 if "gains" in faults else random.randint(1, 2),
    )


def _message_id(random: Random) -> str:
    """Any text that a producer may use as an id, up to 1 KiB."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(ODD_IDS)
    if kind == 1:
        return "".join(_character(random) for _ in range(random.randint(0, 8)))
    return str(uuid.UUID(int=random.getrandbits(128)) if kind == 2 else random.randint(0, 99))


def _character(random: Random) -> str:
    """Of any plane; surrogates are none."""
    last = random.choice([0x7F, 0xFF, 0xD7FF, 0xFFFF, 0x10FFFF])
    code = random.randint(0, last)
    return chr(code) if not 0xD800 <= code <= 0xDFFF else chr(code - 0x800)


def _sent_ms(random: Random, of: Terms) -> int:
    """A time in or just around the window, often on an edge of something."""
    if random.randrange(3):
        return random.randint(0, of.end_ms - 1)
    as_of = of.end_ms + of.as_of_ms
    edges: list[int] = [k * of.bucket_ms for k in range(of.buckets + 1)]
    edges += [as_of - of.grace_ms, as_of - of.retention_ms, as_of - of.retention_ms // 10]
    edges += [as_of - (1000 << i) for i in range(22)]
    near = [edge + d for edge in edges for d in (-1, 0, 1)]
    around = {ms for ms in near if -of.bucket_ms <= ms < of.end_ms + of.bucket_ms}
    return random.choice(sorted(around))


def _latency_ms(random: Random, of: Terms, sent_ms: int) -> int:
    """Mostly small, else on the edge of a bin, or landing on an edge of as_of."""
    kind = random.randrange(4) if "late" in of.faults else 0
    if kind < 2:
        return random.choice([0, 500, 1000, 1001, 2000, 9000])
    if kind == 2:
        return random.choice([(1000 << i) + d for i in range(15) for d in (0, 1)])
    as_of = of.end_ms + of.as_of_ms
    landings: list[int] = [as_of, as_of - of.grace_ms, as_of - of.retention_ms // 10]
    landings += [as_of - (1000 << i) for i in range(12)]
    on_edge = [at + d - sent_ms for at in landings for d in (-1, 0, 1)]
    return random.choice([x for x in on_edge if x > -60_000] or [0])


@dataclass(frozen=True, slots=True)
class _Outage:
    """A consumer that stopped and resumed: then what had waited lands at ten times the speed."""

    stops_ms: int = 0
    resumes_ms: int = 0

    def landed_ms(self, ms: int) -> int:
        """When what would have landed then does."""
        waited = self.stops_ms <= ms < self.resumes_ms
        return self.resumes_ms + (ms - self.stops_ms) // 10 if waited else ms


def _outage(random: Random, of: Terms) -> _Outage:
    """One that began in the window, and is over by `as_of`; or none."""
    stops_ms = random.randint(-of.bucket_ms, of.end_ms - 1)
    longest = (of.end_ms + of.as_of_ms - stops_ms) * 10 // 11
    if longest < 1 or random.randint(0, 3):
        return _Outage()
    return _Outage(stops_ms, stops_ms + random.randint(1, longest))


@dataclass(frozen=True, slots=True)
class _Shard:
    """How a shard numbers its records and whether its consumer is alive."""

    first: int
    step: int
    silent: bool
    stops_after: int | None  # the index of the last record that lands
    unnumbered: bool
    sink_numbers: int  # of a hundred rows so many have their number
    untimed: int  # of a hundred rows so many do not say when they landed
    outage: _Outage

    def number(self, index: int) -> str | None:
        return None if self.unnumbered else str(self.first + self.step * index)


def _shards(random: Random, of: Terms) -> list[_Shard]:
    def one() -> _Shard:
        stops = "stalled" in of.faults and random.randint(0, 3) == 0
        return _Shard(
            first=random.choice(FIRST_NUMBERS),
            step=random.choice([1, 1, 3]),
            silent="silent" in of.faults and random.randint(0, 7) == 0,
            stops_after=random.randint(0, 25) if stops else None,
            unnumbered="unnumbered" in of.faults and random.randint(0, 15) == 0,
            sink_numbers=random.choice([100] * 6 + [0, 50]) if "unnumbered" in of.faults else 100,
            untimed=random.choice([0] * 6 + [100, 30]) if "untimed" in of.faults else 0,
            outage=_outage(random, of) if "outages" in of.faults else _Outage(),
        )

    return [one() for _ in range(random.randint(1, 4))]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One acknowledged put: on which shard, its number and its place in the shard's order.

    `later_ms`: by how much its `sent_at` is later than that of the first.
    """

    shard: int
    number: str | None
    index: int
    later_ms: int = 0


def _attempts(random: Random, of: Terms, shards: list[_Shard], index: int) -> list[_Attempt]:
    """Up to three attempts, on one shard or several; numbers may be shared with another id."""
    home = random.randint(0, len(shards) - 1)
    more = random.choice([0, 0, 0, 1, 2]) if of.faults & {"doubled", "moved"} else 0
    places = [home] + [random.randint(0, len(shards) - 1) for _ in range(more)]
    aggregated = random.randint(0, 9) == 0  # one record with several ids in it
    indices = accumulate(
        # The last comes to a place that few consumers have come to.
        [max(index - aggregated, 0)] + [random.choice([0, 1, 2, 40]) for _ in places[1:]]
    )
    known = "unnumbered" not in of.faults or random.randint(0, 19) > 0
    fresh = "fresh" in of.faults and random.randint(0, 2) == 0
    step_ms = random.choice([1, of.bucket_ms, 2 * of.bucket_ms]) if fresh else 0
    return [
        _Attempt(place, shards[place].number(at) if known else None, at, tries * step_ms)
        for tries, (place, at) in enumerate(zip(places, indices, strict=True))
    ]


def _message(
    random: Random, of: Terms, shards: list[_Shard], index: int, sent_ms: int
) -> tuple[list[_Attempt], list[tuple[_Attempt, int]]]:
    """The attempts that were traced, and those that landed with the time they did."""
    attempts = _attempts(random, of, shards, index)
    odd = random.randint(0, 15)
    # To a row in a minute of its own nothing leads but a trace there.
    is_fresh = any(a.later_ms for a in attempts)
    traced = [a for a in attempts if random.randint(0, 5) > 0 or is_fresh] or attempts[:1]
    if odd == 0 and "untraced" in of.faults:
        traced, attempts = [], [replace(a, later_ms=0) for a in attempts]
    least = 0 if "lost" in of.faults and odd in {1, 2, 3} else 1
    most = 3 if "doubled" in of.faults and odd in {0, 4, 5, 6} else 1
    choice = attempts if "moved" in of.faults or not traced else traced
    count = random.randint(least, most)
    picks = random.choices(choice, k=count)
    landed = [
        (a, shards[a.shard].outage.landed_ms(sent_ms + _latency_ms(random, of, sent_ms)))
        for a in picks
        if _lands(a, shards)
    ]
    return traced + traced[:1] * random.choice([0, 0, 0, 1]), landed


def _lands(attempt: _Attempt, shards: list[_Shard]) -> bool:
    shard = shards[attempt.shard]
    return not shard.silent and (shard.stops_after is None or attempt.index <= shard.stops_after)


def random_case(random: Random, of: Terms) -> Case:
    """One history under the terms: 1 to 4 shards and up to 30 messages; or one more that paused."""
    case = _case(random, of)
    if "pauses" not in of.faults or random.randint(0, 3):
        return case
    is_night = "nights" in of.faults and random.randint(0, 1)
    times = _before_a_night(random) if is_night else _before_a_pause(random, of)
    outage = _Outage()
    if "outages" in of.faults and random.randint(0, 2) == 0:
        outage = _Outage(*sorted(hour * HOUR_MS for hour in random.sample(range(-29, -2), 2)))
    sent = [(f"hourly {i}", str(10_000 + i), ms) for i, ms in enumerate(times)]
    traces = tuple((name, PAUSING_SHARD, number, ms, 1) for name, number, ms in sent)
    rows = tuple(
        (
            *(name, PAUSING_SHARD, number if of.sink_has_numbers else None, ms),
            *(outage.landed_ms(ms + 900), 1, False),
        )
        for name, number, ms in sent
    )
    return replace(case, traces=case.traces + traces, rows=case.rows + rows)


def _case(random: Random, of: Terms) -> Case:
    shards = _shards(random, of)
    count = random.randint(0, 30)
    ids = list(dict.fromkeys(_message_id(random) for _ in range(count)))
    times = [_sent_ms(random, of) for _ in ids]
    if random.random() < 0.5:
        times.sort()  # numbers follow time, as they mostly do
    traces, rows = [], []
    for index, (message_id, sent_ms) in enumerate(zip(ids, times, strict=True)):
        traced, landed = _message(random, of, shards, index, sent_ms)
        told_in: dict[_Attempt, int] = {}  # the batch with its trace, where that leads to its rows
        for a in traced:
            batch = random.randint(1, of.batches)
            if any(other.later_ms for other in traced):
                told_in[a] = min(batch, told_in.get(a, batch))
            traces.append((message_id, a.shard, a.number, sent_ms + a.later_ms, batch))
        for a, landed_ms in landed:
            shard = shards[a.shard]
            has_number = random.randint(1, 100) <= shard.sink_numbers
            number = a.number if of.sink_has_numbers and has_number else None
            landed_at = _told_ms(random, shard, landed_ms + a.later_ms)
            batch = random.randint(told_in.get(a, 1), of.batches)
            at_ms = sent_ms + a.later_ms
            rows.append((message_id, a.shard, number, at_ms, landed_at, batch, False))
        if "backfilled" in of.faults and traced and random.randint(0, 2 + 9 * len(landed)) == 0:
            number = traced[0].number if of.sink_has_numbers else None
            at_ms = sent_ms + traced[0].later_ms
            own_ms = at_ms + _latency_ms(random, of, at_ms)
            batch = random.randint(told_in.get(traced[0], 1), of.batches)
            rows.append((message_id, traced[0].shard, number, at_ms, own_ms, batch, True))
    acked = _acknowledged(random, of, traces) if "buffered" in of.faults else ()
    dropped = _dropped(random, of, rows) if "dropped" in of.faults else frozenset()
    lacks = _placeless(random, rows) if "placeless" in of.faults else ()
    idle = random.randint(0, 5) == 0
    return Case(
        tuple(traces), tuple(rows), idle_shard=idle, acked=acked, dropped=dropped, lacks=lacks
    )


def _placeless(
    random: Random, rows: list[tuple[str, int, str | None, int, int | None, int, bool]]
) -> tuple[tuple[int, str], ...]:
    """What some rows do not say of where they belong. They say when they landed."""
    share = random.choice([0, 30, 30, 100])
    return tuple(
        (place, random.choice(["shard_id", "sent_at", "shard_id sent_at"]))
        for place, row in enumerate(rows)
        if row[4] is not None and random.randint(1, 100) <= share
    )


def _told_ms(random: Random, shard: _Shard, landed_ms: int) -> int | None:
    """When the sink says that it landed."""
    if random.randint(1, 100) <= shard.untimed:
        return None
    # Alone on its shard it would be a time that is cut to hours: the oracle knows of none.
    return landed_ms + (landed_ms % (HOUR_MS // 2) == 0)


def _dropped(
    random: Random, of: Terms, rows: list[tuple[str, int, str | None, int, int | None, int, bool]]
) -> frozenset[int]:
    """What a lake deletes: nothing, all, what is old, or some. Copies of one time go together."""
    what = random.choice(["nothing", "all", "all", "old", "some"])
    chosen = {
        (name, landed_ms)
        for name, _, _, sent_ms, landed_ms, _, _ in rows
        if what == "all"
        or (what == "old" and sent_ms < of.end_ms // 2)
        or (what == "some" and random.random() < 0.5)
    }
    return frozenset(
        place
        for place, (name, _, _, _, landed_ms, _, _) in enumerate(rows)
        if landed_ms is not None and (name, landed_ms) in chosen
    )


def _before_a_pause(random: Random, of: Terms) -> list[int]:
    """A message an hour until some hours before the window, on both sides; or again within it."""
    first = random.choice([-30, -30, -192])  # a new shard's silence is another
    hours = range(first, -random.randint(3, 5))
    again = [of.end_ms - 1] if random.randint(0, 2) == 0 else []
    return [hour * HOUR_MS + 1 for hour in hours] + again


def _before_a_night(random: Random) -> list[int]:
    """A message an hour by day, and the window in the night; or one that began hours too early."""
    days = random.choice([2, 2, 15])
    dusk, dawn = 24 - random.randint(1, 6), random.randint(2, 8)
    early = random.choice([0, 0, 5])
    by_day = [hour for hour in range(-24 * days, -early) if dawn <= hour % 24 < dusk]
    return [hour * HOUR_MS + 1 for hour in by_day]


def _acknowledged(
    random: Random, of: Terms, traces: list[tuple[str, int, str | None, int, int]]
) -> tuple[tuple[str, int, str | None, int], ...]:
    """When some attempts were acknowledged: soon, or by a producer that held the message back.

    Or after the ingest of its trace, by a clock that is ahead.
    """
    as_of = of.end_ms + of.as_of_ms
    edges = [as_of - of.retention_ms + d for d in (-1, 0, 1)]
    found = {}
    for message_id, shard, number, sent_ms, _ in traces:
        ahead = (as_of + 1, as_of + 20 * HOUR_MS)
        late = [at for at in (*edges, as_of, as_of - 60_000, *ahead) if at > sent_ms]
        found[message_id, shard, number] = random.choice([None, sent_ms - 500, sent_ms + 20, *late])
    return tuple((*key, ms) for key, ms in found.items() if ms is not None)


def random_cases(of: Terms, *, seed: int, count: int) -> list[Case]:
    """So many histories under the terms: the same for the same seed, in every process."""
    return [random_case(_seeded(f"{seed}/{n}"), of) for n in range(count)]


def cases_of_palette(number: int, *, seed: int) -> tuple[Terms, list[Case]]:
    """What one audit of the six is of: a palette's terms, and its cases."""
    of = random_terms(seed + number, faults=PALETTES[number])
    return of, random_cases(of, seed=seed + number, count=CASES_PER_PALETTE)
