"""Statistics add up: of whatever parts a time is put together, and against cells one by one."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil, log2
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import pytest

from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.window import Window
from shardaudit.store.audits import CELL_SUMS
from shardaudit.store.read_deliveries import (
    DELIVERED,
    Deliveries,
    Delivery,
    latency_line,
    read_deliveries,
)
from tests.page_warehouse import Row, write_rows

HOUR, BUCKET = timedelta(hours=1), timedelta(minutes=20)
START = datetime(2026, 11, 1, 22, tzinfo=UTC)  # over midnight
ALL = 15  # buckets
SHARDS = ("s1", "s2", "s3")


def settings(folder: Path) -> Settings:
    place = {"path": str(folder)}
    events = {"stream_name": "e", "bucket": BUCKET, "traces": place, "sink": place}
    return Settings.model_validate({"warehouse": str(folder), "streams": {"events": events}})


def span(first: int, last: int) -> Window:
    return Window(START + first * BUCKET, START + last * BUCKET)


def audit(name: str, first: int, last: int, looked: int, **more: object) -> Row:
    window = span(first, last)
    times = {"window_start": window.start, "window_end": window.end}
    as_of = START + timedelta(days=1, seconds=looked)
    row = {"audit_id": name, "stream": "events", "as_of": as_of, "status": "published"}
    return {**row, **times, **more}


def cell(name: str, shard_id: str, number: int, random: Random) -> Row:
    """The audit's cell of that bucket, with counts of any size."""
    window = span(number, number + 1)
    times = {"bucket_start": window.start, "bucket_end": window.end}
    key = {"audit_id": name, "stream": "events", "shard_id": shard_id}
    counts = {name: random.randrange(9) for name in CELL_SUMS}
    return {**key, **times, **counts, "verdict": random.choice(("ok", "inconclusive"))}


def ledger(shard_id: str, number: int, random: Random) -> Row:
    """What a batch of the sink added to a cell's latencies, or took away."""
    start = span(number, number + 1).start
    key = {"stream": "events", "side": "sink", "shard_id": shard_id, "bucket_start": start}
    bins = [random.randrange(-1, 5) for _ in range(LATENCY_BINS)]
    return {**key, "sent_day": start.date(), "latency_counts": bins}


def written(folder: Path, random: Random) -> tuple[list[Row], list[Row], list[Row]]:
    """Audits that look at each other's time, at some of it nobody; cells; the ledger."""
    spans = [sorted(random.sample(range(ALL), 2)) for _ in range(6)]
    audits = [
        audit(f"a{n}", first, last, random.randrange(9)) for n, (first, last) in enumerate(spans)
    ]
    audits.append(audit("rejected", 0, ALL, 99, status="rejected"))
    cells = [
        cell(str(one["audit_id"]), shard_id, number, random)
        for one in audits
        for shard_id in SHARDS
        for number in range(ALL)  # some outside of what it looked at
        if random.random() < 0.8
    ]
    added = [ledger(shard_id, n % ALL, random) for shard_id in SHARDS for n in range(2 * ALL)]
    others = [{**row, "side": "traces"} for row in added]
    for table, rows in ((AUDITS, audits), (CELLS, cells), (FINGERPRINTS, added + others)):
        write_rows(folder, table, rows)
    return audits, cells, added


def one_by_one(audits: list[Row], cells: list[Row], number: int) -> list[Row]:
    """The cells of a bucket, as its newest audit saw them."""
    start = span(number, number + 1).start
    over_it = [
        one
        for one in audits
        if one["status"] == "published" and one["window_start"] <= start < one["window_end"]  # type: ignore[operator] # times of `audit`
    ]
    newest = max(over_it, key=lambda one: (one["as_of"], one["audit_id"]), default={})
    key = (newest.get("audit_id"), start)
    return [one for one in cells if (one["audit_id"], one["bucket_start"]) == key]


def summed(cells: list[Row], added: list[Row], *, audited: timedelta) -> Delivery:
    counts = Counter(dict.fromkeys(DELIVERED, 0))
    bins = [0] * LATENCY_BINS
    for row in cells:
        counts.update({name: int(str(row[name])) for name in CELL_SUMS})
        counts.update(cells=1, inconclusive=int(row["verdict"] == "inconclusive"))
    for row in added:
        bins = [old + new for old, new in zip(bins, row["latency_counts"], strict=True)]  # type: ignore[call-overload] # a list of `ledger`
    return Delivery(audited, counts, tuple(bins))


@pytest.mark.parametrize("seed", range(4))
def test_each_part_is_that_of_its_cells_and_a_time_the_sum_of_its_parts(
    tmp_path: Path, seed: int
) -> None:
    random, asked = Random(seed), settings(tmp_path)  # noqa: S311 - a seed, to see it again
    audits, cells, added = written(tmp_path, random)
    newest = {n: rows for n in range(ALL) if (rows := one_by_one(audits, cells, n))}
    known = [span(n, n + 1).start for n in newest]
    seen = [row for row in added if row["bucket_start"] in known]
    found = read_deliveries(asked, "events", span(0, ALL))
    assert found.buckets == {
        start: summed(
            newest[n], [row for row in seen if row["bucket_start"] == start], audited=BUCKET
        )
        for n, start in zip(newest, known, strict=True)
    }
    of_shards = {
        name: [row for rows in newest.values() for row in rows if row["shard_id"] == name]
        for name in SHARDS
    }
    assert found.shards == {
        name: summed(
            rows, [row for row in seen if row["shard_id"] == name], audited=len(rows) * BUCKET
        )
        for name, rows in of_shards.items()
    }
    unknown = sum((window.end - window.start for window in found.unaudited), timedelta(0))
    assert found.whole.audited == len(newest) * BUCKET == ALL * BUCKET - unknown
    assert sum(found.hours.values(), start=Delivery()) == found.whole
    cuts = [0, *sorted(random.sample(range(1, ALL), 3)), ALL]
    parts = [read_deliveries(asked, "events", span(*ends)) for ends in pairwise(cuts)]
    assert sum((part.whole for part in parts), start=Delivery()) == found.whole


