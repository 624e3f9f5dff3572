"""Random small histories for hypothesis, aimed at the edges: equal times, odd numbers, odd ids.

`terms()` draws what a whole stream shares (as_of, durations, floors, which faults may occur);
`cases(terms)` draws one history of 1 to 4 shards under them. Many cases are put into one stream:
`Case.history` gives shards and ids of its own to each.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.cases import PAUSING_SHARD, Case, Terms

T = TypeVar("T")

FAULTS = frozenset(
    {"lost", "doubled", "untraced", "moved", "stalled", "silent", "late", "unnumbered"}
    | {"backfilled", "buffered", "untimed", "fresh", "pauses"}
)
DROPPED = frozenset({"dropped", "late", "fresh", "buffered", "backfilled"})
PALETTES = (
    FAULTS,
    FAULTS - {"silent", "stalled"},
    FAULTS - {"silent", "stalled", "lost", "doubled"},
    frozenset({"late", "unnumbered", "doubled", "buffered"}),
    frozenset({"late", "moved", "untimed"}),
    frozenset({"backfilled", "lost", "silent", "stalled", "late", "pauses"}),
)
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


@st.composite
def terms(draw: DrawFn, *, faults: frozenset[str] = FAULTS) -> Terms:
    """The terms of a stream; `as_of` sits on an edge of the grace or the retention, or near one."""
    buckets = draw(st.integers(1, 8))
    bucket_ms = draw(st.sampled_from([10_000, 60_000, 300_000]))
    grace_ms = draw(st.sampled_from([30_000, 120_000, 600_000]))
    retention_ms = draw(st.sampled_from([1_200_000, 7_200_000, 86_400_000, 604_800_000]))
    edge = draw(
        st.sampled_from(
            [
                -bucket_ms,
                0,
                grace_ms,
                grace_ms - bucket_ms // 2,
                3 * grace_ms,
                retention_ms // 10,
                retention_ms - buckets * bucket_ms // 2,
                retention_ms + 1,
            ]
        )
    )
    return Terms(
        buckets=buckets,
        bucket_ms=bucket_ms,
        grace_ms=grace_ms,
        retention_ms=retention_ms,
        as_of_ms=edge + draw(st.sampled_from([0, -1, 1])),
        floor=draw(st.sampled_from([0.99, 0.5, 0.0, 1.0, 2 / 3])),
        tolerance=draw(st.sampled_from([0.0, 0.0, 0.25, 0.5])),
        sink_has_numbers=draw(st.sampled_from([True, True, True, False])),
        faults=faults,
        batches=draw(st.integers(1, 2)),
    )


def message_ids() -> SearchStrategy[str]:
    """Any text that a producer may use as an id, up to 1 KiB."""
    return st.one_of(
        st.sampled_from(ODD_IDS),
        st.text(max_size=8),
        st.uuids().map(str),
        st.integers(0, 99).map(str),
    )


def sent_times(of: Terms) -> SearchStrategy[int]:
    """Times in and just around the window, often on an edge of something."""
    as_of = of.end_ms + of.as_of_ms
    edges = [k * of.bucket_ms for k in range(of.buckets + 1)]
    edges += [as_of - of.grace_ms, as_of - of.retention_ms, as_of - of.retention_ms // 10]
    edges += [as_of - 1000 * 2**i for i in range(22)]
    near = [edge + d for edge in edges for d in (-1, 0, 1)]
    around = [ms for ms in near if -of.bucket_ms <= ms < of.end_ms + of.bucket_ms]
    inside = st.integers(0, of.end_ms - 1)
    return st.one_of(inside, inside, st.sampled_from(sorted(set(around))))


def latencies(of: Terms, sent_ms: int) -> SearchStrategy[int]:
    """Latencies: mostly small, else on the edge of a bin, or landing on an edge of as_of."""
    small = st.sampled_from([0, 500, 1000, 1001, 2000, 9000])
    if "late" not in of.faults:
        return small
    as_of = of.end_ms + of.as_of_ms
    bins = [1000 * 2**i + d for i in range(15) for d in (0, 1)]
    landings = [as_of, as_of - of.grace_ms, as_of - of.retention_ms // 10]
    landings += [as_of - 1000 * 2**i for i in range(12)]
    on_edge = [at + d - sent_ms for at in landings for d in (-1, 0, 1)]
    return st.one_of(
        small,
        small,
        st.sampled_from(bins),
        st.sampled_from([x for x in on_edge if x > -60_000] or [0]),
    )


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

    def number(self, index: int) -> str | None:
        return None if self.unnumbered else str(self.first + self.step * index)


@st.composite
def _shards(draw: DrawFn, of: Terms) -> list[_Shard]:
    def one() -> _Shard:
        stops = "stalled" in of.faults and draw(st.integers(0, 3)) == 0
        return _Shard(
            first=draw(st.sampled_from(FIRST_NUMBERS)),
            step=draw(st.sampled_from([1, 1, 3])),
            silent="silent" in of.faults and draw(st.integers(0, 7)) == 0,
            stops_after=draw(st.integers(0, 25)) if stops else None,
            unnumbered="unnumbered" in of.faults and draw(st.integers(0, 15)) == 0,
            sink_numbers=draw(st.sampled_from([100] * 6 + [0, 50]))
            if "unnumbered" in of.faults
            else 100,
            untimed=draw(st.sampled_from([0] * 6 + [100, 30])) if "untimed" in of.faults else 0,
        )

    return [one() for _ in range(draw(st.integers(1, 4)))]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One acknowledged put: on which shard, its number and its place in the shard's order.

    `later_ms`: by how much its `sent_at` is later than that of the first.
    """

    shard: int
    number: str | None
    index: int
    later_ms: int = 0


