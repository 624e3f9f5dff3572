"""A run dies, and its input files are gone before the next one: the ledger still adds up."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.evidence import ingested
from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.store.warehouse import Warehouse
from tests.builders import sink_row, trace_line, write_parquet
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake

DAY = 86_400
# Before which write the first run dies. Traces: plan, quarantine, traces, fingerprints, done;
# of the sink: plan, quarantine, fingerprints, done.
IN_TRACES = [2, 3, 4, 5]
IN_SINK = [7, 8, 9]


@pytest.fixture
def died(lake: Lake, spark: SparkSession, tmp_path: Path) -> Callable[[int], None]:
    """Ingests until a write, and no further."""

    def ingest_until(write: int) -> None:
        lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"), check=Dying(write))
        with pytest.raises(LockLostError):
            lake.ingest()
        lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"))

    return ingest_until


def held(lake: Lake, side: str) -> int:
    return sum(totals[0] for totals in lake.ledger(side).values())


@pytest.mark.parametrize("write", IN_TRACES)
@pytest.mark.parametrize("leaves", ["nothing", "one file"])
def test_traces_add_up_when_their_files_went_before_the_next_run(
    lake: Lake, died: Callable[[int], None], write: int, leaves: str
) -> None:
    gone = [lake.log("a.jsonl", [*(trace_line(n) for n in range(9)), "not json"])]
    rest = lake.log("b.jsonl", [trace_line(n) for n in (DAY, DAY + 1)])
    died(write)
    for path in gone if leaves == "one file" else [*gone, rest]:
        path.unlink()
    lake.ingest()
    is_kept = write > IN_TRACES[1]  # the traces were written: nothing is lost
    kept = 11 if is_kept else 2 * (leaves == "one file")
    assert (held(lake, "traces"), len(lake.kept())) == (kept, kept)
    assert ingested(lake.warehouse, lake.name).counted["traces"] == kept
    [batch] = [row for row in lake.batches() if row.side == "traces"]
    assert (batch.damaged_from is None) == is_kept
    reasons = {row.reason for row in lake.refused() if row.file == str(gone[0])}
    assert ("the file is gone" in reasons) != is_kept
    assert ("the line is not JSON" in reasons) == (write > IN_TRACES[0])


def test_traces_come_again_when_a_file_was_written_anew_before_the_next_run(
    lake: Lake, died: Callable[[int], None]
) -> None:
    lake.log("a.jsonl", [trace_line(0), trace_line(1)])
    died(4)  # no bad line, no quarantine: before the end
    lake.log("a.jsonl", [trace_line(1), trace_line(2)])
    lake.ingest()
    assert sorted(row.message_id for row in lake.kept()) == ["m0", "m1", "m2"]
    assert held(lake, "traces") == ingested(lake.warehouse, lake.name).counted["traces"] == 3


@pytest.mark.parametrize("write", IN_SINK)
def test_rows_add_up_when_files_of_the_sink_went_before_the_next_run(
    spark_lake: Lake, died: Callable[[int], None], write: int
) -> None:
    lake = spark_lake
    lake.sink_format = "parquet"
    lake.sink.rename(lake.sink.with_name("delta"))
    lake.log("a.jsonl", [*(trace_line(n) for n in range(9)), "not json"])
    gone = write_parquet(
        lake.sink / "a.parquet", [sink_row(0), sink_row(1), sink_row(2, shard_id="")]
    )
    write_parquet(lake.sink / "b.parquet", [sink_row(4)])
    died(write)
    gone.unlink()
    lake.ingest()
    lake.ingest()
    assert held(lake, "sink") == ingested(lake.warehouse, lake.name).counted["sink"] == 1
    assert lake.landed_now().scan().rows.count() == 1
    assert [row.damaged_from for row in lake.batches()] == [None] * len(lake.batches())


def test_only_what_is_old_is_left_out_when_the_first_batch_does_not_say_what_it_counted(
    lake: Lake,
) -> None:
    lake.log("a.jsonl", [trace_line(0), trace_line(1)])
    lake.ingest()
    [first] = lake.warehouse.rows(BATCHES, where=pc.field("side") == "traces")
    lake.warehouse.upsert([first | {"counted": None}], BATCHES)
    lake.log("b.jsonl", [trace_line(2)])
    lake.ingest()
    assert ingested(lake.warehouse, lake.name).counted["traces"] == 3 == held(lake, "traces")
