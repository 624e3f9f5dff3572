"""What is stored of each shard's audits so far: its record, and what holds its watermark."""

import logging
from dataclasses import replace
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.watermark import ShardRecord, unknown_before
from shardaudit.model.tables.audit_tables import AUDITS, WATERMARKS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.watermark import Hold, Watermark, holds_as_json, holds_from_json
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from shardaudit.store.audits import CLOCKS_DIFFER
from shardaudit.store.ledger_days import ledger_eras
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)


def in_eras(warehouse: Warehouse, request: AuditRequest) -> list[AuditRequest]:
    """`AuditRequest.by_era`, of the eras of the stream's ledger."""
    return request.by_era(ledger_eras(warehouse, request.name, request.stream))


def stored_watermark(warehouse: Warehouse, stream: str) -> Watermark:
    """Where the stream's watermark stands, for an audit that moves nothing."""
    at = [row["watermark"] for row in watermark_rows(warehouse, stream)]
    return Watermark(min(at, default=None))


def shard_records(warehouse: Warehouse, stream: str) -> dict[str, ShardRecord]:
    """By shard what was audited of it, and what holds its watermark."""
    return {row["shard_id"]: record_of(row) for row in watermark_rows(warehouse, stream)}


def stored_holds(warehouse: Warehouse, stream: str) -> dict[str, tuple[Hold, ...]]:
    """By shard what holds its watermark."""
    return {name: record.holds for name, record in shard_records(warehouse, stream).items()}


def watermark_rows(warehouse: Warehouse, stream: str) -> list[Row]:
    """The stream's rows of WATERMARKS."""
    return warehouse.rows(WATERMARKS, where=pc.field("stream") == stream)


def mend_records(warehouse: Warehouse, stream: str, *, now: datetime) -> None:
    """Takes back to now what an audit left by a clock that was wrong, far ahead.

    Else each audit until then would be one of an earlier time, and knew less: what is late would
    wait, and what is found would have run out.
    """
    wrong = [row for row in watermark_rows(warehouse, stream) if row["as_of"] > now + CLOCKS_DIFFER]
    if wrong:
        last = instant(max(row["as_of"] for row in wrong))
        log.warning("%s: an audit was as of %s, still to come: it does not count", stream, last)
        warehouse.upsert([row | _mended(row, now) for row in wrong], WATERMARKS)


def _mended(row: Row, now: datetime) -> dict[str, object]:
    until = now.replace(hour=0, minute=0, second=0, microsecond=0)  # a day is of whole buckets
    holds = [
        replace(hold, end=min(hold.end, until))
        for hold in record_of(row).holds
        if hold.start < until
    ]
    times = ("watermark", "audited_from", "audited_until")
    before = {name: min(row[name], until) for name in times if row[name] is not None}
    return before | {"as_of": now, "holds": holds_as_json(holds)}


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