def test_hours_that_nobody_looked_at_are_unknown_and_not_zero(tmp_path: Path) -> None:
    write_rows(tmp_path, AUDITS, [audit("night", 3, 5, 0), audit("without a cell", 6, 9, 0)])
    random = Random(0)  # noqa: S311 - a seed, to see it again
    write_rows(tmp_path, CELLS, [cell("night", "s1", n, random) for n in (3, 4)])
    found = read_deliveries(settings(tmp_path), "events", span(0, 9))
    lines = [of.line(f"{at:%H}", sample_rate=1) for at, of in found.hours.items()]
    assert [(line.name, line.audited_s, line.counts is None) for line in lines] == [
        ("22", 0, True),
        ("23", 2400, False),
        ("00", 0, True),
    ]
    assert (lines[0].sent_per_s, lines[0].latency, lines[0].rates) == (None, None, {})
    assert found.unaudited == [span(0, 3), span(5, 9)]


def test_a_stream_without_an_audit_is_unknown(tmp_path: Path) -> None:
    found = read_deliveries(settings(tmp_path), "events", span(0, 3))
    assert found == Deliveries(span(0, 3), {}, {})
    assert (found.whole.audited, found.unaudited) == (timedelta(0), [span(0, 3)])


@pytest.mark.parametrize(
    ("bins", "ends", "mean"),
    [
        ({0: 10}, (1, 1, 1, 1, 1), (0, 1)),
        ({1: 50, 2: 40, 3: 9, 9: 1}, (2, 4, 8, 512, 512), (4.22, 8.44)),
        ({1: 50, 2: 40, 3: 9, 9: 1, 12: -1}, (2, 4, 8, 512, 512), (4.22, 8.44)),
        ({3: 1, LATENCY_BINS - 1: 1}, (8, None, None, None, None), (2 + 2**19, None)),
    ],
)
def test_a_latency_is_the_upper_end_of_its_bin_and_a_mean_lies_between(
    bins: dict[int, int], ends: tuple[float | None, ...], mean: tuple[float, float | None]
) -> None:
    line = latency_line([bins.get(i, 0) for i in range(LATENCY_BINS)])
    assert line is not None
    assert (line.p50, line.p90, line.p99, line.p999, line.max) == ends
    assert line.mean_between == pytest.approx(mean)


@pytest.mark.parametrize("seed", range(20))
def test_moments_of_latencies_lie_between_what_their_bins_say(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a seed, to see it again
    widest = random.randrange(1, LATENCY_BINS - 1)
    latencies = [2 ** random.uniform(-3, widest) for _ in range(random.choice((1, 2, 50)))]
    numbers = [max(0, ceil(log2(one))) for one in latencies]
    line = latency_line([numbers.count(i) for i in range(LATENCY_BINS)])
    assert line is not None
    for told, exact in (
        (line.mean_between, fmean(latencies)),
        (line.deviation_between, pstdev(latencies)),
    ):
        least, most = told
        assert most is not None
        assert least - 1e-6 <= exact <= most + 1e-6


def test_a_deviation_is_no_wider_than_its_bins_make_it() -> None:
    line = latency_line([0, 0, 50, 0, 50, *[0] * (LATENCY_BINS - 5)])  # (2, 4] and (8, 16] s
    assert line is not None
    assert line.deviation_between == pytest.approx((2, 7))  # of 4 and 8, of 2 and 16


def test_counts_that_are_all_inconclusive_make_no_share() -> None:
    counts = dict.fromkeys(DELIVERED, 0) | {"cells": 2, "inconclusive": 2, "sent": 9}
    line = Delivery(timedelta(seconds=60), counts).line("s1", sample_rate=0.5)
    assert (set(line.shares.values()), line.rates) == ({None}, {})


def test_what_is_told_of_a_time_is_per_second_of_what_was_audited() -> None:
    counts = dict.fromkeys(DELIVERED, 0) | {"cells": 1}
    counts |= {"sent": 600, "landed": 590, "matched": 580, "missing": 20, "untraced": 20}
    line = Delivery(timedelta(seconds=60), counts).line("s1", sample_rate=0.1)
    assert (line.sent_per_s, line.landed_per_s) == (10, 590 / 60)
    assert line.shares == {"missing": 20 / 600, "duplicated": 0, "untraced": 20 / 600}
    assert line.rates["missing"].between == pytest.approx((0.02169, 0.05093), abs=1e-5)
    assert Delivery(timedelta(seconds=60), counts).line("s1", sample_rate=1).rates == {}
