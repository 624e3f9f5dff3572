"""Processes with a Spark of their own that write sinks on S3, for the tests of what they lose."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.adapters.files.files import S3Access, s3_access
from shardaudit.adapters.lake.delta_sink_writer import Pruning, SinkMerge, absent_rows
from shardaudit.adapters.lake.parquet_append import (
    append_files,
    dataset_rows,
    parquet_fields,
    stage_files,
)
from shardaudit.backfill.rules.decode import ID
from shardaudit.model.config.settings import Settings

ROOT = Path(__file__).parents[2]
ROWS = 3  # of a commit, each of another day
DAYS = [f"2026-11-{20 + n}" for n in range(ROWS)]
DDL = "message_id string, day string"
SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
JOB_ID = "events-0123456789ab"


class SinkWriter:
    """One such process, which is told what to write.

    It answers only after Spark said that all of it is committed.
    """

    def __init__(self, settings: Settings) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.aws.sink_writers",
                settings.model_dump_json(exclude_defaults=True),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=20)
        finally:
            self.kill()

    def tell(self, act: str, sink: str, name: str, *, times: int) -> None:
        """Makes it act on the sink, with other rows each time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{act} {sink} {name} {times}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Its next line: `ready`, once, `done`, or nothing when it died."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """SIGKILL: Python and its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def message_ids(name: str, *, times: int) -> list[str]:
    """The ids of the rows that it writes."""
    return [f"{name}-{n}-{i}" for n in range(times) for i in range(ROWS)]


def _merge(rows: DataFrame, sink: str, access: S3Access) -> None:
    del access
    SinkMerge(rows.sparkSession, sink, "message_id", Pruning({}, {})).merge(rows, tag="test")


def _append(rows: DataFrame, sink: str, access: S3Access) -> None:
    """As a user's job does."""
    del access
    rows.write.format("delta").mode("append").save(sink)


def _add(rows: DataFrame, sink: str, access: S3Access) -> None:
    """As a backfill does in the mode `append`."""
    spark = rows.sparkSession
    table = dataset_rows(spark, sink, parquet_fields(sink, access))
    wanted = rows.withColumn(ID, F.col("message_id"))
    absent = absent_rows(wanted, table, ids=(ID, "message_id"), pruning=Pruning({}, {}))
    absent = absent.drop(ID).localCheckpoint()
    if not absent.isEmpty():
        staged = stage_files(absent, sink, partitions=["day"], job_id=JOB_ID)
        append_files(staged, sink, access, job_id=JOB_ID)


ACTS: dict[str, Callable[[DataFrame, str, S3Access], None]] = {
    "merge": _merge,
    "append": _append,
    "add": _add,
}


def _rows(spark: SparkSession, name: str) -> DataFrame:
    ids = zip((f"{name}-{i}" for i in range(ROWS)), DAYS, strict=True)
    return spark.createDataFrame(list(ids), DDL).coalesce(1)


def main(settings: Settings) -> None:
    """Does what it is told, line by line."""
    with spark_session(settings, app="writer") as spark:
        _write(spark, settings)


def _write(spark: SparkSession, settings: Settings) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        act, sink, name, times = line.split()
        for n in range(int(times)):
            ACTS[act](_rows(spark, f"{name}-{n}"), sink, s3_access(settings.aws))
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Settings.model_validate_json(sys.argv[1]))
