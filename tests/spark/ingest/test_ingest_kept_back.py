"""A trace file that cannot be opened is set aside by its name, and read as soon as it can be."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.model.errors import ClaimLostError
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
    with pytest.raises(ClaimLostError):
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
