"""Rows that our backfills landed: they add to the ledger's sums, and move nothing else in it."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from shardaudit.model.source import appended_name, backfill_tag
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from tests.builders import NOW, SHARD, T0, Line, sequence, sink_row, write_parquet
from tests.spark.lake import Lake

pytestmark = pytest.mark.both_engines

LANDED = NOW - timedelta(microseconds=7)


def ours(number: int, **fields: object) -> dict[str, object]:
    """A row that a backfill lands: all of them at one time."""
    return sink_row(number, landed_at=LANDED, **fields)


def backfill(lake: Lake, *numbers: int) -> None:
    lake.land([ours(number) for number in numbers], userMetadata=backfill_tag("plan"))


def known(lake: Lake) -> tuple[int, int, str | None, int | None, int]:
    """Of the shard: its rows, those of ours, frontier, second of its last landing, latencies."""
    late = F.size(F.filter("latency_counts", lambda n: n != 0))
    [row] = (
        lake.warehouse.read(FINGERPRINTS)
        .where((F.col("side") == "sink") & (F.col("shard_id") == SHARD))
        .agg(
            F.sum("n").alias("n"),
            F.sum("own_n").alias("own"),
            F.max("max_sequence_number").alias("frontier"),
            F.max(F.unix_micros("last_at")).alias("at"),
            F.max(late).alias("bins"),
        )
        .collect()
    )
    return row.n, row.own, row.frontier, (row["at"] - micros(T0)) // 1_000_000, row.bins


def micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


def own_ids(lake: Lake) -> set[str]:
    """The messages whose rows are known as ours, as an audit reads them."""
    rows = lake.landed_now().scan().rows
    return {row.message_id for row in rows.where(F.col("is_own")).collect()}


CONSUMED = (sequence(2), 32, 1)  # m2 is the last that the consumer landed, 30 s after it was sent


def test_backfilled_rows_count_and_move_no_frontier(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(2)])
    backfill(lake, 1, 7)
    lake.ingest()
    assert known(lake) == (4, 2, *CONSUMED)
    assert own_ids(lake) == {"m1", "m7"}


def test_backfilled_rows_stay_ours_when_a_compaction_and_a_delete_rewrite_them(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(2)])
    lake.ingest()
    backfill(lake, 1, 7)
    lake.ingest()
    lake.optimize()
    lake.sql("DELETE FROM SINK WHERE message_id = 'm0'")
    lake.ingest()
    assert known(lake) == (3, 2, *CONSUMED)
    assert own_ids(lake) == {"m1", "m7"}
    lake.sql("DELETE FROM SINK WHERE message_id = 'm1'")
    lake.ingest()
    assert known(lake) == (2, 1, *CONSUMED)


def test_backfilled_rows_are_ours_when_they_were_rewritten_before_they_were_read(
    lake: Lake,
) -> None:
    lake.land([sink_row(0), sink_row(2)])
    lake.ingest()
    backfill(lake, 1, 7)
    lake.sql("UPDATE SINK SET sequence_number = sequence_number")
    lake.ingest()
    assert known(lake) == (4, 2, *CONSUMED)
    assert own_ids(lake) == {"m1", "m7"}


def test_backfilled_rows_stay_ours_when_all_is_read_anew(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(2)])
    backfill(lake, 1, 7)
    lake.ingest()
    lake.optimize()
    lake.land([sink_row(3, shard_id="other")])
    DeltaTable(lake.sink).create_checkpoint()
    for version in range(4):  # as Delta's own clean-up would, a month later
        (lake.sink / "_delta_log" / f"{version:020d}.json").unlink()
    assert lake.ingest().sink_from_version is None
    assert known(lake) == (4, 2, *CONSUMED)
    assert own_ids(lake) == {"m1", "m7"}


def test_rows_of_a_file_that_a_backfill_appended_are_ours(spark_lake: Lake) -> None:
    lake = spark_lake
    lake.sink_format = "parquet"
    write_parquet(lake.sink / "a.parquet", [sink_row(0), sink_row(2)])
    write_parquet(lake.sink / appended_name("plan", "part-0.parquet"), [ours(1), ours(7)])
    lake.ingest()
    assert known(lake) == (4, 2, *CONSUMED)
    compacted: list[Line] = [sink_row(0), ours(1), sink_row(2), ours(7)]
    for path in Path(lake.sink).glob("*.parquet"):
        path.unlink()
    write_parquet(lake.sink / "all.parquet", compacted)
    lake.ingest()
    assert known(lake) == (4, 2, *CONSUMED)
    assert own_ids(lake) == {"m1", "m7"}
