"""An audit, and the minutes before its window that it can settle: they are audited with it.

A device that was offline sends what it wrote last week, a consumer delivers what it held back for
nine days, a night is left out, a broken file is replaced: no window of the last days would ever
look at it, and Kinesis drops it after a day.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import ingested
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.audit.published import audits_beside, with_late
from shardaudit.audit.rules.watermark import without
from shardaudit.audit.watermarks import shard_records
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window, joined
from shardaudit.report.plain import instant
from shardaudit.report.progress import SILENT, Progress
from shardaudit.report.summary import AuditReport
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_WINDOWS = 4  # each is an audit of its own
# What an audit can settle. What changed comes first, what was on its way is looked at each night.
_LATE = (Held.CHANGED, Held.UNAUDITED, Held.DAMAGED, Held.PENDING)


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
            log.info("%s: not proven complete: audited, too", span)
            try:
                over = judged_over(window, request.aligned)
                late = replace(request, window=window, late_of=report.audit_id, judged_over=over)
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
    # What nobody audited is made up for as far back as the stream, or an audit, reaches.
    since = own.start - max(request.retention.length, request.stream.audit_window)
    early = [hold for record in records for hold in record.holds if hold.start < own.start]
    return late_windows(
        (
            replace(hold, start=max(hold.start, since)) if hold.why is Held.UNAUDITED else hold
            for hold in early
            if hold.why is not Held.UNAUDITED or hold.end > since
        ),
        own,
        bucket=request.stream.bucket,
        kept_from=request.as_of - request.retention.length,
        damage=_damage(warehouse, request.name, early),
    )


def _damage(warehouse: Warehouse, name: str, holds: Iterable[Hold]) -> list[Window]:
    """What an unreadable file may have fed, as of now; not looked for where it holds nothing."""
    if not any(hold.why is Held.DAMAGED for hold in holds):
        return []
    damage = ingested(warehouse, name).damage
    return [Window(*span) for span in damage.traces + damage.sink]


def late_windows(
    holds: Iterable[Hold],
    own: Window,
    *,
    bucket: timedelta,
    kept_from: datetime,
    damage: Sequence[Window],
) -> list[Window]:
    """The spans that an audit has to look at besides its own window.

    Few, and together no longer than its own: so all of it costs no more than twice as much. What
    has no place stays held till next time.

    Input:
        holds: of all shards; own, bucket: the window, in whole buckets.
        kept_from: what was sent then the stream still has. damage: what an unreadable file may
        have fed, as of now.
    """
    early = [hold for hold in holds if hold.start < own.start]
    early = [*(h for h in early if h.why is not Held.DAMAGED), *_healed(early, damage)]
    windows: list[Window] = []
    for piece in _pieces(early, own, bucket=bucket, kept_from=kept_from):
        wider = joined([*windows, piece], most=_MOST_WINDOWS)
        if sum((one.end - one.start for one in wider), timedelta()) <= own.end - own.start:
            windows = wider
    return windows


def judged_over(late: Window, own: Window) -> Window:
    """The night to whose totals late minutes belong: the window, moved back by whole lengths."""
    length = own.end - own.start
    start = own.start - ((own.start - late.end) // length + 1) * length
    return Window(min(start, late.start), start + length)


def _healed(holds: Iterable[Hold], damage: Sequence[Window]) -> list[Hold]:
    return without((hold for hold in holds if hold.why is Held.DAMAGED), damage)


def _pieces(
    holds: Sequence[Hold], own: Window, *, bucket: timedelta, kept_from: datetime
) -> list[Window]:
    """The spans in pieces of a quarter of the window: of each reason the first ones first.

    So no reason takes all that there is, and what is longer than the window is done in some nights.
    The oldest first, but of what nobody ever looked at that which can still be recovered.
    """
    length = max(bucket, (own.end - own.start) // _MOST_WINDOWS // bucket * bucket)
    ranked: list[tuple[int, int, Window]] = []
    for place, why in enumerate(_LATE):
        mine = [Window(h.start, min(h.end, own.start)) for h in holds if h.why is why]
        pieces = [piece for span in joined(mine) for piece in span.parts(length)]
        if why is Held.UNAUDITED:
            pieces.sort(key=lambda piece: (piece.end <= kept_from, piece.start))
        ranked += [(nth, place, piece) for nth, piece in enumerate(pieces)]
    return [piece for *_, piece in sorted(ranked, key=lambda one: one[:2])]
