"""Traces of other places than the producer: what passed a router was not acknowledged by it."""

from collections.abc import Sequence

import pytest
from pyspark.sql import Row

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS, FINGERPRINTS, QUARANTINE
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from tests.builders import NOW, T0, Line, sequence, shard, sink_row, trace_line, write_parquet
from tests.spark.lake import Lake

FORMS = [pytest.param("json", marks=pytest.mark.drill), "parquet"]
ENRICHED = {"location": "enrich", "shard_id": shard(7), "sequence_number": sequence(900)}


def logged(lake: Lake, form: str, lines: Sequence[Line]) -> None:
    if form == "json":
        lake.log("a.jsonl", lines)
        return
    lake.traces_format = "parquet"
    write_parquet(lake.traces / "a.parquet", [{"location": None} | dict(line) for line in lines])


def audited(lake: Lake) -> AuditReport:
    lake.ingest()
    window = Window(T0, T0 + lake.stream.bucket)
    request = AuditRequest(lake.name, lake.stream, window, NOW, Retention(lake.stream.audit_window))
    return audit(lake.warehouse, request, open_gates(None), now=NOW)


def refused(lake: Lake) -> list[Row]:
    return lake.rows(QUARANTINE)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_router_alone_traced_is_no_loss(lake: Lake, form: str) -> None:
    logged(lake, form, [trace_line(0), trace_line(1), trace_line(2) | ENRICHED])
    lake.land([sink_row(0), sink_row(1)])
    report = audited(lake)
    assert (report.verdict, report.counts["sent"]) == (Verdict.OK, 2)
    assert [note for note in report.notes if "of the location producer" in note]
    assert lake.rows(FINDINGS) == []
    assert [row.reason for row in refused(lake)] == [
        "the trace is of another location than producer"
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_router_does_not_move_the_message_that_it_passed_on(lake: Lake, form: str) -> None:
    lines = [trace_line(0), trace_line(0) | ENRICHED, trace_line(1) | ENRICHED, trace_line(1)]
    logged(lake, form, lines)
    lake.land([sink_row(0), sink_row(1)])
    assert audited(lake).verdict == Verdict.OK
    cells = [row for row in lake.rows(FINGERPRINTS) if row.side == "traces"]
    assert {row.shard_id for row in cells} == {shard(0)}
    assert {row.location for row in cells} == {"producer"}
    assert len(refused(lake)) == 2


def test_a_column_that_is_no_place_is_mapped_away(lake: Lake) -> None:
    lake.trace_columns = {"location": "no such column"}
    logged(lake, "json", [trace_line(0, location="eu-west-1")])
    lake.land([sink_row(0)])
    report = audited(lake)
    assert (report.verdict, report.counts["sent"], refused(lake)) == (Verdict.OK, 1, [])
