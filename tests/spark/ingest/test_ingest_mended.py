"""Traces of which nothing could be used as they were configured: read again once it is mended."""

import pytest

from shardaudit.audit.evidence import ingested
from tests.builders import Line, trace_line, write_parquet
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
