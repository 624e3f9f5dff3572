"""The report of an audit that is already published, read without Spark."""

from shardaudit.adapters.published import audit_row, missing_ids, quarantined, shard_sums
from shardaudit.model.config import Settings
from shardaudit.model.errors import FinalError
from shardaudit.model.verdict import Kind, Verdict
from shardaudit.report.summary import AuditReport, DeadlineLine, ShardLine

_COUNTS = ("sent", "landed", "matched", "missing", "pending", "duplicated")
_MORE_COUNTS = ("extra_rows", "untraced", "moved")


class NotPublishedError(FinalError, LookupError):
    """The audit has no published result."""

    def __init__(self, stream: str, audit_id: str, status: str) -> None:
        super().__init__(
            f"the audit {audit_id} of {stream} {status}: nothing is known about its window. "
            "The logs of its ingest and its audit say why"
        )


def published_audit(settings: Settings, stream: str, audit_id: str) -> AuditReport:
    """What the audit said, from the tables. A shard's verdict is that of its worst cell.

    Raises:
        NotPublishedError: there is no such audit, or it was rejected, failed, or still runs.
        WarehouseUnreadableError: the warehouse does not answer.
    """
    row = audit_row(settings, audit_id)
    if row is None:
        raise NotPublishedError(stream, audit_id, "did not happen")
    if row["status"] != "published":
        raise NotPublishedError(stream, audit_id, f"has the status {row['status']!r}")
    missing = missing_ids(settings, audit_id)
    return AuditReport(
        audit_id=audit_id,
        stream=stream,
        window_start=row["window_start"],
        window_end=row["window_end"],
        as_of=row["as_of"],
        status=row["status"],
        verdict=Verdict(row["verdict"]),
        counts={name: row[name] for name in (*_COUNTS, *_MORE_COUNTS)},
        trace_coverage=row["trace_coverage"],
        self_check=row["self_check"],
        watermark=row["watermark"],
        cells_total=row["cells_total"],
        cells_compared_by_id=row["cells_compared_by_id"],
        worst_shards=tuple(
            ShardLine(shard_id=shard.shard_id, verdict=shard.verdict, **shard.sums)
            for shard in shard_sums(settings, audit_id)
            if not shard.verdict.is_good
        ),
        deadlines=tuple(
            DeadlineLine(ids.shard_id, Kind.MISSING, ids.cause, ids.ids, ids.recoverable_until)
            for ids in missing
            if not ids.is_expired
        ),
        quarantined=quarantined(settings, stream),
        notes=tuple(
            f"{ids.ids:,} messages of {ids.shard_id} have left the stream, the first of them at "
            f"{ids.recoverable_until:%Y-%m-%dT%H:%M:%SZ}"
            for ids in missing
            if ids.is_expired
        ),
    )
