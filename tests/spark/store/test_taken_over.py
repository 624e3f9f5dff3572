"""A run that is taken over while the engine makes what it is going to commit: nothing lands."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from shardaudit.adapters.engine.collected import collected
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.backfill_tables import BACKFILL_IDS
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.warehouse import Warehouse

pytestmark = pytest.mark.both_engines

_TAKE_OVER = """
import sys
from shardaudit.model.config.settings import Settings
from tests.takeover import take_over
take_over(Settings.model_validate_json(sys.argv[1]))
"""
Write = Callable[[Warehouse, DataFrame], None]
OF_P = {"plan_id": ["p"]}
WRITES: dict[str, Write] = {
    "merge": lambda warehouse, rows: warehouse.merge(rows, BACKFILL_IDS),
    "replace": lambda warehouse, rows: warehouse.replace(rows, BACKFILL_IDS, having=OF_P),
    "append": lambda warehouse, rows: warehouse.append(rows, BACKFILL_IDS),
}


def planned(spark: SparkSession, window: str, *ids: str) -> DataFrame:
    rows = [("p", window, "events", one, None, None) for one in ids]
    return spark.createDataFrame(rows, BACKFILL_IDS.ddl)


def taken_over_meanwhile(rows: DataFrame, settings: Settings) -> DataFrame:
    """The rows; another process takes the warehouse over while they are made."""
    command = [sys.executable, "-c", _TAKE_OVER, settings.model_dump_json(exclude_defaults=True)]
    marker = f"{settings.warehouse}/made"

    def made(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        if not Path(marker).exists():  # some engines make them twice
            Path(marker).touch()
            subprocess.run(command, check=True)
        yield from batches

    return rows.coalesce(1).mapInArrow(made, rows.schema)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_lands_when_the_warehouse_is_taken_over_while_rows_are_made(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    settings = Settings(warehouse=str(tmp_path / "lake"), streams={})
    before = Warehouse(spark, settings.warehouse)
    before.append(planned(spark, "first", "a", "b"), BACKFILL_IDS)
    with warehouse_lock(settings, owner="first") as held:
        warehouse = Warehouse(spark, settings.warehouse, check=held.check)
        rows = taken_over_meanwhile(planned(spark, "late", "b", "c"), settings)
        with pytest.raises(LockLostError, match="taken over by second") as lost:
            write(warehouse, rows)
    assert lost.value.exit_code is ExitCode.RETRY
    assert (Path(settings.warehouse) / "made").exists()
    stored = {(row.message_id, row.window_id) for row in collected(before.read(BACKFILL_IDS))}
    assert stored == {("a", "first"), ("b", "first")}
    write(before, planned(spark, "second", "c"))  # whoever took it over
    windows = {row.window_id for row in collected(before.read(BACKFILL_IDS))}
    assert "second" in windows
    assert "late" not in windows