@st.composite
def _attempts(draw: DrawFn, of: Terms, shards: list[_Shard], index: int) -> list[_Attempt]:
    """Up to three attempts, on one shard or several; numbers may be shared with another id."""
    home = draw(st.integers(0, len(shards) - 1))
    more = draw(st.sampled_from([0, 0, 0, 1, 2])) if of.faults & {"doubled", "moved"} else 0
    places = [home] + [draw(st.integers(0, len(shards) - 1)) for _ in range(more)]
    aggregated = draw(st.integers(0, 9)) == 0  # one record with several ids in it
    indices = accumulate(
        # The last comes to a place that few consumers have come to.
        [max(index - aggregated, 0)] + [draw(st.sampled_from([0, 1, 2, 40])) for _ in places[1:]]
    )
    known = "unnumbered" not in of.faults or draw(st.integers(0, 19)) > 0
    fresh = "fresh" in of.faults and draw(st.integers(0, 2)) == 0
    step_ms = draw(st.sampled_from([1, of.bucket_ms, 2 * of.bucket_ms])) if fresh else 0
    return [
        _Attempt(place, shards[place].number(at) if known else None, at, tries * step_ms)
        for tries, (place, at) in enumerate(zip(places, indices, strict=True))
    ]


@st.composite
def _message(
    draw: DrawFn, of: Terms, shards: list[_Shard], index: int, sent_ms: int
) -> tuple[list[_Attempt], list[tuple[_Attempt, int]]]:
    """The attempts that were traced, and those that landed with the time they did."""
    attempts = draw(_attempts(of, shards, index))
    odd = draw(st.integers(0, 15))
    # To a row in a minute of its own nothing leads but a trace there.
    is_fresh = any(a.later_ms for a in attempts)
    traced = [a for a in attempts if draw(st.integers(0, 5)) > 0 or is_fresh] or attempts[:1]
    if odd == 0 and "untraced" in of.faults:
        traced, attempts = [], [replace(a, later_ms=0) for a in attempts]
    least = 0 if "lost" in of.faults and odd in {1, 2, 3} else 1
    most = 3 if "doubled" in of.faults and odd in {0, 4, 5, 6} else 1
    choice = attempts if "moved" in of.faults or not traced else traced
    count = draw(st.integers(least, most))
    picks = draw(st.lists(st.sampled_from(choice), min_size=count, max_size=count))
    landed = [(a, sent_ms + draw(latencies(of, sent_ms))) for a in picks if _lands(a, shards)]
    return traced + traced[:1] * draw(st.sampled_from([0, 0, 0, 1])), landed


def _lands(attempt: _Attempt, shards: list[_Shard]) -> bool:
    shard = shards[attempt.shard]
    return not shard.silent and (shard.stops_after is None or attempt.index <= shard.stops_after)


@st.composite
def cases(draw: DrawFn, of: Terms) -> Case:
    """One history under the terms: 1 to 4 shards and up to 30 messages; or one more that paused."""
    case = draw(_cases(of))
    if "pauses" not in of.faults or draw(st.integers(0, 3)):
        return case
    sent = [(name, str(10_000 + i), ms) for i, (name, ms) in enumerate(draw(_before_a_pause(of)))]
    traces = tuple((name, PAUSING_SHARD, number, ms, 1) for name, number, ms in sent)
    rows = tuple(
        (name, PAUSING_SHARD, number if of.sink_has_numbers else None, ms, ms + 900, 1, False)
        for name, number, ms in sent
    )
    return replace(case, traces=case.traces + traces, rows=case.rows + rows)


