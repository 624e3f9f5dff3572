"""Rows of a sink that lack their shard or their time: those of the trace of their id."""

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.columns.in_sample import in_era_sample
from shardaudit.columns.instants import cell_start
from shardaudit.model.config.eras import Eras

UNKNOWN_SHARD = "(unknown)"
_LONGEST_WAY = timedelta(days=1)


def placed_rows(rows: DataFrame, traces: DataFrame, *, shape: Eras) -> DataFrame:
    """The rows with the shard and the time of the trace that counts their id, where they lack them.

    Without a trace an id is on UNKNOWN_SHARD, and was sent when it first landed, for all that is
    known; a row that has no time at all is then left out.

    Input:
        rows: DELIVERY, and more columns; `shard_id`, `sent_at` or both are NULL.
        traces: TRACES of the stream, of every id that a row may have.
    Output:
        the columns of `rows`.
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
    # One that nothing tells the time of may have been on its way for that long.
    sent_from = F.coalesce("sent_at", "home.sent_at", first_landed - F.lit(_LONGEST_WAY))
    placed = (
        rows.join(traced, ["message_id"], how="left")
        .withColumn("shard_id", shard_id)
        .withColumn("sent_from", sent_from)
        .withColumn("sent_at", F.coalesce("sent_at", "home.sent_at", first_landed))
        .withColumn("bucket_start", cell_start(F.col("sent_at"), shape))
        .where(F.col("bucket_start").isNotNull())
    )
    if shape.later:  # those without a time were of the sample of any era
        for at in ("sent_from", "sent_at"):
            is_counted = in_era_sample(F.col("message_id"), F.col(at), shape)
            placed = placed if is_counted is None else placed.where(is_counted)
    return placed.select(*rows.columns)
