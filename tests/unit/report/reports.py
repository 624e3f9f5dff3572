"""An audit's report with sensible defaults."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shardaudit.model.verdict import Cause, Kind, Verdict
from shardaudit.report.summary import AuditReport, DeadlineLine, ShardLine

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def report(**fields: Any) -> AuditReport:  # Any: the fields of AuditReport
    """A report with a shard that lost something."""
    return replace(
        AuditReport(
            audit_id="events-1",
            stream="events",
            window_start=NOON - timedelta(days=1),
            window_end=NOON,
            as_of=NOON,
            status="published",
            engine="Apache Spark 4.1.4",
            verdict=Verdict.LOSS,
            counts={"sent": 1000, "landed": 1003, "matched": 997, "missing": 3, "duplicated": 2},
            trace_coverage=0.99987,
            self_check="passed",
            watermark=NOON - timedelta(hours=3),
            watermark_reason=None,
            cells_total=11520,
            cells_compared_by_id=12,
            worst_shards=(shard(),),
            deadlines=(deadline(),),
            quarantined=0,
            notes=(),
        ),
        **fields,
    )


def shard(**fields: Any) -> ShardLine:  # Any: the fields of ShardLine
    """A shard that lost three messages."""
    line = ShardLine("shardId-000000000003", Verdict.LOSS, 1000, 1003, 3, 0, 2, 0, 0)
    return replace(line, **fields)


def deadline(**fields: Any) -> DeadlineLine:  # Any: the fields of DeadlineLine
    """Three messages that are gone tomorrow."""
    until = NOON + timedelta(days=1, hours=2)
    return replace(
        DeadlineLine("shardId-000000000003", Kind.MISSING, Cause.LOST, 3, until), **fields
    )
