"""Cells that changed since the audits before, and those held back until the first."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.cell_verdicts import held_spans
from shardaudit.audit.rules.changed_cells import (
    Changes,
    changed_cells,
    held_back_cells,
    touched_buckets,
    touched_cells,
)
from shardaudit.columns.ledger_sums import cell_sums, differs
from shardaudit.model.window import Window
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import CELL_DDL, LEDGER_DDL, MINUTE, Batches, Row, batch, minute

APART_DDL = "bucket_start timestamp, counted_in timestamp"
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
    "untraced, and its trace came": (28, [ROW], [TRACE], True),
    "untraced, and its trace came, of old": (2, [ROW], [TRACE], True),
    "untraced, and one of two came": (28, [ROW, ROW], [TRACE], True),
    "untraced, and gone with what a lake drops": (3, [ROW], [("sink", -1, 7)], False),
    "untraced, and nothing happened": (10, [ROW, TRACE], [], False),
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
    kind = F.when(F.col("shard_id").startswith("doubled"), "duplicated").when(
        F.col("shard_id").startswith("untraced"), "untraced"
    )
    surplus = sums.select("shard_id", "bucket_start", kind.alias("kind")).where("kind IS NOT NULL")
    found = changed_cells(
        Changes(touched, buckets, surplus),
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
