"""What holds a watermark, as spans; the cells of what was stuck."""

from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.rules.cell_verdicts import MOST_SPANS, held_spans
from shardaudit.audit.rules.changed_cells import passed_cells, stuck_cells
from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.ledger_hours import shard_hours, time_measures
from shardaudit.audit.rules.shard_facts import shard_facts, with_behind_parent
from shardaudit.columns.ledger_sums import cell_sums
from shardaudit.model.config.eras import CellShape, Eras
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import CELL_DDL, LEDGER_DDL, MINUTE, Row, batch, minute

JUDGED_DDL = "shard_id string, bucket_start timestamp, bucket_end timestamp, held_by string"


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
    stuck = stuck_cells(
        none if is_gap else rows, rows if is_gap else none, shape=Eras(CellShape(60, 1.0))
    )
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
    told = passed_cells(stuck, sums, with_behind_parent(facts, None)).collect()
    assert sorted(minute(row.bucket_start) for row in told) == [
        n for n, (*_, is_told) in enumerate(STUCK.values()) if is_told
    ]
