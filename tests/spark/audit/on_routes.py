"""What places trace of a message, and an audit of a route with what it found."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.late import audit_with_late
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from tests.builders import NOW, T0, Line, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

EACH = 20  # faults of a kind and hop


def sighting(number: int, location: str, event: str, copy: int = 0) -> Line:
    acked_at = (T0 + (NOW - T0) / 4).isoformat()
    # A session of its own: what a test leaves out is no number that never came.
    session = f"{location} {number} {event}"
    who = {"session": session, "session_seq": copy, "acked_at": acked_at}
    return trace_line(number, location=location, event=event, **who)


def passed(number: int, places: tuple[str, ...], copies: int = 1) -> Iterator[Line]:
    for place in places:
        for event in ("received", "sent"):
            yield from (sighting(number, place, event, copy) for copy in range(copies))


def audited(lake: Lake, *, window: Window | None = None) -> AuditReport:
    window = window or Window(T0, T0 + 8 * lake.stream.bucket)
    request = AuditRequest(lake.name, lake.stream, window, NOW, Retention(lake.stream.audit_window))
    return audit(lake.warehouse, request, ungated(), now=NOW)


def told(lake: Lake) -> Counter[tuple[str, str | None]]:
    return Counter((row.kind, row.location) for row in lake.rows(FINDINGS))


def settings_of(lake: Lake) -> Settings:
    streams = {lake.name: lake.stream.model_dump()}
    return Settings.model_validate(
        {"warehouse": str(lake.folder / "warehouse"), "streams": streams}
    )


def audited_with_late(
    lake: Lake, *, window: Window | None = None, as_of: datetime | None = None
) -> AuditReport:
    over, now = window or Window(T0, T0 + timedelta(hours=4)), as_of or T0 + timedelta(hours=6)
    kept = Retention(lake.stream.audit_window)
    request = AuditRequest(lake.name, lake.stream, over, now, kept)
    return audit_with_late(lake.warehouse, request, ungated(), now=now)


def of_filters(report: AuditReport) -> list[str]:
    """The notes of it; others tell of numbers, which these traces do not give."""
    return [note for note in report.notes if "numbers never came" not in note]
