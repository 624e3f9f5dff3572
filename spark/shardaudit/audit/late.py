"""An audit, and the minutes before its window that came late: they are audited with it.

A device that was offline sends what it wrote last week, a consumer delivers what it held back for
nine days: no window of the last days would ever look at it, and Kinesis drops it after a day.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.audit.published import audits_beside, with_late
from shardaudit.audit.watermarks import shard_records
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.watermark import Held
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from shardaudit.report.progress import SILENT, Progress
from shardaudit.report.summary import AuditReport
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_WINDOWS = 4  # each is an audit of its own
_LATE = (Held.CHANGED, Held.PENDING)  # what changed comes first: the other is looked at each night


def audited_with_late(
    warehouse: Warehouse,
    request: AuditRequest,
    gates: Gates,
    *,
    now: datetime,
    progress: Progress = SILENT,
) -> AuditReport:
    """The audit, and one of each span before its window that is not as it was when one looked.

    One of these that is rejected, or fails for good, is told as such, and the others go on.

    Raises:
        As `audit`.
    """
    report = audit(warehouse, request, gates, now=now, progress=progress)
    with progress.stage("audit what came late"):
        for window in _late_windows(warehouse, request, now=now):
            span = f"{request.name}: {instant(window.start)} to {instant(window.end)}"
            log.info("%s: traces or rows came late: audited, too", span)
            try:
                late = replace(request, window=window, late_of=report.audit_id)
                audit(warehouse, late, gates, now=now)
            except FinalError as error:
                log.error("%s: %s", span, error)
    # From the table: another run of the same request finds nothing late any more.
    return with_late(report, warehouse.rows(AUDITS, where=audits_beside(report)))


def _late_windows(warehouse: Warehouse, request: AuditRequest, *, now: datetime) -> list[Window]:
    """The spans that an audit of now has to look at besides its window; of another time none."""
    records = shard_records(warehouse, request.name).values()
    own = request.aligned
    if request.is_to_come(now) or any(
        record.as_of > request.as_of or record.audited_until > own.end for record in records
    ):
        return []
    spans = {
        (_LATE.index(hold.why), hold.start, min(hold.end, own.start))
        for record in records
        for hold in record.holds
        if hold.why in _LATE and hold.start < own.start
    }
    windows: list[Window] = []
    for _, start, end in sorted(spans):
        joined = _joined([*windows, Window(start, end)])
        # So all of it costs no more than the window; what has no place stays held till next time.
        if sum((one.end - one.start for one in joined), timedelta()) <= own.end - own.start:
            windows = joined
    return windows


def _joined(spans: Iterable[Window]) -> list[Window]:
    """At most so many windows that cover all spans: those are joined that lie nearest."""
    ordered: list[Window] = []
    for span in sorted(spans, key=lambda span: span.start):
        if ordered and span.start <= ordered[-1].end:
            ordered[-1] = Window(ordered[-1].start, max(ordered[-1].end, span.end))
        else:
            ordered.append(span)
    while len(ordered) > _MOST_WINDOWS:
        gaps = [after.start - before.end for before, after in pairwise(ordered)]
        at = gaps.index(min(gaps))
        ordered[at : at + 2] = [Window(ordered[at].start, ordered[at + 1].end)]
    return ordered
