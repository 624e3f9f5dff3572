"""What holds a watermark, as spans; cells that changed since; the clean cells to look at."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.carried import sampled_cells, with_neighbours
from shardaudit.audit.rules.cell_verdicts import MOST_SPANS, held_spans
from shardaudit.audit.rules.changed_cells import (
    Changes,
    changed_cells,
    held_back_cells,
    touched_buckets,
    touched_cells,
)
from shardaudit.audit.rules.findings import stuck_cells
from shardaudit.audit.rules.gaps import gap_measures, passed_cells
from shardaudit.audit.rules.ledger_hours import shard_hours, time_measures
from shardaudit.audit.rules.shard_facts import shard_facts
from shardaudit.columns.ledger_sums import cell_sums, differs
from shardaudit.model.window import Window
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
JUDGED_DDL = "shard_id string, bucket_start timestamp, bucket_end timestamp, held_by string"
LEDGER_DDL = (
    "batch_id string, shard_id string, bucket_start timestamp, side string, n bigint, "
    "sum_lo bigint, sum_hi bigint, max_sequence_number string, last_at timestamp, "
    "unnumbered_at timestamp, own_n bigint, without_landed_at bigint, planned_at timestamp, "
    "arrived_from timestamp, arrived_until timestamp, min_sequence_number string"
)
CELL_DDL = "shard_id string, bucket_start timestamp"
APART_DDL = "bucket_start timestamp, counted_in timestamp"
CELLS_DDL = "shard_id string, bucket_start timestamp, sent_n bigint, differs boolean"


def minute(value: object) -> int:
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) // MINUTE


def spans(
    spark: SparkSession, cells: Iterable[tuple[str, int, str | None]]
) -> set[tuple[str, str, int, int]]:
    rows: list[Row] = [
        {"shard_id": shard, "bucket_start": T0 + at * MINUTE, "held_by": why}
        | {"bucket_end": T0 + (at + 1) * MINUTE}
        for shard, at, why in cells
    ]
    found = held_spans(frame(spark, JUDGED_DDL, rows), bucket=MINUTE).collect()
    told = {
        (row.shard_id, row.held_by, minute(row.held_from), minute(row.held_until)) for row in found
    }
    assert len(told) == len(found)
    return told


def test_neighbouring_cells_that_are_held_for_one_reason_are_a_span(spark: SparkSession) -> None:
    cells = [("s0", m, "pending") for m in (0, 1, 2, 5, 6)]
    cells += [("s0", 3, "thin"), ("s1", 2, "pending"), ("s1", 4, "pending")]
    assert spans(spark, [*cells, ("s0", 4, None), ("s1", 3, None)]) == {
        ("s0", "pending", 0, 3),
        ("s0", "pending", 5, 7),
        ("s0", "thin", 3, 4),
        ("s1", "pending", 2, 3),
        ("s1", "pending", 4, 5),
    }


def test_of_many_spans_those_are_joined_that_lie_nearest(spark: SparkSession) -> None:
    near = {100: 102, 200: 203, 300: 304}
    starts = [10 * n for n in range(MOST_SPANS)]
    cells = [(shard, n, "pending") for shard in ("s0", "s1") for n in (*starts, *near.values())]
    assert spans(spark, cells) == {
        (shard, "pending", n, near.get(n, n) + 1) for shard in ("s0", "s1") for n in starts
    }


def batch(shard: str, side: str, n: int, *, at: int = 10, of: int = 7) -> Row:
    """Of a cell; the sums are those of an id that counts as `of`."""
    found: Row = {"batch_id": "b", "shard_id": shard, "bucket_start": T0 + at * MINUTE}
    return found | {"side": side, "n": n, "sum_lo": n * of, "sum_hi": 0}


Batches = list[tuple[str, int, int]]
TRACE, ROW = ("traces", 1, 7), ("sink", 1, 7)
# The minute of a cell, what was known of it and what is new, and whether it is told.
CHANGES: dict[str, tuple[int, Batches, Batches, bool]] = {
    "trace came": (10, [], [TRACE], True),
    "row came": (11, [], [ROW], True),
    "row came, and fits": (12, [TRACE], [ROW], False),
    "both came": (13, [], [TRACE, ROW], False),
    "nothing came": (14, [TRACE], [], False),
    "rewritten as it was": (15, [TRACE], [("sink", 1, 5), ("sink", -1, 5)], False),
    "rewritten as another": (16, [ROW], [("sink", 1, 5), ("sink", -1, 7)], True),
    "removed": (17, [TRACE, ROW], [("sink", -1, 7)], True),
    "removed of old": (3, [TRACE, ROW], [("sink", -1, 7)], False),
    "removed at the edge": (5, [TRACE, ROW], [("sink", -1, 7)], True),
    "row came to old": (1, [], [ROW], True),
    "trace came to old, a row went": (2, [ROW], [("traces", 1, 9), ("sink", -1, 7)], True),
    "first of what was audited": (0, [], [ROW], True),
    "before it": (-1, [], [ROW], False),
    "sent before it, and came since": (-30, [TRACE], [ROW, ROW], True),
    "one beside these that came before it": (-30, [TRACE], [], False),
    "sent before it, and fits": (-30, [], [TRACE, ROW], False),
    "doubled, and repaired": (28, [TRACE, ROW, ROW], [("sink", -1, 7)], True),
    "doubled, and still so, of old": (3, [TRACE, ROW, ROW, ROW], [("sink", -1, 7)], False),
    "doubled, and dropped by a lake": (3, [TRACE, ROW, ROW], [("sink", -2, 7)], True),
    "doubled, and nothing happened": (8, [TRACE, ROW], [], False),
    "last of it": (29, [], [ROW], True),
    "trace of one that counts elsewhere": (25, [ROW], [("traces", 0, 7)], True),
    "where that one counts": (26, [TRACE], [], True),
    "trace of one that counts, again": (27, [TRACE, ROW], [("traces", 0, 7)], False),
    "after it": (30, [], [ROW], False),
    "never counted": (18, [TRACE], [ROW], False),
    "never counted, and differs": (19, [TRACE, ROW], [ROW], True),
    "never counted, of old": (6, [TRACE], [ROW], True),
    # What happened to another shard in that minute.
    "nothing came, beside one that fits": (12, [ROW], [], True),
    "whole, beside one that changed": (10, [TRACE, ROW], [], False),
    "lacks, beside one that changed": (10, [TRACE], [], True),
    "old, beside one of which rows went": (3, [TRACE], [], False),
    "lacks of old, beside one to which a row came": (1, [TRACE], [], False),
    "too many of old, beside one to which a row came": (1, [ROW], [], True),
    "lacks of old, beside one to which a trace came": (2, [TRACE], [], False),
    "removed of old, beside one to which a row came": (1, [TRACE, ROW], [("sink", -1, 7)], False),
    "beside one that was rewritten as it was": (15, [TRACE], [], False),
    # Minutes that share a message with another: see APART.
    "where a retry of the 12th landed": (20, [ROW], [], True),
    "where the first of the 13th is counted": (21, [TRACE], [], True),
    "where the first of the 14th is counted": (22, [TRACE], [], False),
    "before all, where one of the 12th is": (-2, [ROW], [], False),
    "first of what came after": (31, [], [ROW], False),
    "where that is counted": (23, [TRACE], [], True),
    "lacks of old, where a retry of the 12th was": (4, [TRACE], [], True),
    "of old, where one of which rows went is counted": (24, [TRACE], [], False),
}
APART = (
    (20, 12),
    (13, 21),
    (14, 22),
    (-2, 12),
    (31, 23),
    (4, 12),
    (3, 24),
    (25, 26),
)  # the minutes of a trace


@pytest.mark.parametrize("is_kept", [False, True])
def test_audited_cells_that_changed_and_differ_are_told(spark: SparkSession, is_kept: bool) -> None:
    rows = {
        name: [
            [batch(name, side, n, at=at, of=of) for side, n, of in part] for part in (before, since)
        ]
        for name, (at, before, since, _) in CHANGES.items()
    }
    fresh = [row for _, since in rows.values() for row in since]
    news = frame(
        spark, LEDGER_DDL, (row for row in fresh if not str(row["shard_id"]).startswith("never"))
    )
    uncounted = frame(
        spark,
        f"{CELL_DDL}, is_partial boolean, is_cleared boolean",
        (
            {"shard_id": name, "bucket_start": T0 + at * MINUTE, "is_cleared": False}
            | {"is_partial": name[-3:] == "old"}
            for name, (at, *_) in CHANGES.items()
            if name.startswith("never counted")
        ),
    )
    whole = [row for before, since in rows.values() for row in before + since]
    apart: list[Row] = [
        {"bucket_start": T0 + at * MINUTE, "counted_in": T0 + counted * MINUTE}
        for at, counted in APART
    ]
    touched = touched_cells(news, uncounted, looked_at=T0)
    start = F.col("bucket_start")
    had_left = (start < F.lit(T0 + 5 * MINUTE)) | (start == F.lit(T0 + 24 * MINUTE))
    sums, late = cell_sums(frame(spark, LEDGER_DDL, whole)), F.col("shard_id").startswith("sent ")
    arrived = F.when(late, F.lit(T0)).otherwise(start)
    buckets = touched_buckets(touched, frame(spark, APART_DDL, apart))
    doubled = sums.where(F.col("shard_id").startswith("doubled")).select("shard_id", "bucket_start")
    found = changed_cells(
        Changes(touched, buckets, doubled),
        # What is alike on both sides may be unknown.
        sums.where(differs() if is_kept else F.lit(True)).withColumns(
            {"had_left": had_left, "arrived_until": arrived}
        ),
        audited=Window(T0, T0 + 30 * MINUTE),
        bucket=MINUTE,
    ).collect()
    assert len({row.shard_id for row in found}) == len(found)
    assert {row.shard_id for row in found} == {name for name, (*_, told) in CHANGES.items() if told}
    assert {(minute(r.bucket_end) - minute(r.bucket_start), r.held_by) for r in found} == {
        (1, "changed")
    }


# What was found of a cell: cause and state; the greatest number sent there, of a shard of which the
# consumer is at 20; and whether it is told.
STUCK: dict[str, tuple[str, str, int, bool]] = {
    "passed": ("stuck", "open", 15, True),
    "passed, and planned": ("stuck", "planned", 15, True),
    "passed, and accepted": ("stuck", "accepted", 15, True),
    "passed, and gone": ("stuck", "expired", 15, False),
    "passed, and landed": ("stuck", "false_alarm", 15, False),
    "lost already": ("lost", "open", 15, False),
    "ahead": ("stuck", "open", 25, False),
}


@pytest.mark.parametrize("is_gap", [False, True])
def test_cells_of_what_was_stuck_are_told_when_its_consumer_is_past_it(
    spark: SparkSession, is_gap: bool
) -> None:
    at = {name: T0 + n * MINUTE for n, name in enumerate(STUCK)}
    found = [
        {"shard_id": "one", "kind": "missing", "cause": cause, "state": state}
        | {"sent_at": at[name] + MINUTE / 2, "bucket_start": at[name]}
        for name, (cause, state, *_) in STUCK.items()
    ]
    rows = frame(
        spark, f"{CELL_DDL}, kind string, cause string, state string, sent_at timestamp", found
    )
    none = rows.where("false")
    stuck = stuck_cells(none if is_gap else rows, rows if is_gap else none, bucket=MINUTE)
    ledger = [
        batch("one", "traces", 1) | {"bucket_start": at[name], "max_sequence_number": str(number)}
        for name, (*_, number, _) in STUCK.items()
    ]
    frontier = {"max_sequence_number": "20", "last_at": T0 + 30 * MINUTE}
    both = [*ledger, batch("one", "sink", 1) | frontier]
    sums = cell_sums(frame(spark, LEDGER_DDL, both), *gap_measures(MINUTE), *time_measures())
    now, grace = T0 + 60 * MINUTE, 10 * MINUTE
    hours = shard_hours(sums, as_of=now, settle_grace=grace, bucket=MINUTE)
    patience = frame(spark, "shard_id string, patience double", [])
    facts = shard_facts(hours, patience, as_of=now, settle_grace=grace)
    told = passed_cells(stuck, sums, facts).collect()
    assert sorted(minute(row.bucket_start) for row in told) == [
        n for n, (*_, is_told) in enumerate(STUCK.values()) if is_told
    ]


# What a batch says of a cell since an audit as of T0, and whether rows went and none came.
NEWS: dict[str, tuple[Row, bool]] = {
    "rows went": ({"n": -98, "own_n": 0}, True),
    "rows went, others were written anew": ({"n": -98, "last_at": T0}, True),
    "rows of ours went": ({"n": -98, "own_n": -98}, True),
    "rows went, and some landed": ({"n": -98, "last_at": T0 + MINUTE}, False),
    "rows went, and some of ours landed": ({"n": -98, "own_n": 2}, False),
    "as many went as landed": ({"n": 0}, False),
    "rows landed": ({"n": 2, "last_at": T0 + MINUTE}, False),
    "a trace came": ({"n": 0, "side": "traces", "last_at": T0 - MINUTE}, False),
}


def test_a_cell_is_cleared_where_rows_went_and_none_came(spark: SparkSession) -> None:
    rows = [batch(name, "sink", 0) | {"sum_lo": 5} | said for name, (said, _) in NEWS.items()]
    found = touched_cells(frame(spark, LEDGER_DDL, rows), None, looked_at=T0).collect()
    assert {row.shard_id: row.is_cleared for row in found} == {
        name: is_cleared for name, (_, is_cleared) in NEWS.items()
    }


# Of a first audit: the minute of a cell, what is in it, when the last of it came, and whether told.
HELD_BACK: dict[str, tuple[int, Batches, int | None, bool]] = {
    "came since, and lacks": (-30, [TRACE], 0, True),
    "came since, and doubled": (-1, [TRACE, ROW, ROW], 40, True),
    "came since, and fits": (-30, [TRACE, ROW], 0, False),
    "came before": (-30, [TRACE], -1, False),
    "no trace": (-30, [ROW], None, False),
    "in the window": (0, [TRACE], 0, False),
}


def test_what_was_held_back_until_the_first_window_is_told(spark: SparkSession) -> None:
    rows = [
        batch(name, side, n, at=at, of=of)
        | {"arrived": None if came is None else T0 + came * MINUTE}
        for name, (at, parts, came, _) in HELD_BACK.items()
        for side, n, of in parts
    ]
    ledger = frame(spark, f"{LEDGER_DDL}, arrived timestamp", rows)
    sums = cell_sums(ledger, F.max("arrived").alias("arrived_until"))
    first = Window(T0, T0 + 30 * MINUTE)
    found = held_spans(held_back_cells(sums, first=first, bucket=MINUTE), bucket=MINUTE).collect()
    assert {(r.shard_id, minute(r.held_from), minute(r.held_until), r.held_by) for r in found} == {
        (name, at, at + 1, "changed") for name, (at, *_, told) in HELD_BACK.items() if told
    }


def test_clean_cells_with_messages_are_sampled_of_few_buckets_others_every_day(
    spark: SparkSession,
) -> None:
    cells: list[Row] = [
        {"shard_id": f"s{s}", "bucket_start": T0 + m * MINUTE, "sent_n": 0 if m % 3 == 0 else 1}
        | {"differs": m % 3 == 1}
        for s in range(4)
        for m in range(60)
    ]
    grid = frame(spark, CELLS_DDL, cells)
    chosen = []
    for day in range(4):
        rows = sampled_cells(grid, seed=f"day {day}", size=4).collect()
        assert len(rows) == 4
        minutes = {minute(row.bucket_start) for row in rows}
        assert len(minutes) == 1
        assert {m % 3 for m in minutes} == {2}
        chosen.append(minutes.pop())
        again = sampled_cells(grid, seed=f"day {day}", size=4).collect()
        assert sorted(again) == sorted(rows)
    assert len(set(chosen)) > 1


def test_neighbours_of_a_cell_are_those_before_and_after_it(spark: SparkSession) -> None:
    cells: list[Row] = [
        {"shard_id": s, "bucket_start": T0 + m * MINUTE}
        for s, m in (("s0", 1), ("s0", 2), ("s1", 9))
    ]
    near = frame(spark, "shard_id string, bucket_start timestamp", cells)
    found = [
        (row.shard_id, minute(row.bucket_start))
        for row in with_neighbours(near, bucket=MINUTE).collect()
    ]
    assert sorted(found) == [
        *(("s0", m) for m in (0, 1, 2, 3)),
        *(("s1", m) for m in (8, 9, 10)),
    ]
