"""Live findings of missing messages, with the place in the stream that a trace of them names."""

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.backfill.rules.ranges import AFTER, BEFORE
from shardaudit.columns.instants import bucket_start, in_windows
from shardaudit.columns.ledger_sums import id_hash, sequence_key
from shardaudit.model.verdict import LIVE, Kind
from shardaudit.model.window import Window as Span

_NEVER_US = -(2**63)
# Producers ask again within seconds; a process may stand still for longer than that.
ACKED_WITHIN = timedelta(minutes=5)
CELL_AND_CAUSE = ("shard_id", "bucket_start", "cause")


def missing_ids(findings: DataFrame, traces: DataFrame) -> DataFrame:
    """One row per missing message.

    Input:
        findings: FINDINGS of a stream, unique on (message_id, kind); traces: TRACES of it.
    Output:
        `message_id`, `cause`, `shard_id`, `bucket_start` (of `sent_at`), `sent_at`, `acked_at`,
        `recoverable_until`, `arrives_from`, `arrives_until` (timestamps), `place` (struct digits,
        text). `acked_at` and `place` are of the last attempt, NULL when its trace has none.
    """
    missing = findings.where(
        (F.col("kind") == Kind.MISSING.value) & F.col("state").isin(*LIVE)
    ).select("message_id", "cause", "sent_at", "recoverable_until")
    # By a list and no `max_by`: the embedded engine would count, for every id, the whole batch that
    # its struct lies in, and fail for memory at some thousand ids.
    places = (
        traces.join(missing.select("message_id"), ["message_id"], how="left_semi")
        .groupBy("message_id")
        .agg(F.sort_array(F.collect_list(_attempt())).alias("attempts"))
        .withColumn("at", F.get("attempts", F.size("attempts") - 1))
    )
    # Unique on message_id on both sides: by the findings' key, and by the grouping. Whoever is
    # missing was traced, so no finding falls away.
    acked_us = F.nullif(F.col("at.acked_us"), F.lit(_NEVER_US))
    found = missing.join(places, ["message_id"], how="inner").withColumn(
        "acked_at", F.timestamp_micros(acked_us)
    )
    return found.select(
        "message_id",
        "cause",
        F.col("at.shard_id").alias("shard_id"),
        F.col("at.bucket_start").alias("bucket_start"),
        "sent_at",
        "acked_at",
        "recoverable_until",
        # A record reaches the stream after it was sent and before it was acknowledged.
        F.greatest("sent_at", F.col("acked_at") - F.lit(ACKED_WITHIN)).alias("arrives_from"),
        F.greatest("sent_at", "acked_at").alias("arrives_until"),
        _place(F.nullif(F.col("at.number"), F.lit(""))).alias("place"),
    )


def _attempt() -> Column:
    """A trace by the order of an id's attempts."""
    # The last attempt: it stays in the stream for longest. Any of them is the message.
    # Nothing in it is NULL, and no two are alike: engines do not agree on which would be greater.
    return F.struct(
        F.coalesce("attempt", F.lit(0)).alias("attempt"),
        F.coalesce(F.unix_micros("acked_at"), F.lit(_NEVER_US)).alias("acked_us"),
        F.coalesce(F.length("sequence_number"), F.lit(0)).alias("digits"),
        F.coalesce("sequence_number", F.lit("")).alias("number"),
        "shard_id",
        "bucket_start",
    )


def stretches(missing: DataFrame) -> DataFrame:
    """One row per shard, bucket and cause: how many, which, between which times and places."""
    half = id_hash().bitwiseAND(F.lit(0xFFFFFFFF))  # of these no sum overflows
    return missing.groupBy(*CELL_AND_CAUSE).agg(
        F.count("*").alias("ids"),
        F.sum(half).alias("ids_sum"),
        F.min("sent_at").alias("first_sent_at"),
        F.max("sent_at").alias("last_sent_at"),
        F.min("recoverable_until").alias("deadline"),
        F.min("arrives_from").alias("first_arrival"),
        F.max("arrives_until").alias("last_arrival"),
        F.max(F.when(F.col("acked_at").isNull(), F.col("sent_at"))).alias("unacked_until"),
        F.count("place").alias("places"),
        F.min("place").alias("first_place"),
        F.max("place").alias("last_place"),
    )


def by_arrival(missing: DataFrame) -> DataFrame:
    """The missing messages with `bucket_start` the minute in which they reached the stream.

    A message that its producer held back for hours stands hours behind those sent beside it.
    """
    minute = bucket_start(F.col("arrives_until"), timedelta(minutes=1))
    return missing.withColumn("bucket_start", minute)


def asked_for(missing: DataFrame, window: Span) -> DataFrame:
    """The missing messages that were sent in a window, by the bucket in which they were.

    Those that reached the stream too late for a reading of the window: `by_arrival`.
    """
    inside = missing.where(in_windows(F.col("sent_at"), [window]))
    is_late = F.col("arrives_until") >= F.lit(window.end + AFTER - BEFORE)
    return inside.where(~is_late).unionByName(by_arrival(inside.where(is_late)))


def window_ids(missing: DataFrame, windows: DataFrame) -> DataFrame:
    """The missing messages of each window: `window_id`, `message_id`, `sent_at`, `acked_at`.

    Input:
        windows: `window_id` by shard_id, bucket_start and cause, unique on these three.
    """
    # Unique on the right as said; each message has one cell and one cause.
    return missing.join(windows, list(CELL_AND_CAUSE), how="inner").select(
        "window_id", "message_id", "sent_at", "acked_at"
    )


def sent_before(marks: DataFrame, places: DataFrame) -> DataFrame:
    """When the latest was sent, at least, of what stands before places in a shard.

    Input:
        marks: FINGERPRINTS of traces; places: `shard_id`, `sequence_number`, unique.
    Output:
        one row per place: `shard_id`, `sequence_number`, `sent_before` (timestamp): the start of a
        cell; NULL: nothing stands before it. The record came no sooner.
    """
    none = F.lit(None).cast("string").alias("sequence_number")
    least = F.col("min_sequence_number")
    known = marks.where(least.isNotNull()).select(
        "shard_id", none, sequence_key(least).alias("key"), F.col("bucket_start").alias("sent_at")
    )
    asked = places.select(
        "shard_id",
        "sequence_number",
        sequence_key(F.col("sequence_number")).alias("key"),
        F.lit(None).cast("timestamp").alias("sent_at"),
    )
    in_order = Window.partitionBy("shard_id").orderBy("key")
    return (
        known.unionByName(asked)
        .withColumn("sent_before", F.max("sent_at").over(in_order))
        .where(F.col("sequence_number").isNotNull())
        .select("shard_id", "sequence_number", "sent_before")
    )


def _place(sequence_number: Column) -> Column:
    """Orders sequence numbers of one shard as numbers."""
    key = F.struct(F.length(sequence_number).alias("digits"), sequence_number.alias("text"))
    return F.when(sequence_number.isNotNull(), key)
