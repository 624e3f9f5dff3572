"""The cells that must have a verdict, with what of both sides is in them."""

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.cells import (
    compared_cells,
    gaps_no_more,
    grid,
    is_all_else_even,
    landed_besides,
    most_unsent,
    with_unsent,
)
from shardaudit.columns.ledger_sums import SUMS, cell_hash
from shardaudit.model.window import Window
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import CELL_DDL, MINUTE, Row, minute

Sums = tuple[int, int, int]
SIDES = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
SUMS_DDL = f"{CELL_DDL}, {', '.join(f'{name} bigint' for name in [*SIDES, 'ledger_rows'])}"
ALL_DDL = f"{SUMS_DDL}, unsent_n bigint, unsent_sum_lo bigint, unsent_sum_hi bigint"


def cell(shard: str, at: int, sent: Sums, landed: Sums) -> Row:
    place: Row = {"shard_id": shard, "bucket_start": T0 + at * MINUTE, "ledger_rows": 1}
    return place | dict(zip(SIDES, sent + landed, strict=True))


@pytest.mark.parametrize(("length", "bucket"), [(1, 1), (3, 1), (6, 3), (60, 60)])
def test_the_grid_has_each_bucket_of_each_shard_once(
    spark: SparkSession, length: int, bucket: int
) -> None:
    shards = frame(spark, "shard_id string", [{"shard_id": one} for one in ("s0", "s1")])
    window = Window(T0, T0 + length * MINUTE)
    found = grid(shards, window=window, bucket=timedelta(minutes=bucket)).collect()
    assert sorted((row.shard_id, minute(row.bucket_start)) for row in found) == [
        (shard, at) for shard in ("s0", "s1") for at in range(0, length, bucket)
    ]


# Of a cell what was sent and landed (None: the ledger has nothing), and whether it differs.
COMPARED: dict[str, tuple[tuple[Sums, Sums] | None, bool]] = {
    "nothing": (None, False),
    "even": (((2, 5, 7), (2, 5, 7)), False),
    "less landed": (((2, 5, 7), (1, 5, 7)), True),
    "as many, others": (((2, 5, 7), (2, 6, 7)), True),
    "as many, others in the high half": (((2, 5, 7), (2, 5, 8)), True),
    "sent alone": (((2, 5, 7), (0, 0, 0)), True),
    "landed alone": (((0, 0, 0), (2, 5, 7)), True),
    "came and went": (((0, 0, 0), (0, 0, 0)), False),
}


def test_each_cell_of_the_grid_says_whether_its_sides_differ(spark: SparkSession) -> None:
    cells: list[Row] = [{"shard_id": name, "bucket_start": T0} for name in COMPARED]
    known = [cell(name, 0, *sums) for name, (sums, _) in COMPARED.items() if sums]
    known.append(cell("outside", 0, (1, 1, 1), (0, 0, 0)))
    found = compared_cells(frame(spark, CELL_DDL, cells), frame(spark, SUMS_DDL, known)).collect()
    assert len(found) == len(COMPARED)
    rows = {row.shard_id: row for row in found}
    assert {name: row.differs for name, row in rows.items()} == {
        name: is_so for name, (_, is_so) in COMPARED.items()
    }
    zeros: tuple[Sums, Sums] = ((0, 0, 0), (0, 0, 0))
    for name, (sums, is_so) in COMPARED.items():
        sent, landed = sums or zeros
        assert tuple(rows[name][side] for side in SIDES) == sent + landed
        assert (rows[name].sums_digest is not None) is is_so
        assert (rows[name].unsent_n, rows[name].filtered_n) == (0, 0)
    digests = {rows[name].sums_digest for name, (_, is_so) in COMPARED.items() if is_so}
    assert len(digests) == sum(is_so for _, is_so in COMPARED.values())


