"""Traces of which nothing could be used as they were configured: read again once it is mended."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.evidence import ingested
from shardaudit.model.errors import LockLostError
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, Line, trace_line, write_parquet
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake

LINES = [trace_line(number) for number in range(3)]


def renamed(line: Line) -> Line:
    return {"id" if name == "message_id" else name: value for name, value in line.items()}


def counted(lake: Lake) -> int:
    held = sum(totals[0] for totals in lake.ledger("traces").values())
    assert len(lake.kept()) == held == ingested(lake.warehouse, lake.name).counted["traces"]
    return held


def test_traces_are_read_again_when_their_columns_were_mended(lake: Lake) -> None:
    lake.log("a.jsonl", [renamed(line) for line in LINES])
    lake.ingest()
    assert counted(lake) == 0
    lake.trace_columns = {"message_id": "id"}
    lake.log("b.jsonl", [renamed(trace_line(5))])
    assert lake.ingest().trace_files == 2
    assert counted(lake) == 4
    assert lake.ingest().trace_files == 0


def test_traces_are_read_again_when_their_format_was_mended(lake: Lake) -> None:
    write_parquet(lake.traces / "a.parquet", LINES)
    lake.ingest()
    lake.traces_format = "parquet"
    assert lake.ingest().trace_files == 1
    assert sum(totals[0] for totals in lake.ledger("traces").values()) == 3
    assert ingested(lake.warehouse, lake.name).damage.traces == ()
    assert lake.ingest().trace_files == 0


def test_traces_are_read_again_when_the_name_of_the_stream_was_mended(lake: Lake) -> None:
    lake.log("a.jsonl", [{**line, "stream": "right"} for line in LINES])
    lake.ingest()
    lake.settings = {"stream_name": "right"}
    assert lake.ingest().trace_files == 1
    assert counted(lake) == 3
    assert lake.ingest().trace_files == 0


@pytest.mark.parametrize("lines", [LINES, [*LINES, {"message_id": "no shard"}]])
def test_traces_stay_as_they_are_when_producers_name_them_otherwise_from_a_day_on(
    lake: Lake, lines: list[Line]
) -> None:
    lake.log("a.jsonl", lines)
    lake.ingest()
    lake.trace_columns = {"message_id": "id"}
    lake.log("b.jsonl", [renamed(trace_line(5))])
    assert lake.ingest().trace_files == 1
    assert counted(lake) == 4


def test_what_is_read_again_is_a_batch_of_its_own(lake: Lake) -> None:
    """A gate sees by itself that nothing was mended: good lines beside it would hide that."""
    lake.log("a.jsonl", [{**line, "sent_at": "yesterday"} for line in LINES])
    lake.ingest()
    lake.trace_columns = {"attempt": "try"}
    lake.log("b.jsonl", [trace_line(number) for number in range(10, 30)])
    lake.ingest()
    of_traces = [row for row in lake.batches() if row.side == "traces"]
    assert [(row.rows, row.quarantined) for row in of_traces] == [(0, 3), (0, 3), (20, 0)]


def test_a_batch_that_a_crash_left_keeps_the_names_that_it_was_planned_with(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    lake.log("a.jsonl", [{**line, "stream": "right"} for line in LINES])
    lake.settings = {"stream_name": "right"}
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"), check=Dying(2))
    with pytest.raises(LockLostError):
        lake.ingest()
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"))
    lake.settings = {"stream_name": "wrong"}
    lake.ingest()
    assert counted(lake) == 3


def test_a_line_that_came_between_a_crash_and_the_next_run_arrived_by_that_run(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    lake.log("a.jsonl", LINES)
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"), check=Dying(2))
    with pytest.raises(LockLostError):
        lake.ingest()
    lake.warehouse = Warehouse(spark, str(tmp_path / "warehouse"))
    lake.log("a.jsonl", [*LINES, trace_line(5)])
    later = NOW + timedelta(hours=20)
    lake.ingest(now=later)
    assert {row.ingested_at for row in lake.kept()} == {later.replace(tzinfo=None)}
