"""Judged traces → the new ones, each told whether it counts its id, or where that is counted.

An id counts once, whatever shards and buckets its traces name: else a retry that landed besides its
first attempt would be one more on both sides, and nobody would see it.
"""

from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import id_hash
from shardaudit.ingest.rules.refused_traces import GIVEN

# As far apart in time are traces of one id looked for. A producer that stamps a retry anew retries
# within minutes, or after an outage of hours.
REACH = timedelta(days=1)

# By what the first of alike traces is chosen; those of a kept file have no line.
_PARTS = 64
_PLACE = ("message_id", "shard_id", "sequence_number", "bucket_start")
_TIES = (
    *("sent_at", "file", "line"),
    *("attempt", "acked_at", "location", "producer_id", "session", "session_seq"),
)


def known_places(judged: DataFrame, known: DataFrame) -> DataFrame:
    """Where ids of the new traces are known already: mostly few, or none.

    Narrow, as it compares all traces of a day: the hash of an id, and its bucket.

    Input:
        judged: `judged_traces`; known: traces of other batches.
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
        judged: `judged_traces`; places: of `known_places`.
    Output:
        `id_hash` (bigint), unique.
    """
    new = judged.where(F.col("reason").isNull()).select("id_hash", F.lit(1).alias("traces"))
    old = places.select("id_hash", F.lit(2).alias("traces"))  # with the new one at the least
    # One grouping: within a `distinct` it took the embedded engine twice as long and more.
    traces = new.union(old).groupBy("id_hash").agg(F.sum("traces").alias("traces"))
    return traces.where(F.col("traces") > 1).select("id_hash")


def single_traces(judged: DataFrame, repeated: DataFrame) -> DataFrame:
    """The good traces of ids that do not come again: all of them count.

    Input:
        judged: `judged_traces`; repeated: of `repeated_ids`.
    Output:
        GIVEN, `counted`, `counted_in`.
    """
    counted = {"counted": F.lit(True), "counted_in": F.lit(None).cast("timestamp")}
    good = judged.where(F.col("reason").isNull())
    # Presence only: `repeated` is unique on its column.
    single = good.join(F.broadcast(repeated), ["id_hash"], how="left_anti")
    return single.withColumns(counted).select(*GIVEN, *counted)


def unknown_traces(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """Those of the traces that no batch brought before.

    Input:
        fresh, known: as for `told_traces`; known: few enough for the memory of each worker.
    """
    places = known.select(*_PLACE).distinct()
    same = [F.col(f"fresh.{name}").eqNullSafe(F.col(f"known.{name}")) for name in _PLACE]
    # Presence only: unique on the right.
    known_ones = F.broadcast(places.alias("known"))
    return fresh.alias("fresh").join(known_ones, same, how="left_anti")


def told_traces(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """Those of the traces of repeated ids that are no repetitions, each told whether it counts.

    Unique on `message_id`, `shard_id`, `sequence_number`, `bucket_start`.

    Of the traces of an id, over all shards and buckets, one counts: the one that was known first;
    within a batch the least (shard, sequence number, bucket). What is further than REACH from the
    one before counts by itself: no audit of either would look for the other.

    Input:
        fresh: the good traces of ids that come again: GIVEN, `file`, `line`.
        known: theirs, without this batch's own: GIVEN, `counted_in`.
    Output:
        GIVEN, `counted`, `counted_in`.
    """
    in_order = Window.partitionBy("part").orderBy(
        "stretch",
        "shard_id",
        F.length("sequence_number"),
        "sequence_number",
        "bucket_start",
        F.desc("is_old"),
        *_TIES,
    )
    of_stretch = Window.partitionBy("part").orderBy("stretch").rangeBetween(0, 0)
    is_alike = [F.col(name).eqNullSafe(F.lag(name).over(in_order)) for name in ("stretch", *_PLACE)]
    is_least = F.col("is_least") & F.col("known_home").isNull()
    return (
        _in_stretches(_old_and_new(fresh, known))
        .withColumn("is_repeated", reduce(Column.__and__, is_alike))
        .withColumn("is_least", ~is_alike[0])
        .withColumn("known_home", F.min("home").over(of_stretch))
        .withColumn(
            "first", F.min(F.when(F.col("is_least"), F.col("bucket_start"))).over(of_stretch)
        )
        .withColumn("home", F.coalesce("known_home", "first"))
        .where(~F.col("is_old") & ~F.col("is_repeated"))
        .select(
            *GIVEN,
            is_least.alias("counted"),
            F.when(F.col("home") != F.col("bucket_start"), F.col("home")).alias("counted_in"),
        )
    )


def _old_and_new(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """Both with `is_old` and `home`, where an old one counts; of the old only what decides."""
    columns = (*_PLACE, "sent_at")
    home = F.coalesce("counted_in", "bucket_start").alias("home")
    no_home = F.lit(None).cast("timestamp").alias("home")
    new = fresh.select(*GIVEN, "file", "line", F.lit(False).alias("is_old"), no_home)
    kinds = {field.name: field.dataType for field in fresh.schema}
    others = [name for name in (*GIVEN, "file", "line") if name not in columns]
    nothing = {name: F.lit(None).cast(kinds[name]) for name in others}
    old = known.select(*columns, home).withColumns({"is_old": F.lit(True), **nothing})
    return new.unionByName(old.select(new.columns))


def _in_stretches(traces: DataFrame) -> DataFrame:
    """With `part`, `stretch` (bigint): one of each per id and time.

    Within a stretch no trace of an id is over REACH from the one before. The ids are in _PARTS
    parts, each in order: a window of its own for each id takes ten times as long.
    """
    by_time = Window.partitionBy("part").orderBy("message_id", "bucket_start")
    is_same = F.col("message_id").eqNullSafe(F.lag("message_id").over(by_time))
    is_near = F.col("bucket_start") <= F.lag("bucket_start").over(by_time) + F.lit(REACH)
    return (
        traces.withColumn("part", F.pmod(id_hash(), F.lit(_PARTS)))
        .withColumn("begins", (~(is_same & F.coalesce(is_near, F.lit(False)))).cast("bigint"))
        .withColumn("stretch", F.sum("begins").over(by_time))
    )
