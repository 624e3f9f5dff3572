"""Judged traces → the new ones, each told whether it counts its id, or where that is counted.

An id counts once, whatever shards and buckets its traces name: else a retry that landed besides its
first attempt would be one more on both sides, and nobody would see it.
"""

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import id_hash
from shardaudit.ingest.rules.refused_traces import GIVEN

# As far apart in time are traces of one id looked for. A producer that stamps a retry anew retries
# within minutes, or after an outage of hours.
REACH = timedelta(days=1)

# By what the first of alike traces is chosen; those of a kept file have no line.
_TIES = (
    *("sent_at", "file", "line"),
    *("attempt", "acked_at", "location", "producer_id", "session", "session_seq"),
)
_COUNTING = ("counted", "counted_in")


def known_places(judged: DataFrame, known: DataFrame) -> DataFrame:
    """Where ids of the new traces are known already: mostly few, or none.

    Narrow, as it compares all traces of a day: the hash of an id, and its bucket.

    Input:
        judged, known: as for `new_traces`.
    Output:
        `id_hash` (bigint), `bucket_start`, unique. Two ids with one hash are both meant.
    """
    fresh = judged.where(F.col("reason").isNull()).select("id_hash")
    old = known.select(id_hash(), "bucket_start")
    # The new ones first: that is the side that the embedded engine keeps. Several are made one.
    return fresh.join(old, ["id_hash"], how="inner").distinct()


def repeated_ids(judged: DataFrame, places: DataFrame) -> DataFrame:
    """The ids that have more than one trace, one of them new: mostly few, or none.

    Input:
        judged: as for `new_traces`; places: of `known_places`.
    Output:
        `id_hash` (bigint), unique.
    """
    good = judged.where(F.col("reason").isNull())
    several = good.groupBy("id_hash").agg(F.count("*").alias("traces")).where(F.col("traces") > 1)
    return several.select("id_hash").union(places.select("id_hash")).distinct()


def new_traces(judged: DataFrame, known: DataFrame, repeated: DataFrame) -> DataFrame:
    """The good traces that no batch brought before, each told whether it counts.

    Unique on `message_id`, `shard_id`, `sequence_number`, `bucket_start`.

    Of the traces of an id, over all shards and buckets, one counts: the one that was known first;
    within a batch the least (shard, sequence number, bucket).

    Input:
        judged: `judged_traces`.
        known: traces of the repeated ids, without this batch's own: GIVEN, `counted_in`.
        repeated: of `repeated_ids`; only these are compared with one another.
    Output:
        GIVEN, `counted`, `counted_in`.
    """
    # Presence only: `repeated` is unique on its column.
    several = F.broadcast(repeated)
    good = judged.where(F.col("reason").isNull())
    single = good.join(several, ["id_hash"], how="left_anti").withColumns(
        {"counted": F.lit(True), "counted_in": F.lit(None).cast("timestamp")}
    )
    told = told_traces(good.join(several, ["id_hash"], how="left_semi"), known)
    return single.select(*GIVEN, *_COUNTING).unionByName(told)


def told_traces(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """Those of the traces of repeated ids that are no repetitions, each told whether it counts.

    What is further than REACH from the one before counts by itself: no audit of either would look
    for the other.

    Input:
        fresh: GIVEN, `file`, `line`; known: as for `new_traces`.
    Output:
        GIVEN, `counted`, `counted_in`.
    """
    columns = ("message_id", "shard_id", "sequence_number", "bucket_start", "sent_at")
    home = F.coalesce("counted_in", "bucket_start").alias("home")
    no_home = F.lit(None).cast("timestamp").alias("home")
    new = fresh.select(*GIVEN, "file", "line", F.lit(False).alias("is_old"), no_home)
    # Of the known ones only what decides is read.
    kinds = {field.name: field.dataType for field in fresh.schema}
    others = [name for name in (*GIVEN, "file", "line") if name not in columns]
    nothing = {name: F.lit(None).cast(kinds[name]) for name in others}
    old = known.select(*columns, home).withColumns({"is_old": F.lit(True), **nothing})
    old = old.select(new.columns)
    # One shuffle serves all windows: whatever shares an id lies together.
    of_id = Window.partitionBy("message_id", "stretch")
    in_order = of_id.orderBy(
        "shard_id",
        F.length("sequence_number"),
        "sequence_number",
        "bucket_start",
        F.desc("is_old"),
        *_TIES,
    )
    place = ("shard_id", "sequence_number", "bucket_start")
    is_repeated = [F.col(name).eqNullSafe(F.lag(name).over(in_order)) for name in place]
    is_counted = (F.col("rank") == 1) & F.col("known_home").isNull()
    return (
        _in_stretches(new.unionByName(old))
        .withColumn("is_repeated", is_repeated[0] & is_repeated[1] & is_repeated[2])
        .withColumn("rank", F.row_number().over(in_order))
        .withColumn("known_home", F.min("home").over(of_id))
        .withColumn("first", F.min(F.when(F.col("rank") == 1, F.col("bucket_start"))).over(of_id))
        .withColumn("home", F.coalesce("known_home", "first"))
        .where(~F.col("is_old") & ~F.col("is_repeated"))
        .select(
            *GIVEN,
            is_counted.alias("counted"),
            F.when(F.col("home") != F.col("bucket_start"), F.col("home")).alias("counted_in"),
        )
    )


def _in_stretches(traces: DataFrame) -> DataFrame:
    """With `stretch` (bigint): within one no trace of an id is over REACH from the one before."""
    by_time = Window.partitionBy("message_id").orderBy("bucket_start")
    is_far = F.col("bucket_start") > F.lag("bucket_start").over(by_time) + F.lit(REACH)
    return traces.withColumn("is_far", F.coalesce(is_far, F.lit(False)).cast("bigint")).withColumn(
        "stretch", F.sum("is_far").over(by_time)
    )
