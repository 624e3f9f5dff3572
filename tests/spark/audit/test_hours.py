"""The hours of a ledger, over all shards, beside what an earlier audit counted in them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.hours import LOOK_BACK, Hour, hour_sums
from shardaudit.model.window import Window

DAY = datetime(2026, 11, 19, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(DAY, DAY + 24 * HOUR)
SUMS_DDL = (
    "shard_id string, bucket_start timestamp, sent_n bigint, landed_n bigint, "
    "without_landed_at bigint"
)
KEPT_DDL = SUMS_DDL.replace("bucket_start", "hour")
BEFORE_DDL = "shard_id string, bucket_start timestamp, sent bigint"


def found(
    spark: SparkSession,
    cells: Sequence[tuple[object, ...]],
    before: Sequence[tuple[str, datetime, int]] = (),
    *,
    kept: Sequence[tuple[object, ...]] = (),
    width: timedelta = HOUR,
) -> list[Hour]:
    rows = hour_sums(
        spark.createDataFrame([(*cell, 0)[:5] for cell in cells], SUMS_DDL),
        spark.createDataFrame([(*hour, 0)[:5] for hour in kept], KEPT_DDL),
        spark.createDataFrame(list(before), BEFORE_DDL),
        window=WINDOW,
        width=width,
    ).collect()
    told = [
        Hour(
            row.start.astimezone(UTC), row.sent, row.landed, row.sent_before, row.without_landed_at
        )
        for row in rows
    ]
    return sorted(told, key=lambda hour: hour.start)


def test_an_hour_sums_up_its_cells_over_all_shards(spark: SparkSession) -> None:
    cells = [
        ("s0", DAY, 2, 1),
        ("s1", DAY + HOUR - timedelta(seconds=1), 3, 5),
        ("s1", DAY + HOUR, 0, 4, 3),
        ("s2", DAY + HOUR, 0, 0, -1),
        ("s1", DAY + 2 * HOUR, 0, 0),
        ("s1", DAY + 24 * HOUR, 9, 9),
        ("s1", DAY - LOOK_BACK, 1, 0),
        ("s1", DAY - LOOK_BACK - HOUR, 9, 9),
    ]
    assert found(spark, cells) == [
        Hour(DAY - LOOK_BACK, 1, 0),
        Hour(DAY, 5, 6),
        Hour(DAY + HOUR, 0, 4, None, 2),
    ]


def test_hours_of_kept_days_are_as_they_were_kept(spark: SparkSession) -> None:
    kept = [
        ("s0", DAY - 24 * HOUR, 2, 1, 1),
        ("s1", DAY - 24 * HOUR, 1, 0),
        ("s1", DAY - LOOK_BACK, 1, 0),
        ("s1", DAY - LOOK_BACK - HOUR, 9, 9),
        ("s1", DAY + 24 * HOUR, 9, 9),
    ]
    assert found(spark, [("s0", DAY, 2, 1)], kept=kept) == [
        Hour(DAY - LOOK_BACK, 1, 0),
        Hour(DAY - 24 * HOUR, 3, 1, None, 1),
        Hour(DAY, 2, 1),
    ]


def test_what_an_earlier_audit_counted_stands_beside_also_where_nothing_is_left(
    spark: SparkSession,
) -> None:
    before = [("s0", DAY, 4), ("s9", DAY, 1), ("s0", DAY + 5 * HOUR, 3), ("s0", DAY + 6 * HOUR, 0)]
    assert found(spark, [("s0", DAY, 2, 1)], before) == [
        Hour(DAY, 2, 1, 5),
        Hour(DAY + 5 * HOUR, 0, 0, 3),
        Hour(DAY + 6 * HOUR, 0, 0, 0),
    ]


def test_a_bucket_may_be_longer_than_an_hour(spark: SparkSession) -> None:
    cells = [("s0", DAY + 6 * HOUR, 1, 1), ("s1", DAY + 6 * HOUR, 1, 1), ("s1", DAY, 1, 1)]
    assert found(spark, cells, width=6 * HOUR) == [Hour(DAY, 1, 1), Hour(DAY + 6 * HOUR, 2, 2)]
