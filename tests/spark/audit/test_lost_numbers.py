"""Traces that never came are told of their producer, until they come; no verdict looks at it."""

import os
import signal
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from shardaudit.adapters.clock import now
from shardaudit.ingest.producer_numbers import producer_lines
from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.page.page_reading import read_line
from shardaudit.report.summary import HoleLine, ProducerLine
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, Line, sink_row, trace_line
from tests.spark.audit.nights import audited, published, settings_of
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake
from tests.unit.producer.puts import health, logged, python

KEPT = pa.schema(
    [(name, pa.string()) for name in ("message_id", "shard_id", "sequence_number", "session")]
    + [("sent_at", pa.timestamp("us", "UTC")), ("session_seq", pa.int64())]
)


def numbered(number: int, session: str = "9b1d", **more: str | int) -> Line:
    return trace_line(number, producer_id="p", session=session, session_seq=number, **more)


def log(lake: Lake, name: str, numbers: range) -> None:
    """One more file: of JSON, or plain Parquet."""
    lines = [numbered(number) for number in numbers]
    if lake.traces_format == "json":
        lake.log(f"{name}.jsonl", lines)
        return
    rows = [
        {**line, "sent_at": T0 + timedelta(seconds=n)}
        for n, line in zip(numbers, lines, strict=True)
    ]
    lake.traces.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, KEPT), lake.traces / f"{name}.parquet")


def lost(lake: Lake, window: Window, as_of: datetime) -> tuple[ProducerLine, ...]:
    return producer_lines(lake.warehouse, lake.name, window, as_of=as_of)


@pytest.mark.parametrize("traces_format", ["json", "parquet"])
def test_a_hole_is_told_everywhere_until_its_file_comes(lake: Lake, traces_format: str) -> None:
    lake.traces_format = traces_format
    lake.settings["retention"] = timedelta(days=1)
    log(lake, "a", range(100))
    log(lake, "c", range(103, 200))
    lake.land([sink_row(number) for number in range(200)])
    report = audited(lake, 0)
    at = [T0 + timedelta(seconds=n) for n in (99, 103)]
    name = "" if traces_format == "parquet" else "p"  # no column of it
    hole = HoleLine("9b1d", 100, 102, *at)
    assert report.producers == (
        ProducerLine("producer", name, 200, 197, dropped=0, lost=3, holes=(hole,)),
    )
    [note] = report.notes
    assert "3 numbers never came (session 9b1d: 100 to 102, 2026-11-20T12:01:39Z" in note
    assert ": 98.50% of what it numbered in this window came. " in note
    again = published(lake, report)
    assert (again.producers, again.notes) == (report.producers, report.notes)
    audits = lake.warehouse.rows(AUDITS, where=pc.scalar(True))
    now = report.as_of
    line, _ = read_line(settings_of(lake), lake.name, audits, findings=[], now=now)
    assert line.notes == report.notes

    log(lake, "b", range(100, 103))
    report = audited(lake, 0)
    assert (report.verdict, report.notes) == (Verdict.OK, ())
    assert [(one.came, one.lost) for one in report.producers] == [(200, 0)]


def test_no_number_lacks_that_is_of_another_stream_or_not_in_the_sample(lake: Lake) -> None:
    lake.settings["sample_rate"] = 0.1
    others = ["kinesis-events", "another"]
    lake.log("a.jsonl", [numbered(n, stream=others[n % 2]) for n in range(0, 400)])
    lake.log("b.jsonl", [numbered(n, "other", stream="another") for n in range(50)])
    lake.land([sink_row(number) for number in range(0, 400, 2)])
    report = audited(lake, 0)
    assert [(one.came, one.lost) for one in report.producers] == [(450, 0)]
    assert "never came" not in " ".join(report.notes)
    assert 0 < report.counts["sent"] < 60


BUSY = """
import os, signal, sys, time
from dataclasses import replace
from shardaudit.producer.trace_folder import DiskFolder
from shardaudit.producer.trace_log import TraceLog
from tests.unit.producer.puts import QUICK, TELLER, traces
limits = replace(QUICK, file_age_s=0.05, health_every_s=0.05)
log, number = TraceLog(DiskFolder(sys.argv[1]), TELLER, limits), 0
until = time.monotonic() + 2
while time.monotonic() < until:
    log.add(traces(number, 20))
    number += 20
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_tail_of_a_killed_producer_is_told_once_its_files_are_overdue(lake: Lake) -> None:
    process = python(BUSY, str(lake.traces))
    assert process.returncode == -signal.SIGKILL, process.stderr
    came = [line["session_seq"] for line in logged(lake.traces) if "message_id" in line]
    dropped = sum(line.get("gap", 0) for line in logged(lake.traces))
    said = [line["health"] for line in health(lake.traces)]
    known = max(one["written"] + one["dropped"] + one["queued"] for one in said)
    tail = known - len(came) - dropped
    assert came
    assert tail > 0  # what waited while the last file was written
    lake.ingest(now=now())
    # Their traces are acknowledged at noon, as the test has it.
    window = Window(datetime(2026, 11, 24, tzinfo=UTC), now() + timedelta(days=1))
    assert [one.lost for one in lost(lake, window, now())] == [0]
    [line] = lost(lake, window, now() + timedelta(minutes=11))
    assert (line.lost, line.came, line.dropped) == (tail, len(came), dropped)
    assert [(hole.first, hole.last) for hole in line.holes] == [(known - tail, known - 1)]
    assert line.broken == ()  # nobody was heard of since: files may be late
    later = now() + timedelta(minutes=11)
    lake.log("later.jsonl", [numbered(0, "later", acked_at=later.isoformat())])
    lake.ingest(now=later)
    lines = lost(lake, window, later)
    assert [(one.broken_off, one.broken[0].known) for one in lines if one.broken] == [(1, known)]


@pytest.mark.parametrize("traces_format", ["json", "parquet"])
def test_numbers_are_stored_once_when_runs_died_between_the_writes(
    lake: Lake, spark: SparkSession, tmp_path: os.PathLike[str], traces_format: str
) -> None:
    lake.traces_format = traces_format
    log(lake, "a", range(30))
    log(lake, "b", range(40, 50))
    lake.land([sink_row(0)])
    for before in range(2, 12):
        lake.warehouse = Warehouse(spark, f"{tmp_path}/disturbed", check=Dying(before))
        try:
            lake.ingest()
        except LockLostError:
            continue
        break
    lake.warehouse = Warehouse(spark, f"{tmp_path}/disturbed")
    lake.ingest()
    spans = [(row.told, row.first_seq, row.last_seq) for row in lake.rows(TRACE_SESSIONS)]
    assert sorted(spans) == [("lines", 0, 29), ("lines", 40, 49)]
