"""One message comes late to a minute of which all landed, and left the sink when it was old."""

from datetime import timedelta

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.rules.gaps import LEAST_MISSING
from shardaudit.model.retention import Retention
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from tests.builders import T0, sequence, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def _audited(lake: Lake, hours: int) -> AuditReport:
    now = T0 + hours * HOUR
    lake.ingest(now=now)
    window = Window(T0, T0 + 2 * MINUTE)
    request = AuditRequest(lake.name, lake.stream, window, now, Retention(24 * HOUR))
    return audit(lake.warehouse, request, ungated(), now=now)


def test_it_alone_is_missing_when_all_others_landed_and_are_gone(lake: Lake) -> None:
    many = [{"message_id": f"m-{n}", "sequence_number": sequence(n)} for n in range(LEAST_MISSING)]
    lake.log("a.jsonl", [trace_line(0, **of) for of in many])
    lake.land([sink_row(0, **of) for of in many])
    _audited(lake, 2)
    lake.sql("DELETE FROM SINK WHERE message_id LIKE 'm-%'")
    at = T0 + 40 * HOUR
    late = {"message_id": "held-back", "sequence_number": sequence(9_000)}
    lake.log("b.jsonl", [trace_line(0, acked_at=at.isoformat(), **late)])
    lake.land([sink_row(60, landed_at=at, sequence_number=sequence(9_001))])
    _audited(lake, 60)
    counts = _audited(lake, 61).counts
    assert (counts["vanished"], counts["missing"]) == (LEAST_MISSING, 1)
    assert lake.rows(GAPS) == []
