"""Rows of a sink that lack their shard or their time → put where their traces are."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.columns.instants import bucket_start
from shardaudit.ingest.rules.deliveries import DELIVERY
from shardaudit.ingest.rules.fingerprint import sink_fingerprints
from shardaudit.model.tables.audit_tables import FINGERPRINTS

UNKNOWN_SHARD = "(unknown)"


def placed_rows(rows: DataFrame, traces: DataFrame, *, bucket: timedelta) -> DataFrame:
    """The rows with the shard and the time of the trace that counts their id, where they lack them.

    Without a trace an id is on UNKNOWN_SHARD, and was sent when it first landed, for all that is
    known; a row that has no time at all is then left out.

    Input:
        rows: DELIVERY; `shard_id`, `sent_at` or both are NULL.
        traces: TRACES of the stream, of every id that a row may have.
    Output:
        DELIVERY.
    """
    is_whole = F.col("sent_at").isNotNull() & F.col("shard_id").isNotNull()  # of traces it is
    homes = F.collect_list(F.when(is_whole, F.struct("sent_at", "shard_id")))
    # The least of a list, not `min`: the embedded engine would keep an object of 1 KB per id.
    traced = (
        traces.where(F.col("counted"))
        .groupBy("message_id")  # unique on the id
        .agg(F.get(F.sort_array(homes), 0).alias("home"))
    )
    shard_id = F.coalesce("shard_id", "home.shard_id", F.lit(UNKNOWN_SHARD))
    first_landed = F.min("landed_at").over(Window.partitionBy("message_id"))
    return (
        rows.join(traced, ["message_id"], how="left")
        .withColumn("shard_id", shard_id)
        .withColumn("sent_at", F.coalesce("sent_at", "home.sent_at", first_landed))
        .withColumn("bucket_start", bucket_start(F.col("sent_at"), bucket))
        .where(F.col("bucket_start").isNotNull())
        .select(*DELIVERY)
    )


def placed_ledger(placed: DataFrame, *, now: datetime) -> DataFrame:
    """What the ledger would hold of the rows: FINGERPRINTS, of no batch and no stream."""
    nothing = F.lit(None).cast("string")
    cells = sink_fingerprints(placed.withColumn("reason", nothing), None, now=now)
    whose = {"batch_id": nothing, "stream": nothing, "side": F.lit("sink")}
    return cells.withColumns(whose).select(FINGERPRINTS.names)