@st.composite
def _cases(draw: DrawFn, of: Terms) -> Case:
    shards = draw(_shards(of))
    count = draw(st.integers(0, 30))
    ids = draw(st.lists(message_ids(), min_size=count, max_size=count, unique=True))
    times = [draw(sent_times(of)) for _ in ids]
    if draw(st.booleans()):
        times.sort()  # numbers follow time, as they mostly do
    traces, rows = [], []
    for index, (message_id, sent_ms) in enumerate(zip(ids, times, strict=True)):
        traced, landed = draw(_message(of, shards, index, sent_ms))
        told_in: dict[_Attempt, int] = {}  # the batch with its trace, where that leads to its rows
        for a in traced:
            batch = draw(st.integers(1, of.batches))
            if any(other.later_ms for other in traced):
                told_in[a] = min(batch, told_in.get(a, batch))
            traces.append((message_id, a.shard, a.number, sent_ms + a.later_ms, batch))
        for a, landed_ms in landed:
            shard = shards[a.shard]
            has_number = draw(st.integers(1, 100)) <= shard.sink_numbers
            number = a.number if of.sink_has_numbers and has_number else None
            is_untimed = draw(st.integers(1, 100)) <= shard.untimed
            batch = draw(st.integers(told_in.get(a, 1), of.batches))
            at_ms, landed_at_ms = sent_ms + a.later_ms, landed_ms + a.later_ms
            landed_at = None if is_untimed else landed_at_ms
            rows.append((message_id, a.shard, number, at_ms, landed_at, batch, False))
        if "backfilled" in of.faults and traced and draw(st.integers(0, 2 + 9 * len(landed))) == 0:
            number = traced[0].number if of.sink_has_numbers else None
            at_ms = sent_ms + traced[0].later_ms
            own_ms = at_ms + draw(latencies(of, at_ms))
            batch = draw(st.integers(told_in.get(traced[0], 1), of.batches))
            rows.append((message_id, traced[0].shard, number, at_ms, own_ms, batch, True))
    acked = draw(_acknowledged(of, traces)) if "buffered" in of.faults else ()
    dropped = draw(_dropped(of, rows)) if "dropped" in of.faults else frozenset()
    idle = draw(st.integers(0, 5)) == 0
    return Case(tuple(traces), tuple(rows), idle_shard=idle, acked=acked, dropped=dropped)


@st.composite
def _dropped(
    draw: DrawFn, of: Terms, rows: list[tuple[str, int, str | None, int, int | None, int, bool]]
) -> frozenset[int]:
    """What a lake deletes: nothing, all, what is old, or some. Copies of one time go together."""
    what = draw(st.sampled_from(["nothing", "all", "all", "old", "some"]))
    chosen = {
        (name, landed_ms)
        for name, _, _, sent_ms, landed_ms, _, _ in rows
        if what == "all"
        or (what == "old" and sent_ms < of.end_ms // 2)
        or (what == "some" and draw(st.booleans()))
    }
    return frozenset(
        place
        for place, (name, _, _, _, landed_ms, _, _) in enumerate(rows)
        if landed_ms is not None and (name, landed_ms) in chosen
    )


@st.composite
def _before_a_pause(draw: DrawFn, of: Terms) -> list[tuple[str, int]]:
    """A message an hour until some hours before the window, on both sides; or again within it."""
    first = draw(st.sampled_from([-30, -30, -192]))  # a new shard's silence is another
    hours = range(first, -draw(st.integers(3, 5)))
    at = [hour * HOUR_MS + 1 for hour in hours]
    again = [of.end_ms - 1] if draw(st.integers(0, 2)) == 0 else []
    return [(f"hourly {i}", ms) for i, ms in enumerate((*at, *again))]


@st.composite
def _acknowledged(
    draw: DrawFn, of: Terms, traces: list[tuple[str, int, str | None, int, int]]
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
        times = st.sampled_from([None, sent_ms - 500, sent_ms + 20, *late])
        found[message_id, shard, number] = draw(times)
    return tuple((*key, ms) for key, ms in found.items() if ms is not None)


def sample(strategy: SearchStrategy[T], *, count: int, seed_number: int) -> list[T]:
    """As many examples as asked for: the same for the same seed, never shrunk."""
    examples: list[T] = []

    @seed(seed_number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        examples.append(example)

    # Hypothesis mixes in the constants of whatever modules happen to be imported: then a seed names
    # other cases in another process.
    with (
        patch.object(providers, "_get_local_constants", Constants),
        patch.object(providers, "CONSTANTS_CACHE", {}),
    ):
        collect()
    return examples[:count]
