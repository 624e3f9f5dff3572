"""Ids with traces in several buckets: a producer gave a retry another `sent_at`.

Of these traces one counts. The others say in which bucket (`counted_in`), and so lead from any of
an id's buckets to the others. Where the window's edge runs between them the id is judged by all of
it; its rows count where it does.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.drill_down import with_hash
from shardaudit.columns.ledger_sums import CELL


def other_places(ids: DataFrame, apart: DataFrame) -> DataFrame:
    """Where else something of the ids stands: WANTED, unique.

    Input:
        ids: with `id_hash`; apart: TRACES that count in another bucket than their own.
    """
    both = F.array("bucket_start", "counted_in")
    # Presence only on the right.
    return (
        with_hash(apart)
        .join(ids.select("id_hash").distinct(), ["id_hash"], how="left_semi")
        .select("id_hash", F.explode(both).alias("bucket_start"))
        .distinct()
    )


def crossing_ids(evidence: DataFrame, is_inside: Column) -> DataFrame:
    """The ids of which something stands outside of the window: `message_id`, unique.

    Output:
        also `told_in` (struct of the least cell in the window in which it landed, or NULL).
    """
    is_landed = is_inside & (F.col("landed_count") > 0)
    cells = F.sort_array(F.collect_list(F.when(is_landed, F.struct(*CELL))))
    return (
        evidence.groupBy("message_id")
        .agg(F.count_if(~is_inside).alias("outside"), cells.alias("cells"))
        .where(F.col("outside") > 0)
        .select("message_id", F.get("cells", 0).alias("told_in"))
    )


def within_window(classified: DataFrame, crossing: DataFrame, is_inside: Column) -> DataFrame:
    """The ids that this window tells of.

    One that counts outside of the window is told here only where it is doubled, and landed here:
    the window in which it counts may have been looked at before.

    Input:
        classified: of `classified_ids`; crossing: of `crossing_ids`.
    Output:
        the columns of `classified`; `told_in` (struct of the cell to whose numbers it adds),
        `counts_outside` (boolean).
    """
    is_told = F.col("duplicated").isNotNull() & F.col("told_in").isNotNull()
    # Unique on the id on the right.
    known = classified.join(F.broadcast(crossing), ["message_id"], how="left")
    home = F.when(is_inside, F.struct(*CELL)).otherwise(F.col("told_in"))
    return (
        known.where(is_inside | is_told)
        .withColumn("counts_outside", ~is_inside)
        .withColumn("told_in", home)
    )


def displaced_rows(
    evidence: DataFrame, told: DataFrame, crossing: DataFrame, is_inside: Column
) -> DataFrame:
    """By how many rows `landed` of a cell changes, as all rows of an id are told in one cell.

    Where it counts outside of the window it is matched there, by one of them.

    Input:
        told: of `within_window`.
    Output:
        `shard_id`, `bucket_start`, unique; `displaced` (bigint).
    """
    only = F.broadcast(crossing.select("message_id"))
    gone = (
        evidence.where(is_inside)
        .join(only, ["message_id"], how="left_semi")
        .select(*CELL, (-F.col("landed_count")).alias("displaced"))
    )
    here = F.col("landed_count") - F.col("counts_outside").cast("int")
    come = told.join(only, ["message_id"], how="left_semi").select(
        "told_in.*", here.alias("displaced")
    )
    return gone.unionByName(come).groupBy(*CELL).agg(F.sum("displaced").alias("displaced"))
