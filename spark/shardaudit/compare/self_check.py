"""The audit of the audit: planted discrepancies that every run must find."""

from collections.abc import Callable
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.compare.drill_down import CELL

EXTRA_ID = "shardaudit-self-check-extra"


def sampled_cells(cells: DataFrame, *, seed: str, size: int) -> DataFrame:
    """Some clean cells: `shard_id`, `bucket_start`. Another seed, other cells.

    Of as few buckets as possible, so that few files have to be opened.

    Input:
        cells: of `compared_cells`. A cell with fewer than two messages can not carry the planting.
    """
    return (
        cells.where(~F.col("differs") & (F.col("sent_n") > 1))
        .orderBy(F.xxhash64("bucket_start", F.lit(seed)), F.xxhash64("shard_id", F.lit(seed)))
        .limit(size)
        .select(*CELL)
    )


def with_neighbours(cells: DataFrame, *, bucket: timedelta) -> DataFrame:
    """The cells and those before and after them in time on the same shard; each once."""
    start, width = F.col("bucket_start"), F.lit(bucket)
    starts = F.array(start - width, start, start + width)
    return cells.select("shard_id", F.explode(starts).alias("bucket_start")).distinct()


def planted(seen: DataFrame, sample: DataFrame) -> DataFrame:
    """A copy of what the sampled cells hold with one id lost, one doubled and one extra in each.

    Input:
        seen: of `drill_down.seen`.
    Output:
        the columns of `seen`, one row per trace and row, and `planted` (lost | duplicated | extra,
        else NULL).
    """
    by_hash = Window.partitionBy(*CELL).orderBy(F.xxhash64("message_id"), "message_id")
    # A clean cell may also hold traces that another cell counts: they are no part of the planting.
    whole = (
        seen.join(F.broadcast(sample), CELL, how="left_semi")
        .groupBy("message_id", *CELL)
        .agg(F.sum("counted").alias("counted"), F.sum("landed").alias("landed"))
        .where((F.col("counted") == 1) & (F.col("landed") == 1))
        .withColumn("rank", F.row_number().over(by_hash))
    )
    is_lost, is_doubled = (F.col("rank") == F.lit(rank) for rank in (1, 2))
    traces = whole.select(
        "message_id",
        *CELL,
        F.lit(1).alias("counted"),
        F.lit(0).alias("landed"),
        F.when(is_lost, "lost").when(is_doubled, "duplicated").alias("planted"),
    )
    rows = traces.where(~F.col("planted").eqNullSafe(F.lit("lost"))).select(
        "message_id",
        *CELL,
        F.lit(0).alias("counted"),
        F.lit(1).alias("landed"),
        "planted",
    )
    start_us = F.unix_micros("bucket_start").cast("string")
    again = rows.where(F.col("planted") == "duplicated")
    extra = (
        traces.where(F.col("planted") == "lost")
        .withColumn("message_id", F.concat_ws("/", F.lit(EXTRA_ID), "shard_id", start_us))
        .withColumn("counted", F.lit(0))
        .withColumn("landed", F.lit(1))
        .withColumn("planted", F.lit("extra"))
    )
    return traces.unionByName(rows).unionByName(again).unionByName(extra)


def planted_cells(planted: DataFrame, fingerprint: Callable[[Column], list[Column]]) -> DataFrame:
    """The fingerprints of the planted copy, in the columns that `cells.differs` compares.

    Input:
        fingerprint: the same function that fills the ledger.
    """
    sides = []
    for side, mark in (("sent", "counted"), ("landed", "landed")):
        sums = planted.where(F.col(mark) == 1).groupBy(*CELL).agg(*fingerprint(F.col("message_id")))
        names = ("n", "sum_lo", "sum_hi")
        sides.append(sums.select(*CELL, *(F.col(n).alias(f"{side}_{n}") for n in names)))
    counts = [f"{side}_{n}" for side in ("sent", "landed") for n in ("n", "sum_lo", "sum_hi")]
    # Each side is unique on the cell by its grouping.
    return sides[0].join(sides[1], CELL, how="full_outer").fillna(0, subset=counts)


def wrongly_judged(classified: DataFrame, planted: DataFrame) -> DataFrame:
    """What was planted and not found, or found and not planted: no row means that it works.

    Input:
        classified: `classified_ids` of the planted copy.
    Output:
        `message_id`, `planted` (NULL: found, not planted), `found` (NULL: planted, not found).
    """
    found = (
        F.when(F.col("not_landed").isNotNull(), "lost")
        .when(F.col("untraced").isNotNull(), "extra")
        .when(F.col("duplicated").isNotNull(), "duplicated")
    )
    answers = classified.select("message_id", found.alias("found"))
    marks = planted.where(F.col("planted").isNotNull()).select("message_id", "planted").distinct()
    # An id stands once in `classified`, and has one mark: it is in one of the sampled cells.
    return (
        answers.join(marks, ["message_id"], how="full_outer")
        .where(~F.col("found").eqNullSafe(F.col("planted")))
        .select("message_id", "planted", "found")
    )
