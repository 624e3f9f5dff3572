"""A trace file that cannot be opened is set aside by its name, and read as soon as it can be."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.model.errors import LockLostError
from shardaudit.store.warehouse import Warehouse
from tests.builders import shard, trace_line, write_parquet
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake


def ids(lake: Lake) -> list[str]:
    return sorted(row.message_id for row in lake.kept())


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_good_files_arrive_beside_one_that_cannot_be_opened(
    lake: Lake, spark: SparkSession, tmp_path: Path, form: str
) -> None:
    lake.traces_format = form
    names = [f"{name}.{form}" for name in "ab"]
    rows = [trace_line(n, shard_id=shard(n)) for n in range(3)]
    if form == "json":
        bad, _ = (lake.log(name, [row]) for name, row in zip(names, rows, strict=False))
    else:
        bad, _ = (write_parquet(lake.traces / n, [r]) for n, r in zip(names, rows, strict=False))
    before = bad.stat()
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"), check=Dying(2))
    with pytest.raises(LockLostError):
        lake.ingest()
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"))
    bad.rename(tmp_path / "kept")
    bad.mkdir()  # root may read every file; nobody reads a folder as one
    lake.ingest()
    assert ids(lake) == ["m1"]
    [refused] = lake.refused()
    assert (refused.file, refused.line) == (str(bad), None)
    assert refused.reason.startswith("storage does not give it: ")
    assert [row.damaged_from is None for row in lake.batches() if row.side == "traces"] == [False]

    bad.rmdir()
    (tmp_path / "kept").rename(bad)
    os.utime(bad, ns=(before.st_atime_ns, before.st_mtime_ns))
    lake.ingest()
    assert ids(lake) == ["m0", "m1"]
    assert [row.damaged_from for row in lake.batches() if row.side == "traces"] == [None, None]
    assert len(lake.ingest().batches) == 0


@pytest.mark.parametrize("dies_before", range(4, 9))
def test_a_file_that_could_not_be_opened_is_not_taken_for_read_when_the_run_is_killed(
    lake: Lake, spark: SparkSession, tmp_path: Path, dies_before: int
) -> None:
    """The storage gives it again before the killed run's batch is finished."""
    bad = lake.log("a.jsonl", [trace_line(0, shard_id=shard(0))])
    lake.log("b.jsonl", [trace_line(1, shard_id=shard(1))])
    before = bad.stat()
    place = str(tmp_path / "warehouse")
    lake.warehouse = Warehouse(spark, place, check=Dying(2))
    with pytest.raises(LockLostError):
        lake.ingest()
    bad.rename(tmp_path / "kept")
    bad.mkdir()  # root may read every file; nobody reads a folder as one
    lake.warehouse = Warehouse(spark, place, check=Dying(dies_before))
    with suppress(LockLostError):
        lake.ingest()
    bad.rmdir()
    (tmp_path / "kept").rename(bad)
    os.utime(bad, ns=(before.st_atime_ns, before.st_mtime_ns))
    lake.warehouse = Warehouse(spark, place)
    for _ in range(2):
        lake.ingest()
    assert ids(lake) == ["m0", "m1"]
    traced = spark.read.format("delta").load(f"{place}/fingerprints").where("side = 'traces'")
    assert traced.groupBy().sum("n").collect()[0][0] == 2
