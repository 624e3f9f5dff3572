"""The backfill's speed: Kinesis through Spark against a bare loop, and a merge into a large sink.

The stand-in is a process of its own on the same cores, and asks for no pace here: what is measured
is what we add to boto3. BENCH_RECORDS and BENCH_SINK_ROWS say how much.
"""

import os
import shutil
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from shardaudit.adapters.aws.kinesis_pages import StreamAddress
from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.adapters.lake.delta_sink_writer import Pruning, SinkMerge, absent_rows
from shardaudit.backfill.kinesis_source import ReadSettings, read_windows
from shardaudit.backfill.rules.reading import ReadWindow
from shardaudit.model.config.settings import Settings
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.bench.timing import median_seconds

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

RECORDS = int(float(os.environ.get("BENCH_RECORDS", "1e5")))
SINK_ROWS = int(float(os.environ.get("BENCH_SINK_ROWS", "5e7")))
FOLDER = Path(".bench").resolve() / "backfill-sink"  # Delta takes no other path by its name
SHARDS, SIZE = 4, 1024
DAYS, FILES_A_DAY, MISSING = 50, 10, 10_000
AT_MOST = 1.2
START = datetime(2026, 10, 1, tzinfo=UTC)


def main() -> int:
    """Exit code 1 when reading through Spark is slower than it may be."""
    console = Console()
    settings = Settings(warehouse=".bench/none", spark={"spark.master": "local[2]"}, streams={})
    console.print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with spark_session(settings, app="bench backfill") as spark:
        ratio = _replay(spark, console)
        _merge(spark, console)
    return int(ratio > AT_MOST)


def _replay(spark: SparkSession, console: Console) -> float:
    with kinesis_stand_in() as url:
        client = boto3.client(
            "kinesis",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        client.create_stream(StreamName="bench", ShardCount=SHARDS)
        client.get_waiter("stream_exists").wait(
            StreamName="bench", WaiterConfig={"Delay": 1, "MaxAttempts": 30}
        )
        for first in range(0, RECORDS, 500):
            batch = [(f"key-{n}", b"%d" % n) for n in range(first, min(first + 500, RECORDS))]
            records = [{"PartitionKey": key, "Data": text.ljust(SIZE)} for key, text in batch]
            client.put_records(StreamName="bench", Records=records)  # type: ignore[arg-type] # a list of its TypedDict
        bare = median_seconds(partial(_bare_loop, client))
        ours = median_seconds(partial(_through_spark, spark, url))
    console.print(
        f"{RECORDS:,} records of {SIZE:,} bytes on {SHARDS} shards, records/s: bare boto3 loop "
        f"{RECORDS / bare:,.0f}, through Spark {RECORDS / ours:,.0f}: {ours / bare:.2f} times as "
        f"long, at most {AT_MOST}: {'ok' if ours / bare <= AT_MOST else 'ABOVE'}"
    )
    return ours / bare


def _bare_loop(client: "KinesisClient") -> None:
    found = 0
    for shard in client.list_shards(StreamName="bench")["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName="bench", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            page = client.get_records(ShardIterator=iterator, Limit=10_000)
            found += len(page["Records"])
            if not page["Records"] and page["MillisBehindLatest"] == 0:
                break
            iterator = page["NextShardIterator"]
    assert found == RECORDS, found


def _through_spark(spark: SparkSession, url: str) -> None:
    now = datetime.now(UTC)
    windows = [
        ReadWindow(
            window_id=str(n),
            shard_id=f"shardId-{n:012d}",
            start=now - timedelta(days=1),
            end=now + timedelta(days=1),
            horizon=START,
        )
        for n in range(SHARDS)
    ]
    reading = ReadSettings(StreamAddress("bench", "us-east-1", url), read_share=10_000)
    rows = read_windows(spark, reading, windows).localCheckpoint()  # as a backfill does it
    found = rows.where(F.col("outcome").isNull()).count()
    assert found == RECORDS, found


def _merge(spark: SparkSession, console: Console) -> None:
    _make_sink(spark, console)
    table = spark.read.format("delta").load(str(FOLDER))
    before = len(table.inputFiles())
    day = START + timedelta(days=DAYS // 2)
    missing = _messages(spark, range(SINK_ROWS, SINK_ROWS + MISSING), day).localCheckpoint()
    edges = (day - timedelta(minutes=1), day + timedelta(days=1))
    pruning = Pruning({"sent_at": edges}, {"day": [f"{day:%Y-%m-%d}"]})
    read = len(table.alias("t").where(pruning.condition()).inputFiles())
    started = time.perf_counter()
    keyed = missing.withColumn("key", F.col("message_id"))
    absent = absent_rows(keyed, table, ids=("key", "message_id"), pruning=pruning)
    SinkMerge(spark, str(FOLDER), "message_id", pruning).merge(absent.drop("key"), tag="bench")
    taken = time.perf_counter() - started
    inserted = table.count() - SINK_ROWS
    console.print(
        f"merge of {MISSING:,} missing ids into {SINK_ROWS:,} rows: {inserted:,} inserted in "
        f"{taken:.1f} s, files read {read:,} of {before:,}"
    )
    assert inserted == MISSING
    assert read <= FILES_A_DAY


def _make_sink(spark: SparkSession, console: Console) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    started = time.perf_counter()
    a_day = SINK_ROWS // DAYS
    for number in range(DAYS):
        first = number * a_day
        last = SINK_ROWS if number == DAYS - 1 else first + a_day
        rows = _messages(spark, range(first, last), START + timedelta(days=number))
        writer = rows.write.format("delta").mode("append").partitionBy("day")
        writer.save(str(FOLDER))
    console.print(f"made a sink of {SINK_ROWS:,} rows in {time.perf_counter() - started:.0f} s")


def _messages(spark: SparkSession, numbers: range, day: datetime) -> DataFrame:
    """Rows of one day, in as many files as a day has."""
    rows = spark.range(numbers.start, numbers.stop, numPartitions=FILES_A_DAY)
    second = F.make_dt_interval(secs=F.col("id") % 86_400)
    return rows.select(
        F.sha1(F.col("id").cast("string")).alias("message_id"),
        F.concat(F.lit("shardId-"), F.lpad(F.col("id") % 64, 12, "0")).alias("shard_id"),
        (F.lit(day) + second).alias("sent_at"),
        F.lit(f"{day:%Y-%m-%d}").alias("day"),
    )


if __name__ == "__main__":
    sys.exit(main())
