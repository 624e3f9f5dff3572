"""Fingerprints: that they add up, and that Spark computes them without sorting the rows."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.ingest.rules.deliveries import JUDGED_DDL, UNPLACED
from shardaudit.ingest.rules.fingerprint import (
    fingerprint_sums,
    latency_bin,
    less_the_ledger,
    seen_by,
    sink_fingerprints,
    trace_fingerprints,
    trace_sums,
)
from shardaudit.model.tables.audit_tables import FINGERPRINTS, TRACES
from shardaudit.model.tables.table import LATENCY_BINS
from tests.builders import NOW, SHARD, T0, Line, sequence, shard, sink_row

Totals = dict[str, tuple[int, ...]]


def judged(spark: SparkSession, rows: Iterable[Line]) -> DataFrame:
    """Deliveries as `judged_sink_rows` gives them, all in the bucket of T0 unless told."""
    names = [part.split()[0] for part in JUDGED_DDL.split(", ")]
    values = [{"bucket_start": T0, "reason": None} | dict(row) for row in rows]
    return spark.createDataFrame([tuple(v.get(n) for n in names) for v in values], JUDGED_DDL)


def of_sink(
    spark: SparkSession, added: Iterable[Line], removed: Iterable[Line] | None = None
) -> DataFrame:
    gone = None if removed is None else judged(spark, removed)
    return sink_fingerprints(judged(spark, added), gone, now=NOW)


def halves(spark: SparkSession, ids: Iterable[str]) -> tuple[int, int, int]:
    """n, sum_lo, sum_hi, in Python."""
    rows = spark.createDataFrame([(i,) for i in ids], "id string")
    hashes = [row[0] for row in rows.select(F.xxhash64("id")).collect()]
    return len(hashes), sum(h & 0xFFFFFFFF for h in hashes), sum(h >> 32 for h in hashes)


def totals(row: Row) -> tuple[int, int, int]:
    return row.n, row.sum_lo, row.sum_hi


def test_sums_are_those_of_python_when_rows_repeat(spark: SparkSession) -> None:
    ids = ["a", "b", "b", "é", ""]
    [row] = of_sink(spark, [sink_row(message_id=i) for i in ids]).collect()
    assert totals(row) == halves(spark, ids)
    assert (row.added, row.location, row.sent_day) == (5, "sink", T0.date())
    rows = spark.createDataFrame([(i,) for i in ids], "id string")
    [core] = rows.agg(*fingerprint_sums(F.xxhash64("id"), F.lit(1))).collect()
    assert totals(core) == halves(spark, ids)


def test_columns_are_those_of_the_table_when_named(spark: SparkSession) -> None:
    names = [name for name in FINGERPRINTS.names if name not in {"batch_id", "stream", "side"}]
    sink = of_sink(spark, [sink_row()])
    traces = trace_fingerprints(trace_sums(spark.createDataFrame([], TRACES.ddl)))
    assert traces.columns == names
    assert sink.columns == [*names, "added", "bare_n"]
    kinds = {name: kind for name, kind, _ in FINGERPRINTS.columns}
    for found in (sink, traces):
        assert {n: k for n, k in found.dtypes if n in kinds} == {n: kinds[n] for n in names}


def test_greatest_number_is_the_longest_when_lengths_differ(spark: SparkSession) -> None:
    rows = [sink_row(sequence_number=number) for number in ("99", "100", "9", None)]
    [row] = of_sink(spark, rows).collect()
    assert row.max_sequence_number == "100"


def test_nothing_remains_when_all_is_removed_again(spark: SparkSession) -> None:
    rows = [sink_row(number) for number in range(5)]
    [row] = of_sink(spark, rows, rows).collect()
    assert totals(row) == (0, 0, 0)
    assert set(row.latency_counts) == {0}
    assert row.added == 5


def test_frontier_is_of_added_rows_alone_when_others_go(spark: SparkSession) -> None:
    before = sink_row(1, sequence_number="999999")
    both = of_sink(spark, [sink_row(0)], [before]).collect()
    alone = of_sink(spark, [], [before]).collect()
    assert [row.max_sequence_number for row in both] == [sink_row(0)["sequence_number"]]
    assert [(r.max_sequence_number, r.last_at, r.n, r.added) for r in alone] == [
        (None, None, -1, 0)
    ]


def test_rows_that_cannot_be_used_count_apart_when_added(spark: SparkSession) -> None:
    bad = {"reason": "bad", "bucket_start": None}
    rows = [sink_row(0), sink_row(1, **bad), sink_row(2, message_id=None, **bad)]
    found = {row.bucket_start is None: row for row in of_sink(spark, rows, rows).collect()}
    assert (found[True].n, found[True].added) == (2, 0)
    assert (found[True].shard_id, found[True].max_sequence_number) == (None, None)
    assert totals(found[False]) == (0, 0, 0)


def test_rows_that_lack_their_place_are_counted_together_without_a_shard(
    spark: SparkSession,
) -> None:
    rows = [sink_row(n, bucket_start=UNPLACED, shard_id=shard(n)) for n in range(2)]
    [row] = of_sink(spark, rows).collect()
    assert (row.shard_id, row.n, row.added) == (None, 2, 2)


@pytest.mark.parametrize("slow", [0, 1])
def test_a_cell_has_the_greatest_of_all_its_rows_however_long_they_took(
    spark: SparkSession, slow: int
) -> None:
    rows = [
        sink_row(n, sequence_number=sequence(n), landed_at=_landed(900 if n == slow else 1))
        for n in range(2)
    ]
    [row] = of_sink(spark, rows).select("*", F.unix_seconds("last_at").alias("at")).collect()
    assert row.max_sequence_number == sequence(1)
    assert row["at"] == int(_landed(900).timestamp())
    unnumbered = [line | {"sequence_number": None} for line in rows]
    at = F.unix_seconds("unnumbered_at").alias("at")
    [row] = of_sink(spark, unnumbered).select(at).collect()
    assert row["at"] == int(_landed(900).timestamp())


@pytest.mark.parametrize("ahead", [timedelta(hours=9), timedelta(days=3)])
@pytest.mark.parametrize("name", ["last_at", "unnumbered_at"])
def test_a_landing_in_the_future_had_landed_by_now_when_clocks_are_wrong(
    spark: SparkSession, ahead: timedelta, name: str
) -> None:
    without = {"sequence_number": None} if name == "unnumbered_at" else {}
    rows = [sink_row(0, **without), sink_row(1, landed_at=NOW + ahead, **without)]
    [row] = of_sink(spark, rows).select("*", F.unix_seconds(name).alias("at")).collect()
    assert row["at"] == int(NOW.timestamp())
    late = 16 if ahead < timedelta(days=1) else 19
    assert (row.n, row.latency_counts[late]) == (2, 1)


def test_rows_that_do_not_say_when_they_landed_had_by_now(spark: SparkSession) -> None:
    untimed = sink_row(1, landed_at=None)
    cells = of_sink(spark, [sink_row(0), untimed])
    [row] = seen_by(cells, now=NOW).select("*", F.unix_seconds("last_at").alias("at")).collect()
    assert (row.n, row.without_landed_at, row["at"]) == (2, 1, int(NOW.timestamp()))
    rewritten = of_sink(spark, [sink_row(0), untimed], [untimed])
    [row] = seen_by(rewritten, now=NOW).select("*", F.unix_seconds("last_at").alias("at")).collect()
    assert (row.n, row.without_landed_at, row["at"]) == (1, 0, int(T0.timestamp()) + 30)
    again = less_the_ledger(cells, cells)
    [row] = seen_by(again, now=NOW).select("*", F.unix_seconds("last_at").alias("at")).collect()
    assert (row.n, row.without_landed_at, row["at"]) == (0, 0, int(T0.timestamp()) + 30)


def test_latest_landing_without_a_number_is_known(spark: SparkSession) -> None:
    bare = sink_row(1, sequence_number=None)
    rows = [sink_row(5), bare, sink_row(0, sequence_number=None)]
    at = F.unix_seconds("unnumbered_at").alias("at")
    [row] = of_sink(spark, rows).select(at).collect()
    assert row["at"] == int(T0.timestamp()) + 31
    [row] = of_sink(spark, [sink_row(5)]).select(at).collect()
    assert row["at"] is None


def test_rows_without_time_and_number_land_once_however_often_they_are_rewritten(
    spark: SparkSession,
) -> None:
    bare = sink_row(1, sequence_number=None, landed_at=None)
    at = F.unix_seconds("unnumbered_at").alias("at")
    cells = of_sink(spark, [sink_row(0), bare])
    [row] = seen_by(cells, now=NOW).select(at).collect()
    assert row["at"] == int(NOW.timestamp())
    rewritten = of_sink(spark, [sink_row(0), bare], [bare])
    again = less_the_ledger(cells, cells)
    beside_a_timed_one = of_sink(spark, [bare], [bare, sink_row(2, landed_at=None)])
    for unmoved in (rewritten, again, beside_a_timed_one):
        [row] = seen_by(unmoved, now=NOW).select(at).collect()
        assert row["at"] is None


@pytest.mark.parametrize(
    ("latency_s", "found"),
    [
        (-5.0, 0),
        (0.0, 0),
        (1.0, 0),
        (1.000001, 1),
        (2.0, 1),
        (2.000001, 2),
        (4.0, 2),
        (2.0**19, 19),
        (2.0**19 + 0.000001, 20),
        (2.0**20, 20),
        (2.0**20 + 0.000001, 21),
        (2.0**30, 21),
    ],
)
def test_latency_bin_is_closed_above_when_at_the_edge(
    spark: SparkSession, latency_s: float, found: int
) -> None:
    assert LATENCY_BINS == 22
    instants = spark.range(1).select(
        F.lit(T0).alias("sent"), F.lit(T0 + timedelta(seconds=latency_s)).alias("landed")
    )
    [row] = instants.select(latency_bin(F.col("sent"), F.col("landed"))).collect()
    assert row[0] == found


def test_latencies_are_counted_per_bin_when_known(spark: SparkSession) -> None:
    latencies = [0.5, 0.7, 3, 100]
    rows = [sink_row(landed_at=_landed(s)) for s in latencies] + [sink_row(landed_at=None)]
    [row] = of_sink(spark, rows).collect()
    assert {i: n for i, n in enumerate(row.latency_counts) if n} == {0: 2, 2: 1, 7: 1}
    assert len(row.latency_counts) == LATENCY_BINS
    assert row.n == 5


def _landed(after_s: float) -> datetime:
    return T0 + timedelta(seconds=after_s)


def test_ledger_comes_out_as_the_new_reading_when_it_is_taken_back(spark: SparkSession) -> None:
    other = {"shard_id": "other"}
    old = of_sink(spark, [sink_row(0), sink_row(1), sink_row(2, **other)])
    ledger = old.union(of_sink(spark, [sink_row(9)], [sink_row(1)]))
    fresh = of_sink(spark, [sink_row(0), sink_row(5, **{"reason": "bad", "bucket_start": None})])
    change = less_the_ledger(fresh, ledger)
    assert change.columns == fresh.columns
    found = {(row.shard_id, row.bucket_start is None): row for row in change.collect()}
    assert totals(found["other", False])[0] == -1
    assert (found[None, True].n, found[SHARD, False].added) == (1, 1)
    after = ledger.union(change).where("bucket_start is not null").groupBy("shard_id")
    sums = after.agg(*(F.sum(n).alias(n) for n in ("n", "sum_lo", "sum_hi"))).collect()
    assert {row.shard_id: totals(row) for row in sums} == {
        SHARD: halves(spark, ["m0"]),
        "other": (0, 0, 0),
    }


def test_uncounted_traces_move_the_frontier_alone_when_an_id_was_retried(
    spark: SparkSession,
) -> None:
    base = {"message_id": "a", "shard_id": SHARD, "bucket_start": T0, "location": "producer"}
    traces = [
        base | {"sequence_number": "5", "sent_at": T0, "counted": True},
        base | {"sequence_number": "10", "sent_at": _landed(3), "counted": False},
    ]
    rows = spark.createDataFrame(
        [tuple(t.get(n) for n in TRACES.names) for t in traces], TRACES.ddl
    )
    [row] = trace_fingerprints(trace_sums(rows)).collect()
    assert totals(row) == halves(spark, ["a"])
    assert (row.max_sequence_number, row.latency_counts) == ("10", None)


def test_the_first_and_last_arrival_are_known_when_producers_held_messages_back(
    spark: SparkSession,
) -> None:
    """A message came into the stream by the later of its two times, where both are known."""
    soon, late = T0 + timedelta(seconds=2), T0 + timedelta(days=3)
    acked = [T0 - timedelta(seconds=1), None, soon, late]
    lines = [
        {"message_id": str(n), "shard_id": SHARD, "sent_at": T0 + timedelta(seconds=1)}
        | {"bucket_start": T0, "counted": n != 3, "acked_at": at, "location": "producer"}
        for n, at in enumerate(acked)
    ]
    values = [tuple(line.get(name) for name in TRACES.names) for line in lines]
    [row] = collected(trace_fingerprints(trace_sums(spark.createDataFrame(values, TRACES.ddl))))
    assert (row.arrived_from, row.arrived_until) == (T0 + timedelta(seconds=1), late)
    read = [tuple({**line, "ingested_at": soon}.get(n) for n in TRACES.names) for line in lines]
    [row] = collected(trace_fingerprints(trace_sums(spark.createDataFrame(read, TRACES.ddl))))
    assert (row.arrived_from, row.arrived_until) == (T0 + timedelta(seconds=1), soon)
    [row] = of_sink(spark, [sink_row()]).collect()
    assert (row.arrived_from, row.arrived_until) == (None, None)


@pytest.mark.apache_spark
def test_rows_are_hashed_not_sorted_when_grouped(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = of_sink(spark, [sink_row(0)], [sink_row(1)])
    line = {"message_id": "1", "shard_id": SHARD, "sent_at": T0, "bucket_start": T0}
    line |= {"counted": True, "location": "producer"}
    one = [tuple(line.get(name) for name in TRACES.names)]
    traces = trace_fingerprints(trace_sums(spark.createDataFrame(one, TRACES.ddl)))
    for rows in (sink, traces):
        rows.explain()
        plan = capsys.readouterr().out
        assert "ObjectHashAggregate" in plan
        assert "SortAggregate" not in plan