# The hashes of ids that are only counted, what they add up to, and what else was sent and landed;
# whether that is even.
UNSENT: dict[str, tuple[list[int], Sums, tuple[Sums, Sums], bool]] = {
    "none": ([], (0, 0, 0), ((1, 2, 3), (1, 2, 3)), False),
    "one": ([5], (1, 5, 0), ((1, 2, 3), (1, 2, 3)), True),
    "of both halves": ([5, (7 << 32) + 3], (2, 8, 7), ((1, 2, 3), (1, 2, 3)), True),
    "below zero": ([-1], (1, 2**32 - 1, -1), ((1, 2, 3), (1, 2, 3)), True),
    "one, and one is missing": ([5], (1, 5, 0), ((2, 2, 3), (1, 2, 3)), False),
    "one, and others": ([5], (1, 5, 0), ((1, 2, 3), (1, 3, 3)), False),
    "one, and others in the high half": ([5], (1, 5, 0), ((1, 2, 3), (1, 2, 4)), False),
    "nothing else": ([5], (1, 5, 0), ((0, 0, 0), (0, 0, 0)), True),
}


def test_ids_that_are_only_counted_are_taken_out_of_what_landed(spark: SparkSession) -> None:
    cells = []
    for name, (_, more, (sent, rest), _) in UNSENT.items():
        first, low, high = (one + other for one, other in zip(rest, more, strict=True))
        cells.append(cell(name, 0, sent, (first, low, high)) | {"unsent_n": 99})
    ids: list[Row] = [
        {"shard_id": name, "bucket_start": T0, "id_hash": one}
        for name, (hashes, *_) in UNSENT.items()
        for one in hashes
    ]
    unsent = frame(spark, f"{CELL_DDL}, id_hash bigint", ids).withColumn("cell", cell_hash())
    besides = [landed_besides(name).alias(f"rest_{name}") for name in SUMS]
    found = with_unsent(frame(spark, ALL_DDL, cells), unsent.select("cell", "id_hash"))
    assert {
        row.shard_id: (
            (row.unsent_n, row.unsent_sum_lo, row.unsent_sum_hi),
            (row.rest_n, row.rest_sum_lo, row.rest_sum_hi),
            row.is_even,
        )
        for row in found.select("*", *besides, is_all_else_even().alias("is_even")).collect()
    } == {name: (more, rest, is_even) for name, (_, more, (_, rest), is_even) in UNSENT.items()}


# Of a cell what was sent and landed, whether it is bare and was a gap; how many of its rows may be
# untraced, and whether it is a gap no more.
READ: dict[str, tuple[Sums, Sums, bool, bool, int, int]] = {
    "even": ((2, 5, 7), (2, 5, 7), False, True, 0, 0),
    "one more": ((2, 5, 7), (3, 9, 8), False, False, 1, 0),
    "one less": ((3, 9, 8), (2, 5, 7), False, False, 0, 0),
    "by many": ((9, 50, 70), (4, 5, 7), False, False, 4, 0),
    "as many, others": ((2, 5, 7), (2, 6, 7), False, False, 2, 0),
    "bare": ((9, 50, 70), (0, 0, 0), True, True, 0, 0),
    "a gap before": ((9, 50, 70), (4, 5, 7), False, True, 4, 1),
    "a gap before, of which all went": ((9, 50, 70), (0, 0, 0), False, True, 0, 0),
}


def test_of_cells_that_are_read_by_id_the_most_rows_without_a_trace_are_known(
    spark: SparkSession,
) -> None:
    rows = [
        cell(name, 0, sent, landed) | {"is_bare": is_bare, "has_gap": has_gap}
        for name, (sent, landed, is_bare, has_gap, *_) in READ.items()
    ]
    sums = frame(spark, f"{SUMS_DDL}, is_bare boolean, has_gap boolean", rows)
    cells = sums.withColumn("differs", ~F.col("shard_id").isin("even"))
    counts = most_unsent().alias("most"), gaps_no_more().alias("gaps")
    each = {
        row.shard_id: (row.most, row.gaps)
        for row in cells.groupBy("shard_id").agg(*counts).collect()
    }
    assert each == {name: (most, gaps) for name, (*_, most, gaps) in READ.items()}
    [none] = cells.where("false").agg(*counts).collect()
    assert (none.most, none.gaps) == (0, 0)
