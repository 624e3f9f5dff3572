"""The files of the ledger of batches: few, whatever the number of ingests, and no row is lost."""

from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from shardaudit.ingest.batches import Batches, BatchResult
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.errors import LockLostError
from shardaudit.model.source import SourceFile
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW
from tests.spark.ingest.dying import Dying

SHAPE = Eras(CellShape(bucket_s=60, sample_rate=1.0))
open_batches = partial(Batches[TraceInputs], side="traces", parse=TraceInputs.from_json)


def written(warehouse: Warehouse, number: int) -> None:
    inputs = TraceInputs(columns={}, shape=SHAPE, files=(SourceFile(f"/{number}", 1, 1),))
    batches = open_batches(warehouse, "events")
    batch = batches.plan(inputs, at=NOW)
    batches.finish(batch, inputs, result=BatchResult(number, number, 0), at=NOW)


def test_files_stay_few_when_many_batches_were_planned_and_one_died_as_they_were_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse, folder = Warehouse(spark, str(tmp_path)), tmp_path / BATCHES.name
    for number in range(1, 10):
        written(warehouse, number)
    assert len(DeltaTable(folder).file_uris()) == 9
    with pytest.raises(LockLostError):
        written(Warehouse(spark, str(tmp_path), check=Dying(before=1)), 10)
    with pytest.raises(LockLostError):  # merged by then, and not planned
        written(Warehouse(spark, str(tmp_path), check=Dying(before=2)), 10)
    assert len(DeltaTable(folder).file_uris()) == 1
    written(warehouse, 10)
    assert len(DeltaTable(folder).file_uris()) == 2
    done = open_batches(warehouse, "events").done
    assert [file.path for one in done for file in one.files] == [f"/{n}" for n in range(1, 11)]
