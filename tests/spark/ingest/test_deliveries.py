"""Rows of a sink: types, reasons, and filters that reach the files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from shardaudit.ingest.rules.deliveries import (
    DELIVERY,
    UNPLACED,
    SinkTypeError,
    good_deliveries,
    judged_sink_rows,
    refused_rows,
    unplaced_deliveries,
)
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.input_columns import CANARY
from tests.builders import SHARD, SINK_DDL, T0, Line, sink_row

MINUTES = Eras(CellShape(60, 1.0))


def frame(spark: SparkSession, rows: list[Line], ddl: str = SINK_DDL) -> DataFrame:
    names = [part.split()[0] for part in ddl.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl)


def judge(rows: DataFrame, sample_rate: float = 1.0) -> list[Row]:
    judged = judged_sink_rows(rows, shape=Eras(CellShape(60, sample_rate)))
    times = ("sent_at", "landed_at", "arrived_at", "bucket_start")
    return judged.withColumns({name: F.unix_micros(name) for name in times}).collect()


def micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


RESERVED = " begins with shardaudit-canary/, which is shardaudit's own"


def test_reason_is_given_when_a_row_is_bad(spark: SparkSession) -> None:
    cases: list[tuple[Line, str | None]] = [
        (sink_row(), None),
        (sink_row(sequence_number=None), None),
        (sink_row(landed_at=None), None),
        (sink_row(message_id=""), None),
        (sink_row(message_id="é" * 512), None),
        (sink_row(landed_at=T0 - timedelta(days=1)), None),
        (sink_row(message_id=None), "message_id is missing"),
        (sink_row(message_id="é" * 513), "message_id is longer than 1024 bytes"),
        (sink_row(shard_id=""), "shard_id is not a text of 1 to 128 characters"),
        (sink_row(shard_id=f"{CANARY}a"), "shard_id" + RESERVED),
        (sink_row(message_id=CANARY), "message_id" + RESERVED),
        (sink_row(sequence_number="x"), "sequence_number is not a text of 1 to 129 decimal digits"),
        (sink_row(sent_at=datetime(1999, 12, 31, tzinfo=UTC)), "sent_at is before 2000"),
        (sink_row(landed_at=datetime(1970, 1, 1, tzinfo=UTC)), "landed_at is before 2000"),
        (
            sink_row(landed_at=T0 - timedelta(days=1, microseconds=1)),
            "sent_at is over a day ahead of landed_at",
        ),
    ]
    rows = judge(frame(spark, [row for row, _ in cases]))
    assert [row.reason for row in rows] == [reason for _, reason in cases]
    for row in rows:
        assert row.bucket_start == (None if row.reason else micros(T0))


@pytest.mark.parametrize("lacking", ["shard_id", "sent_at"])
def test_row_is_good_and_has_no_place_when_it_lacks(spark: SparkSession, lacking: str) -> None:
    whole, partial = sink_row(), sink_row(1, **{lacking: None})
    rows = frame(spark, [whole, partial])
    assert {(r.message_id, r.reason, r.bucket_start) for r in judge(rows)} == {
        ("m0", None, micros(T0)),
        ("m1", None, micros(UNPLACED)),
    }
    judged = judged_sink_rows(rows, shape=MINUTES)
    assert [row.message_id for row in good_deliveries(judged, shape=MINUTES).collect()] == ["m0"]
    assert [row.message_id for row in unplaced_deliveries(judged).collect()] == ["m1"]


@pytest.mark.parametrize(
    ("kind", "value", "instant"),
    [
        ("timestamp_ntz", datetime(2026, 11, 20, 12), T0),  # noqa: DTZ001 - the point
        ("string", "2026-11-20T13:00:00+01:00", T0),
        ("bigint", int(T0.timestamp()) * 1000, T0),
        ("int", 1_000_000_000, None),
        ("bigint", 2**62, None),
        ("string", "2026-11-20 12:00:00", None),
        ("string", "", None),
    ],
)
def test_time_is_understood_when_of_any_type(
    spark: SparkSession, kind: str, value: object, instant: datetime | None
) -> None:
    ddl = SINK_DDL.replace("sent_at timestamp", f"sent_at {kind}")
    [row] = judge(frame(spark, [sink_row(sent_at=value)], ddl))
    assert row.sent_at == (micros(instant) if instant else row.sent_at)
    assert (row.reason is None) == (instant is not None)


def test_number_is_an_id_when_it_is_whole(spark: SparkSession) -> None:
    ddl = SINK_DDL.replace("message_id string", "message_id bigint")
    [row] = judge(frame(spark, [sink_row(message_id=7)], ddl))
    assert row.message_id == "7"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("message_id string", "message_id double"),
        ("sequence_number string", "sequence_number bigint"),
        ("shard_id string", "shard_id int"),
        ("sent_at timestamp", "sent_at date"),
        ("landed_at timestamp", "landed_at double"),
    ],
)
def test_sink_is_refused_when_a_column_has_a_wrong_type(
    spark: SparkSession, column: str, kind: str
) -> None:
    rows = frame(spark, [], SINK_DDL.replace(column, kind))
    name, found = kind.split()
    with pytest.raises(SinkTypeError, match=f"for {name} has type {found}"):
        judged_sink_rows(rows, shape=MINUTES)


def test_columns_are_null_when_the_sink_lacks_them(spark: SparkSession) -> None:
    ddl = "message_id string, shard_id string, sent_at timestamp, landed_at timestamp"
    rows = judged_sink_rows(frame(spark, [sink_row()], ddl), shape=MINUTES)
    [row] = good_deliveries(rows, shape=MINUTES).collect()
    assert tuple(row.__fields__) == DELIVERY
    assert (row.sequence_number, row.arrived_at) == (None, None)


def test_refused_row_shows_what_was_there_when_set_aside(spark: SparkSession) -> None:
    rows = frame(spark, [sink_row(), sink_row(3, sequence_number="x")])
    placed = rows.withColumn("file", F.lit("f")).withColumn("line", F.lit(4))
    judged = judged_sink_rows(placed, shape=MINUTES)
    [row] = refused_rows(judged).collect()
    assert (row.file, row.line, row.reason) == (
        "f",
        4,
        "sequence_number is not a text of 1 to 129 decimal digits",
    )
    assert f'"message_id":"m3","shard_id":"{SHARD}"' in row.raw


@pytest.mark.apache_spark
def test_ids_that_differ_in_case_stay_two_when_the_sink_has_a_collation(
    spark: SparkSession,
) -> None:
    ddl = SINK_DDL.replace("message_id string", "message_id string COLLATE UNICODE_CI")
    rows = spark.createDataFrame([], ddl.replace(" COLLATE UNICODE_CI", ""))
    collated = rows.withColumn("message_id", F.collate("message_id", "UNICODE_CI"))
    judged = judged_sink_rows(collated, shape=MINUTES)
    assert dict(judged.dtypes)["message_id"] == "string"


@pytest.mark.apache_spark
def test_filter_on_sent_at_reaches_the_files_when_it_is_a_timestamp(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "x")
    frame(spark, [sink_row(number) for number in range(10)]).write.parquet(path)
    judged = judged_sink_rows(spark.read.parquet(path), shape=MINUTES)
    late = good_deliveries(judged, shape=MINUTES).where(
        F.col("sent_at") >= F.lit(T0 + timedelta(seconds=5))
    )
    late.explain()
    assert "GreaterThanOrEqual(sent_at" in capsys.readouterr().out
    assert late.count() == 5
