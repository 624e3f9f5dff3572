"""A file of the warehouse that somebody deleted is named, whoever was to read it."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from shardaudit.adapters.engine.engine_errors import SparkInterruptedError
from shardaudit.adapters.lake.broken_tables import BrokenTableError
from shardaudit.cli.session import engine_errors
from shardaudit.model.tables.audit_tables import TRACES
from tests.builders import cut_off, trace_line
from tests.spark.audit.nights import settings_of
from tests.spark.lake import Lake


def test_the_engine_says_that_a_file_is_not_there(lake: Lake, tmp_path: Path) -> None:
    lake.log("a.jsonl", [trace_line(n) for n in range(3)])
    lake.ingest()
    place = lake.folder / "warehouse" / TRACES.name
    rows = lake.spark.read.format("delta").load(str(place))
    [path] = place.rglob("*.parquet")
    path.rename(tmp_path / "kept")
    told = pytest.raises(BrokenTableError, match=f"files that are gone: {path}")
    with told, engine_errors(settings_of(lake)):
        rows.collect()
    (tmp_path / "kept").rename(path)
    with pytest.raises(SparkInterruptedError), engine_errors(settings_of(lake)):
        raise PySparkException("Object at location of/somebody/else not found")
    cut_off(path)
    told = pytest.raises(BrokenTableError, match=f"of another length: {path}")
    with told, engine_errors(settings_of(lake)):
        lake.spark.read.format("delta").load(str(place)).collect()
