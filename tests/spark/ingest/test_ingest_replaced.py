"""The sink's folder holds another table than it did: the ledger is of the one that is there."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from shardaudit.audit.evidence import ingested
from shardaudit.model.errors import LockLostError
from shardaudit.store.warehouse import Warehouse
from tests.builders import sink_row
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake

IN_SINK = [2, 3, 4]  # before which write the first run dies: quarantine, fingerprints, done


def counted(lake: Lake) -> int:
    """The rows that the ledger counts, which must be those that its batches say they brought."""
    held = sum(totals[0] for totals in lake.ledger("sink").values())
    assert ingested(lake.warehouse, lake.name).counted["sink"] == held
    return held


@pytest.mark.parametrize("landed_since", [1, 2])
def test_all_is_read_anew_when_a_backup_was_put_back_and_written_on(
    lake: Lake, tmp_path: Path, landed_since: int
) -> None:
    lake.land([sink_row(0), sink_row(1)])
    shutil.copytree(lake.sink, tmp_path / "backup")
    lake.land([sink_row(2), sink_row(3), sink_row(4)])
    lake.ingest()
    shutil.rmtree(lake.sink)
    shutil.copytree(tmp_path / "backup", lake.sink)
    for number in range(landed_since):
        lake.land([sink_row(5 + number)])
    assert lake.ingest().sink_from_version is None
    assert counted(lake) == 2 + landed_since
    assert lake.ingest().batches == ()


def _made_again(lake: Lake) -> None:
    shutil.rmtree(lake.sink)
    lake.land([sink_row(7)])


def _made_again_longer(lake: Lake) -> None:
    _made_again(lake)
    for _ in range(3):
        lake.land()


def _moved(lake: Lake) -> None:
    elsewhere = lake.folder / "elsewhere"
    _made_again(lake)
    shutil.move(lake.sink, elsewhere)
    lake.settings = {"sink": {"path": str(elsewhere)}}


def _made_of_files(lake: Lake) -> None:
    shutil.rmtree(lake.sink)
    lake.sink_format = "parquet"
    lake.frame([sink_row(7)]).write.parquet(str(lake.sink))


def _cleaned_up(lake: Lake) -> None:
    """Only what a checkpoint of a later version holds is left."""
    lake.sql("DELETE FROM SINK WHERE message_id <> 'm0'")
    DeltaTable(lake.sink).create_checkpoint()
    for version in range(lake.version):
        (lake.sink / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.parametrize("write", IN_SINK)
@pytest.mark.parametrize(
    "changed", [_made_again, _made_again_longer, _moved, _made_of_files, _cleaned_up]
)
def test_the_next_run_goes_on_when_the_sink_was_replaced_after_one_died(
    lake: Lake, spark: SparkSession, changed: Callable[[Lake], None], write: int
) -> None:
    lake.land([sink_row(0), sink_row(1), sink_row(2, shard_id="")])
    path = str(lake.folder / "warehouse")
    lake.warehouse = Warehouse(spark, path, check=Dying(write))
    with pytest.raises(LockLostError):
        lake.ingest()
    lake.warehouse = Warehouse(spark, path)
    changed(lake)
    lake.ingest()
    assert counted(lake) == 1
