"""What is stored of each shard's audits so far: its record, and what holds its watermark."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import ingested
from shardaudit.audit.rules.watermark import ShardRecord, unknown_before, without
from shardaudit.model.tables.audit_tables import AUDITS, WATERMARKS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.watermark import Held, Hold, Watermark, holds_as_json, holds_from_json
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from shardaudit.store.audits import published_of
from shardaudit.store.ledger_days import day_digests, first_day, ledger_eras
from shardaudit.store.warehouse import Warehouse

TO_COME = "as of a time that is still to come: it moves nothing"
_DAY = timedelta(days=1)

log = logging.getLogger(__name__)


def in_eras(warehouse: Warehouse, request: AuditRequest) -> list[AuditRequest]:
    """`AuditRequest.by_era`, of the eras of the stream's ledger."""
    return request.by_era(ledger_eras(warehouse, request.name, request.stream))


def stored_watermark(warehouse: Warehouse, stream: str) -> Watermark:
    """Where the stream's watermark stands, for an audit that moves nothing."""
    at = [row["watermark"] for row in watermark_rows(warehouse, stream)]
    return Watermark(min(at, default=None))


def unmoved_watermark(warehouse: Warehouse, stream: str) -> Watermark:
    """The stream's, where an audit of a time to come leaves it."""
    return Watermark(stored_watermark(warehouse, stream).at, TO_COME)


def shard_records(warehouse: Warehouse, stream: str) -> dict[str, ShardRecord]:
    """By shard what was audited of it, and what holds its watermark."""
    return {row["shard_id"]: record_of(row) for row in watermark_rows(warehouse, stream)}


def stored_holds(warehouse: Warehouse, stream: str) -> dict[str, tuple[Hold, ...]]:
    """By shard what holds its watermark."""
    return {name: record.holds for name, record in shard_records(warehouse, stream).items()}


def watermark_rows(warehouse: Warehouse, stream: str) -> list[Row]:
    """The stream's rows of WATERMARKS."""
    return warehouse.rows(WATERMARKS, where=pc.field("stream") == stream)


def mend_records(warehouse: Warehouse, request: AuditRequest, *, now: datetime) -> None:
    """Takes back to today what an audit left by a clock that was wrong, more than two days ahead.

    Else each audit until then would be one of an earlier time, and knew less: what is late would
    wait, and what is found would have run out. Less passes by itself. But not where it is this
    clock that is wrong: it is behind the time that is asked for, or days behind the messages.
    """
    name, then = request.name, now + 2 * _DAY
    wrong = [row for row in watermark_rows(warehouse, name) if row["as_of"] > then]
    if not wrong:
        return
    last = instant(max(row["as_of"] for row in wrong))
    days = day_digests(warehouse, name)
    # Of the day after tomorrow no ingest takes a trace: it is not behind a device that is ahead.
    if request.is_to_come(now) or then.date() in days:
        log.warning("%s: an audit was as of %s, and this clock says %s", name, last, instant(now))
        return
    log.warning("%s: an audit was as of %s, still to come: it does not count", name, last)
    is_mistimed = (pc.field("as_of") > pc.scalar(then)) & (pc.field("started_at") > pc.scalar(then))
    mistimed = warehouse.rows(AUDITS, where=published_of(name) & is_mistimed)
    # First: the records are what says that there is something to mend.
    warehouse.upsert([row | {"status": AuditStatus.REJECTED.value} for row in mistimed], AUDITS)
    until = now.replace(hour=0, minute=0, second=0, microsecond=0)  # a day is of whole buckets
    first = datetime.combine(min(days, default=until.date()), time(), UTC)
    reach = max(request.retention.length, request.stream.audit_window, _DAY)
    since = min(max(first, until - reach), until - _DAY)
    warehouse.upsert([row | _mended(row, since, until) for row in wrong], WATERMARKS)


def _mended(row: Row, since: datetime, until: datetime) -> dict[str, object]:
    """The row as of then; where all that was audited is of later, that since then is to be."""
    since = since if row["audited_from"] >= until else row["audited_from"]
    holds = [
        replace(hold, end=min(hold.end, until))
        for hold in record_of(row).holds
        if hold.start < until
    ]
    if since < row["audited_from"]:
        holds.append(Hold(since, until, Held.UNAUDITED))
    return {
        "as_of": until,
        "audited_from": since,
        "audited_until": min(row["audited_until"], until),
        "watermark": min([row["watermark"] or until, until, *(hold.start for hold in holds)]),
        "holds": holds_as_json(holds),
    }


def record_of(row: Row) -> ShardRecord:
    """What a row of WATERMARKS says."""
    holds = holds_from_json(row["holds"])
    return ShardRecord(row["audited_from"], row["audited_until"], row["as_of"], holds)


def audited_with(begun: ShardRecord, request: AuditRequest) -> Window:
    """All that was audited of a stream, with this window: `begun` is its record before."""
    return Window(begun.audited_from, max(begun.audited_until, request.aligned.end))


def to_be_audited(warehouse: Warehouse, request: AuditRequest) -> Window:
    """`audited_with` of what is stored."""
    known = shard_records(warehouse, request.name).values()
    begun = unknown_before(known, as_of=request.as_of) or record_before(warehouse, request)
    return audited_with(begun, request)


def never_used(warehouse: Warehouse, stream: str, records: Iterable[ShardRecord]) -> list[Window]:
    """The times before the day of the stream's first message, where nobody audited them.

    There is nothing to look at; but what an unreadable file may hide. A place's message is one,
    too: its producer's trace may be lost.
    """
    holds = [h.window for record in records for h in record.holds if h.why is Held.UNAUDITED]
    if not holds:
        return []
    start = min(window.start for window in holds)
    begins = datetime.combine(first_day(warehouse, stream), time(), UTC)
    if begins <= start:
        return []
    damage = ingested(warehouse, stream).damage
    spans = [Window(*span) for span in damage.traces + damage.sink]
    before = Hold(start, begins, Held.UNAUDITED)
    return [hold.window for hold in without([before], spans)]


def record_before(warehouse: Warehouse, request: AuditRequest) -> ShardRecord:
    """The record of a shard before the stream's first published audit, which this one is.

    It begins with the first window that one asked for, though it was rejected, or failed: since the
    last one that was published, which found no shard, and as far back as later audits reach.
    """
    audits = warehouse.rows(AUDITS, where=pc.field("stream") == request.name)
    seen = [row["as_of"] for row in audits if row["status"] == AuditStatus.PUBLISHED]
    done = max((as_of for as_of in seen if as_of <= request.as_of), default=None)
    starts = [
        row["window_start"]
        for row in audits
        if row["status"] != AuditStatus.PUBLISHED and (done is None or row["as_of"] > done)
    ]
    own, bucket = request.aligned, request.stream.bucket
    reach = max(request.retention.length, request.stream.audit_window) // bucket * bucket
    first = max(min([*starts, own.start]), own.start - reach)
    return ShardRecord(first, first, request.as_of, ())
