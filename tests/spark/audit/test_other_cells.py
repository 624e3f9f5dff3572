"""A ledger's cells were cut with one bucket and share: an audit by itself goes by these."""

from datetime import timedelta

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from tests.builders import NOW, T0, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated


def test_an_audit_without_an_ingest_goes_by_the_cells_that_there_are(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line(n) for n in range(3)])
    lake.land([sink_row(n) for n in range(2)])
    lake.ingest(now=NOW)
    window = Window(T0, T0 + timedelta(minutes=5))
    for changed in ({"bucket": timedelta(minutes=5)}, {"sample_rate": 0.000001}):
        stream = lake.stream.model_copy(update=changed)
        request = AuditRequest(lake.name, stream, window, NOW, Retention(timedelta(days=7)))
        counts = audit(lake.warehouse, request, ungated(), now=NOW).counts
        assert (counts["sent"], counts["missing"]) == (3, 1)
