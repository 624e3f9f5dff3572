"""Live findings of missing messages, with the place in the stream that a trace of them names."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.model.verdict import Kind, State

LIVE = (State.OPEN.value, State.PLANNED.value, State.REPLAYED.value)
CELL_AND_CAUSE = ("shard_id", "bucket_start", "cause")


def missing_ids(findings: DataFrame, traces: DataFrame) -> DataFrame:
    """One row per missing message.

    Input:
        findings: FINDINGS of a stream, unique on (message_id, kind); traces: TRACES of it.
    Output:
        `message_id`, `cause`, `shard_id`, `bucket_start`, `sent_at`, `recoverable_until`,
        `place` (struct digits, text; NULL when no trace has a sequence number).
    """
    missing = findings.where(
        (F.col("kind") == Kind.MISSING.value) & F.col("state").isin(*LIVE)
    ).select("message_id", "cause", "sent_at", "recoverable_until")
    # The last attempt: it stays in the stream for longest. Any of them is the message.
    # Nothing in it is NULL, and no two are alike: engines do not agree on which would be greater.
    trace = F.struct(
        F.coalesce("attempt", F.lit(0)).alias("attempt"),
        F.coalesce(F.unix_micros("acked_at"), F.lit(-(2**63))).alias("acked_us"),
        F.coalesce(F.length("sequence_number"), F.lit(0)).alias("digits"),
        F.coalesce("sequence_number", F.lit("")).alias("number"),
        "shard_id",
        "bucket_start",
    )
    # By a list and no `max_by`: the embedded engine would count, for every id, the whole batch that
    # its struct lies in, and fail for memory at some thousand ids.
    places = (
        traces.join(missing.select("message_id"), ["message_id"], how="left_semi")
        .groupBy("message_id")
        .agg(F.sort_array(F.collect_list(trace)).alias("attempts"))
        .withColumn("at", F.get("attempts", F.size("attempts") - 1))
    )
    # Unique on message_id on both sides: by the findings' key, and by the grouping. Whoever is
    # missing was traced, so no finding falls away.
    return missing.join(places, ["message_id"], how="inner").select(
        "message_id",
        "cause",
        F.col("at.shard_id").alias("shard_id"),
        F.col("at.bucket_start").alias("bucket_start"),
        "sent_at",
        "recoverable_until",
        _place(F.nullif(F.col("at.number"), F.lit(""))).alias("place"),
    )


def stretches(missing: DataFrame) -> DataFrame:
    """One row per shard, bucket and cause: how many, between which times and places."""
    return missing.groupBy(*CELL_AND_CAUSE).agg(
        F.count("*").alias("ids"),
        F.min("sent_at").alias("first_sent_at"),
        F.max("sent_at").alias("last_sent_at"),
        F.min("recoverable_until").alias("deadline"),
        F.count("place").alias("places"),
        F.min("place").alias("first_place"),
        F.max("place").alias("last_place"),
    )


def window_ids(missing: DataFrame, windows: DataFrame) -> DataFrame:
    """The missing messages of each window: `window_id`, `message_id`, `sent_at`.

    Input:
        windows: `window_id` by shard_id, bucket_start and cause, unique on these three.
    """
    # Unique on the right as said; each message has one cell and one cause.
    return missing.join(windows, list(CELL_AND_CAUSE), how="inner").select(
        "window_id", "message_id", "sent_at"
    )


def _place(sequence_number: Column) -> Column:
    """Orders sequence numbers of one shard as numbers."""
    key = F.struct(F.length(sequence_number).alias("digits"), sequence_number.alias("text"))
    return F.when(sequence_number.isNotNull(), key)
