"""What of a batch was taken in, what was refused and why, and the cells it may have fed."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.faults import (
    is_clock_fault,
    is_foreign_fault,
    is_gap_of_producer,
    is_location_fault,
)
from shardaudit.columns.instants import cell_share
from shardaudit.model.config.eras import Eras
from shardaudit.model.source import SourceFile
from shardaudit.model.window import Window

_AFTER = timedelta(seconds=1)  # a file's time may be cut to the second

KINESIS_BEGAN = datetime(2013, 12, 1, tzinfo=UTC)  # AWS made it available in December 2013

_COUNTS = ("too_old", "shards", "refused", "foreign", "elsewhere", "clock_refused", "gaps")
_OTHERS = {
    "sent_from": "timestamp",
    "sent_to": "timestamp",
    "main_reason": "string",
    "share": "double",
}


def damaged_span(
    damaged: Iterable[SourceFile],
    *,
    kept_from: Mapping[str, datetime],
    batch_from: datetime | None,
    audit_window: timedelta,
) -> Window | None:
    """The time that the lost rows of these files may belong to; None when there are no files.

    From the least time that was kept of a file (else of the batch, else the audit window before the
    file was written) until the file was written: what it holds was sent before.

    Input:
        kept_from: path -> least `sent_at` of the rows that were kept of it.
        batch_from: the least `sent_at` of the batch.
    """
    spans: list[tuple[datetime, datetime]] = []
    for file in damaged:
        written = datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        start = kept_from.get(file.path) or batch_from or written - audit_window
        spans.append((start, max(written, start) + _AFTER))
    if not spans:
        return None
    return Window(min(start for start, _ in spans), max(end for _, end in spans))


def batch_summaries(fingerprints: DataFrame, quarantined: DataFrame, *, shape: Eras) -> DataFrame:
    """One row per batch of which something was taken in or refused.

    Input:
        fingerprints: rows of FINGERPRINTS; quarantined: rows of QUARANTINE; of the same batches.
        shape: how the stream's ids are put into cells.
    Output:
        `batch_id`; `too_old` (ids or rows sent before Kinesis was there), `shards`, `refused`, of
        these `foreign` (of another stream or location), `elsewhere` (of another location),
        `clock_refused` and `gaps` (lines by which a producer says what it dropped), all bigint,
        never NULL; `sent_from`, `sent_to` (starts of the oldest and the newest bucket, or NULL),
        `main_reason` (or NULL), `share` (of the ids, that was taken in; NULL where nothing was).
    """
    # Both are unique on batch_id by their grouping.
    both = _whole(_placed(fingerprints, shape)).unionByName(_whole(_refused(quarantined)))
    return both.groupBy("batch_id").agg(
        *(F.coalesce(F.max(name), F.lit(0)).cast("bigint").alias(name) for name in _COUNTS),
        *(F.max(name).alias(name) for name in _OTHERS),
    )


def _whole(rows: DataFrame) -> DataFrame:
    """The rows with all columns; what they do not have is NULL."""
    kinds = {"batch_id": "string", **dict.fromkeys(_COUNTS, "bigint"), **_OTHERS}
    return rows.select(
        *(
            F.col(name) if name in rows.columns else F.lit(None).cast(kind).alias(name)
            for name, kind in kinds.items()
        )
    )


def _placed(fingerprints: DataFrame, shape: Eras) -> DataFrame:
    sent = F.col("n") / cell_share(F.col("bucket_start"), shape)
    is_old = F.col("bucket_start") < F.lit(KINESIS_BEGAN)
    return (
        fingerprints.where(F.col("n") > 0)
        .groupBy("batch_id")
        .agg(
            F.sum(F.when(is_old, F.col("n")).otherwise(0)).alias("too_old"),
            F.size(F.collect_set("shard_id")).cast("bigint").alias("shards"),
            F.min("bucket_start").alias("sent_from"),
            F.max("bucket_start").alias("sent_to"),
            (F.sum("n") / F.sum(sent)).alias("share"),
        )
    )


def _refused(quarantined: DataFrame) -> DataFrame:
    by_reason = quarantined.groupBy("batch_id", "reason").agg(F.count("*").alias("n"))
    return by_reason.groupBy("batch_id").agg(
        F.sum("n").alias("refused"),
        _sum_where(is_foreign_fault(F.col("reason"))).alias("foreign"),
        _sum_where(is_location_fault(F.col("reason"))).alias("elsewhere"),
        _sum_where(is_clock_fault(F.col("reason"))).alias("clock_refused"),
        _sum_where(is_gap_of_producer(F.col("reason"))).alias("gaps"),
        # Of two that are as frequent, always the same one.
        F.max(F.struct("n", "reason"))["reason"].alias("main_reason"),
    )


def _sum_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("n")).otherwise(0))
