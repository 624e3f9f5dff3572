"""What is stored of each shard's audits so far: its record, and what holds its watermark."""

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.watermark import ShardRecord, unknown_before
from shardaudit.model.tables.audit_tables import AUDITS, WATERMARKS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.watermark import Hold, Watermark, holds_from_json
from shardaudit.model.window import Window
from shardaudit.store.ledger_days import ledger_eras
from shardaudit.store.warehouse import Warehouse


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
