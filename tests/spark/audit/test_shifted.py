"""A sink whose sent_at is the local time of somewhere."""

from datetime import timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.cells import FEWEST_SHIFTED, shifted_shards
from shardaudit.columns.ledger_sums import SUMS
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
SIDES = ("sent", "landed")
NAMES = [f"{side}_{name}" for side in SIDES for name in SUMS]
DDL = "shard_id string, bucket_start timestamp, differs boolean, " + ", ".join(
    f"{name} bigint" for name in NAMES
)
Row = dict[str, object]


def cell(shard_id: str, minute: int, *, sent: int = 0, landed: int = 0) -> Row:
    """The ids of a side are known by a number, their sums by that."""
    found: Row = {"shard_id": shard_id, "bucket_start": T0 + minute * MINUTE}
    for side, of in zip(SIDES, (sent, landed), strict=True):
        found |= {f"{side}_n": int(of > 0), f"{side}_sum_lo": of, f"{side}_sum_hi": -of}
    return found | {"differs": sent != landed}


def shard(name: str, *minutes_late: int, cells: int = FEWEST_SHIFTED) -> list[Row]:
    """Each message of a minute landed so much later; after the last of these all as it."""
    late = [*minutes_late, *[minutes_late[-1]] * cells][:cells]
    return [
        row
        for n in range(cells)
        for row in (
            [cell(name, n, sent=n + 1, landed=n + 1)]
            if late[n] == 0
            else [cell(name, n, sent=n + 1), cell(name, n + late[n], landed=n + 1)]
        )
    ]


def test_rows_that_are_all_some_half_hours_apart_are_told(spark: SparkSession) -> None:
    rows = [
        *shard("Delhi", 330),
        *shard("New York", -300),
        *shard("Berlin in October", 120, 60),
        *shard("one hour or three", 180, 60),
        *shard("late by minutes", 17),
        *shard("few", 60, cells=FEWEST_SHIFTED - 1),
        *shard("since noon", 0, 0, 0, 60, cells=FEWEST_SHIFTED + 3),
        *shard("until noon", *[60] * FEWEST_SHIFTED, 0, cells=FEWEST_SHIFTED + 3),
        *shard("one is as it should be", 60, 60, 0, 60, cells=FEWEST_SHIFTED + 1),
        *shard("one is lost", 330, cells=FEWEST_SHIFTED),
        cell("one is lost", 50, sent=99),
    ]
    cells = frame(spark, DDL, rows)
    found = {row.shard_id: row.minutes for row in shifted_shards(cells, cells).collect()}
    assert found == {
        "Delhi": 330,
        "New York": -300,
        "Berlin in October": 60,
        "since noon": 60,
        "until noon": 60,
        "one is lost": 330,
    }
