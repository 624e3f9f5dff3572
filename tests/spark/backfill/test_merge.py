"""Rows reach a Delta sink once, beside other writers, and without looking at other partitions."""

import threading
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.files.files import S3Access
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.adapters.lake.delta_sink_writer import (
    Pruning,
    SinkChangedError,
    SinkMerge,
    absent_rows,
    depends_on_message_alone,
)
from shardaudit.backfill import landing
from shardaudit.backfill.landing import BackfillSink
from shardaudit.backfill.rules.copies import COPY, numbered_copies
from shardaudit.backfill.rules.decode import ID
from shardaudit.backfill.rules.decode import ID as COPIED
from shardaudit.model.config.choices import SinkFormat
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import Origin, SinkField, Source
from tests.builders import T0

pytestmark = pytest.mark.apache_spark  # repairs

DDL = "id string NOT NULL, sent_at timestamp, day string, n int"
ALL = Pruning({}, {})


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A sink of two days with ids 0 to 9, partitioned by day."""
    place = str(tmp_path / "sink")
    empty = spark.createDataFrame([], DDL)
    empty.write.format("delta").partitionBy("day").save(place)
    rows(spark, range(10)).write.format("delta").mode("append").save(place)
    return place


def rows(spark: SparkSession, numbers: range, *, n: int = 0) -> DataFrame:
    values = [(f"m{i}", T0 + timedelta(days=i % 2), f"2026-11-{20 + i % 2}", n) for i in numbers]
    return spark.createDataFrame(values, DDL).coalesce(1)


def ids(spark: SparkSession, path: str) -> list[str]:
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


def landed(spark: SparkSession, path: str) -> list[tuple[str, int]]:
    return [(row.id, row.n) for row in spark.read.format("delta").load(path).collect()]


def test_rows_are_inserted_once_and_old_ones_not_touched(spark: SparkSession, path: str) -> None:
    target = SinkMerge(spark, path, "id", ALL)
    for _ in range(2):
        target.merge(rows(spark, range(5, 15), n=1), tag="t")
    assert ids(spark, path) == sorted(f"m{i}" for i in range(15))
    old = spark.read.format("delta").load(path).where("n = 0").count()
    assert old == 10


def test_commit_bears_the_backfills_tag(spark: SparkSession, path: str) -> None:
    SinkMerge(spark, path, "id", ALL).merge(rows(spark, range(9, 11)), tag='{"plan_id": "p"}')
    (last,) = DeltaTable(path).history(1)
    assert last["userMetadata"] == '{"plan_id": "p"}'
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", "none") == "none"


def test_other_partitions_are_not_read(spark: SparkSession, path: str) -> None:
    """A damaged file of another day would fail whatever reads it."""
    for file in (Path(path) / "day=2026-11-21").glob("*.parquet"):
        file.write_bytes(b"broken")
    edges = (T0 - timedelta(seconds=60), T0 + timedelta(seconds=60))
    pruning = Pruning({"sent_at": edges}, {"day": ["2026-11-20"]})
    target = SinkMerge(spark, path, "id", pruning)
    wanted = rows(spark, range(0, 24, 2)).withColumn("key", F.col("id"))
    table = spark.read.format("delta").load(path)
    found = absent_rows(wanted, table, ids=("key", "id"), pruning=pruning)
    absent = found.drop("key").localCheckpoint()
    assert sorted(row.id for row in absent.collect()) == sorted(f"m{i}" for i in range(10, 24, 2))
    target.merge(absent, tag="t")
    kept = spark.read.format("delta").load(path).where("day = '2026-11-20'").count()
    assert kept == 12


def backfill_sink(
    spark: SparkSession, path: str, kind: SinkFormat, *, margin: timedelta = timedelta(minutes=1)
) -> BackfillSink:
    """The sink as a backfill sees it, pruned by the time and the day of a message."""
    fields = {
        "id": SinkField("id", "string", nullable=False),
        "sent_at": SinkField("sent_at", "timestamp"),
        "day": SinkField("day", "string", partitions=True),
        "n": SinkField("n", "int"),
    }
    return BackfillSink(
        spark,
        path,
        S3Access(),
        kind,
        tuple(Source(field, Origin.PAYLOAD, f"$.{name}") for name, field in fields.items()),
        id_column="id",
        sent_column="sent_at",
        pruned_by=("day",),
        order_columns=("n",),
        margin=margin,
    )


def copies_of(sink: BackfillSink, wanted: DataFrame, sent: tuple[datetime, datetime]) -> DataFrame:
    """The rows of messages that stand more than once, as a dedupe counts them."""
    found = sink.rows_of(wanted, key="key", sent=sent)
    return numbered_copies(found, id_column="id", order=["n"])


TIMELESS = [
    ("m20", None, "2026-12-24", 0),  # where its consumer put it
    ("m21", None, None, 0),
    ("m22", T0, None, 0),
]


@pytest.mark.parametrize("kind", list(SinkFormat))
def test_message_is_not_inserted_again_when_its_row_has_no_time(
    spark: SparkSession, path: str, tmp_path: Path, kind: SinkFormat
) -> None:
    timeless = spark.createDataFrame(TIMELESS, DDL)
    timeless.write.format("delta").mode("append").save(path)
    if kind is SinkFormat.PARQUET:
        files = str(tmp_path / "files")
        spark.read.format("delta").load(path).write.partitionBy("day").parquet(files)
        path = files
    target = backfill_sink(spark, path, kind)
    wanted = rows(spark, range(8, 26, 2)).union(rows(spark, range(21, 22)))
    decoded = wanted.withColumn(COPIED, F.col("id")).localCheckpoint()
    absent = target.absent(decoded).localCheckpoint()
    expected = [f"m{i}" for i in range(10, 26, 2) if i not in (20, 22)]
    assert sorted(row.id for row in absent.collect()) == expected
    if kind is SinkFormat.DELTA:
        target.merge(decoded, tag="t")
    else:
        target.append(absent, job_id="job", check=lambda: None)
    landed = Counter(row.id for row in target.table().collect())
    assert set(landed.values()) == {1}
    assert {"m8", "m20", "m21", "m22", "m24"} <= set(landed)


def test_one_row_stays_when_a_copy_has_no_time(spark: SparkSession, path: str) -> None:
    timeless = spark.createDataFrame(TIMELESS, DDL)
    again = rows(spark, range(20, 24), n=1)
    timeless.union(again).write.format("delta").mode("append").save(path)
    target = backfill_sink(spark, path, SinkFormat.DELTA)
    wanted = spark.createDataFrame([(f"m{i}",) for i in range(24)], "key string")
    sent = (T0, T0 + timedelta(days=1))
    for _ in range(2):
        copies = copies_of(target, wanted, sent)
        target.keep_one(copies.localCheckpoint(), copies, sent=sent, tag="t")
    assert ids(spark, path) == sorted(f"m{i}" for i in [*range(10), *range(20, 24)])


def test_no_row_goes_that_was_not_read(spark: SparkSession, path: str) -> None:
    times = (0, 75, 130, 600)  # of one message, s
    days = ("2026-11-20", "2026-11-20", "2026-11-20", None)
    again = [
        ("m30", T0 + timedelta(seconds=at), day, at) for at, day in zip(times, days, strict=True)
    ]
    spark.createDataFrame(again, DDL).write.format("delta").mode("append").save(path)
    target = backfill_sink(spark, path, SinkFormat.DELTA)
    wanted = spark.createDataFrame([("m30",)], "key string")
    sent = (T0, T0 + timedelta(seconds=30))
    copies = copies_of(target, wanted, sent)
    counted = copies.localCheckpoint()
    assert sorted(row.n for row in counted.collect()) == [0, 75]
    target.keep_one(counted, copies, sent=sent, tag="t")
    left = spark.read.format("delta").load(path).where("id = 'm30'")
    assert sorted(row.n for row in left.collect()) == [0, 130, 600]


def test_nothing_is_removed_when_other_rows_were_counted(spark: SparkSession, path: str) -> None:
    """One lands, one changes, all of a message go: between the count and the commit."""
    rows(spark, range(3), n=1).write.format("delta").mode("append").save(path)
    target, sent = backfill_sink(spark, path, SinkFormat.DELTA), (T0, T0 + timedelta(days=1))
    wanted = spark.createDataFrame([(f"m{i}",) for i in range(10)], "key string")
    copies = copies_of(target, wanted, sent)
    for change in (
        lambda: rows(spark, range(1), n=2).write.format("delta").mode("append").save(path),
        lambda: DeltaTable(path).update({"n": "7"}, predicate="id = 'm1' AND n = 1"),
        lambda: DeltaTable(path).delete("id = 'm2'"),
    ):
        counted = copies.localCheckpoint()
        change()
        before = sorted(landed(spark, path))
        with pytest.raises(SinkChangedError, match="nothing was changed"):
            target.keep_one(counted, copies, sent=sent, tag="t")
        assert sorted(landed(spark, path)) == before
    target.keep_one(copies.localCheckpoint(), copies, sent=sent, tag="t")
    assert [n for one, n in landed(spark, path) if one in ("m0", "m1", "m2")] == [0, 0]


def test_message_is_not_inserted_again_when_its_row_was_stamped_anew(
    spark: SparkSession, path: str
) -> None:
    at = T0 + timedelta(days=1, seconds=90)
    retried = spark.createDataFrame([("m20", at, "2026-11-21", 0)], DDL)
    retried.write.format("delta").mode("append").save(path)
    target = backfill_sink(spark, path, SinkFormat.DELTA)
    decoded = rows(spark, range(18, 22, 2)).withColumn(COPIED, F.col("id")).localCheckpoint()
    sent = (T0, at)
    assert [row.id for row in target.absent(decoded, sent=sent).collect()] == ["m18"]
    target.merge(decoded, tag="t", sent=sent)
    assert ids(spark, path) == sorted([f"m{i}" for i in range(10)] + ["m18", "m20"])


def test_message_is_not_inserted_again_when_it_was_stamped_anew_within_its_cell(
    spark: SparkSession, path: str
) -> None:
    retried = spark.createDataFrame([("m20", T0 + timedelta(minutes=4), "2026-11-20", 0)], DDL)
    retried.write.format("delta").mode("append").save(path)
    target = backfill_sink(spark, path, SinkFormat.DELTA, margin=timedelta(minutes=5))
    decoded = rows(spark, range(18, 22, 2)).withColumn(COPIED, F.col("id")).localCheckpoint()
    assert [row.id for row in target.absent(decoded).collect()] == ["m18"]


def test_other_partitions_are_not_read_when_every_row_has_a_time(
    spark: SparkSession, path: str
) -> None:
    for file in (Path(path) / "day=2026-11-21").glob("*.parquet"):
        file.write_bytes(b"broken")
    target = backfill_sink(spark, path, SinkFormat.DELTA)
    decoded = rows(spark, range(0, 24, 2)).withColumn(COPIED, F.col("id")).localCheckpoint()
    assert target.absent(decoded).count() == 7
    target.merge(decoded, tag="t")


def test_nothing_is_lost_or_doubled_beside_a_live_writer(spark: SparkSession, path: str) -> None:
    failed: list[BaseException] = []

    def live() -> None:
        try:
            for start in range(100, 200, 10):
                more = rows(spark, range(start, start + 10))
                more.write.format("delta").mode("append").save(path)
        except BaseException as error:  # noqa: BLE001 - told by the assertion below
            failed.append(error)

    writer = threading.Thread(target=live)
    writer.start()
    for start in range(10, 60, 10):
        SinkMerge(spark, path, "id", ALL).merge(rows(spark, range(start, start + 10)), tag="t")
    writer.join()
    assert failed == []
    expected = [*range(60), *range(100, 200)]
    assert ids(spark, path) == sorted(f"m{i}" for i in expected)


def test_two_backfills_at_once_insert_once(spark: SparkSession, path: str) -> None:
    mine = rows(spark, range(5, 40)).localCheckpoint()
    runs = [
        threading.Thread(target=lambda: SinkMerge(spark, path, "id", ALL).merge(mine, tag="t"))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert ids(spark, path) == sorted(f"m{i}" for i in range(40))


def test_one_row_of_each_message_stays_even_of_rows_that_are_alike(
    spark: SparkSession, path: str
) -> None:
    again = rows(spark, range(3)).union(rows(spark, range(3))).union(rows(spark, range(2), n=1))
    again.write.format("delta").mode("append").save(path)
    table = spark.read.format("delta").load(path)
    copies = numbered_copies(table, id_column="id", order=["n"]).localCheckpoint()
    numbers = sorted((row[ID], row[COPY], row.n) for row in copies.collect())
    assert [one for one in numbers if one[0] == "m0"] == [
        ("m0", 1, 0),
        ("m0", 2, 0),
        ("m0", 3, 0),
        ("m0", 4, 1),
    ]
    target, sent = backfill_sink(spark, path, SinkFormat.DELTA), (T0, T0 + timedelta(days=1))
    target.keep_one(copies, copies, sent=sent, tag="t")
    assert ids(spark, path) == sorted(f"m{i}" for i in range(10))
    assert spark.read.format("delta").load(path).where("n = 1").count() == 0


def test_columns_are_known_with_what_the_table_computes(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = str(tmp_path / "generated")
    columns = (
        "id STRING NOT NULL, sent_at TIMESTAMP, "
        "day DATE GENERATED ALWAYS AS (CAST(sent_at AS DATE)), tags MAP<STRING, INT>"
    )
    spark.sql(f"CREATE TABLE delta.`{place}` ({columns}) USING delta PARTITIONED BY (day)")
    assert DeltaSink(place, S3Access()).at().fields == [
        SinkField("id", "string", nullable=False),
        SinkField("sent_at", "timestamp"),
        SinkField("day", "date", partitions=True, computes=True),
        SinkField("tags", "map<string,int>"),
    ]
    one = spark.createDataFrame([("m1", T0)], "id string, sent_at timestamp")
    wide = one.withColumn("tags", F.lit(None).cast("map<string,int>"))
    SinkMerge(spark, place, "id", ALL).merge(wide, tag="t")
    (row,) = spark.read.format("delta").load(place).collect()
    assert str(row.day) == "2026-11-20"


def lands(rows: DataFrame, place: str) -> bool:
    try:
        SinkMerge(rows.sparkSession, place, "message_id", ALL).merge(rows, tag="t")
    except PySparkException:
        return False
    return True


def test_what_the_table_asks_of_each_row_is_known(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "sink")
    columns = (
        "message_id STRING, sent_at TIMESTAMP, name VARCHAR(3), n INT, "
        "day DATE GENERATED ALWAYS AS (CAST(sent_at AS DATE))"
    )
    spark.sql(f"CREATE TABLE delta.`{place}` ({columns}) USING delta")
    spark.sql(f"ALTER TABLE delta.`{place}` ADD CONSTRAINT few CHECK (n < 10)")
    spark.sql(f"ALTER TABLE delta.`{place}` ADD CONSTRAINT late CHECK (day > '2020-01-01')")
    stream = {
        "stream_name": "events",
        "traces": {"path": str(tmp_path / "traces")},
        "sink": {"path": place},
    }
    settings = {"warehouse": str(tmp_path / "lake"), "streams": {"events": stream}}
    checks = landing.backfill_sink(spark, Settings.model_validate(settings), "events").checks
    assert checks.keys() == {"constraint few", "varchar(3) of name"}  # `day` is the table's own
    for name, n in (("日本語", 1), (None, 9), ("abc ", 1), ("", 10), ("", None)):
        row = (f"{name} {n}", T0, name, n)
        one = spark.createDataFrame(
            [row], "message_id string, sent_at timestamp, name string, n int"
        )
        holds = all(one.where(text).count() == 1 for text in checks.values())
        assert lands(one, place) == holds, row


@pytest.mark.parametrize(
    ("expression", "is_alone"),
    [
        ("date(sent_at)", True),
        ("date(landed_at)", False),
        ("concat(id, shard_id)", False),
        ("current_date()", False),
        ("date_format(NOW(), 'yyyy-MM-dd')", False),
        ("concat(now, '')", True),
        ("int(rand() * 8)", False),
    ],
)
def test_partition_prunes_only_when_it_is_the_messages_own(
    spark: SparkSession, expression: str, is_alone: bool
) -> None:
    fields = [
        SinkField("id", "string"),
        SinkField("sent_at", "timestamp"),
        SinkField("landed_at", "timestamp"),
        SinkField("shard_id", "string"),
        SinkField("now", "string"),
    ]
    changing = ["landed_at", "shard_id"]
    assert depends_on_message_alone(spark, expression, fields, changing=changing) is is_alone


def test_partition_made_of_one_that_hangs_on_the_landing_does_not_prune(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Else a message that landed on another day is not found, and lands again."""
    ddl = (
        "message_id string, sent_at timestamp, landed_at timestamp, dt date, month int, "
        "sent_day date, sent_month int"
    )
    empty = spark.createDataFrame([], ddl)
    parts = ("dt", "month", "sent_day", "sent_month")
    empty.write.format("delta").partitionBy(*parts).save(str(tmp_path / "sink"))
    derived = {"dt": "date(landed_at)", "month": "month(dt)"}
    derived |= {"sent_day": "date(sent_at)", "sent_month": "month(sent_day)"}
    stream = {
        "stream_name": "events",
        "traces": {"path": str(tmp_path / "traces")},
        "sink": {"path": str(tmp_path / "sink"), "derived": derived},
    }
    settings = {"warehouse": str(tmp_path / "lake"), "streams": {"events": stream}}
    sink = landing.backfill_sink(spark, Settings.model_validate(settings), "events")
    assert sink.pruned_by == ("sent_day", "sent_month")
