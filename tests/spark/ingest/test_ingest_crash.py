"""A crash between any two writes: the next run leaves the tables as if nothing had been."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.audit_tables import BATCHES, FINGERPRINTS, QUARANTINE, TRACES
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS, SIGHTINGS
from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse
from tests.builders import cut_off, noise, sink_row, trace_line
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake

# The writes of an undisturbed run. Traces: plan, quarantine, sessions, traces, fingerprints, done.
# Sink: plan, quarantine, fingerprints, done. Each crash is before the write of that number in its
# run, which takes back what the crash before it left of the traces (three writes), or goes on with
# what it left of the sink.
WRITES = 10
TRACES_CRASHES = [1, 2, 1, 2, 3, 4, 5, 1, 6, 2, 3, 7, 8]
SINK_CRASHES = [9, 2, 2, 3]


def contents(lake: Lake, *more: Table) -> dict[str, list[str]]:
    tables = (TRACES, FINGERPRINTS, QUARANTINE, BATCHES, TRACE_SESSIONS, *more)
    return {table.name: sorted(str(row) for row in lake.rows(table)) for table in tables}


def test_tables_are_the_same_when_runs_died_between_all_writes(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    numbered = [trace_line(number, session="s", session_seq=number) for number in range(40)]
    lake.log("a.jsonl", [*numbered, "bad", '{"gap":2,"session_seq":40,"session":"s"}'])
    cut_off(lake.log("b.gz", [trace_line(n, attributes={"n": noise(n)}) for n in range(900)]))
    lake.land([*(sink_row(number) for number in range(30)), sink_row(31, shard_id="")])
    lake.ingest()
    undisturbed = contents(lake)

    path = str(tmp_path / "disturbed")
    for before in [*TRACES_CRASHES, *SINK_CRASHES]:
        lake.warehouse = Warehouse(spark, path, check=Dying(before))
        with pytest.raises(LockLostError):
            lake.ingest()
    counting = Dying(before=100)
    lake.warehouse = Warehouse(spark, path, check=counting)
    lake.ingest()
    assert contents(lake) == undisturbed
    assert counting.calls == 3  # quarantine, fingerprints, done: the sink's plan was there

    fresh = Dying(before=100)
    lake.warehouse = Warehouse(spark, str(tmp_path / "third"), check=fresh)
    lake.ingest()
    assert fresh.calls == WRITES


def test_traces_of_places_are_the_same_when_runs_died_between_all_writes(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    lake.settings = {"locations": {"router": {"after": ["producer"]}}}
    seen = [trace_line(n, location="router", event=e) for n in range(9) for e in ("sent", None)]
    lake.log("a.jsonl", [*(trace_line(number) for number in range(9)), *seen, "bad"])
    lake.ingest()
    undisturbed = contents(lake, SIGHTINGS, SIGHTING_COUNTS)

    # Plan, then what the run before left is taken back (five writes), and seven more.
    for before in (1, 2, *range(6, 12)):
        lake.warehouse = Warehouse(spark, str(tmp_path / "disturbed"), check=Dying(before))
        with pytest.raises(LockLostError):
            lake.ingest()
    lake.warehouse = Warehouse(spark, str(tmp_path / "disturbed"))
    lake.ingest()
    assert contents(lake, SIGHTINGS, SIGHTING_COUNTS) == undisturbed
    assert len(undisturbed["sightings"]) == 18
