"""The cells that must have a verdict, and the fingerprints of both sides in them."""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.model.sequence import LENGTHS, MAX_DIGITS, NUMBER_AT
from shardaudit.model.window import Window

SUMS = ("n", "sum_lo", "sum_hi")
FEWEST_SHIFTED = 10  # so many cells of a shard that lie equally far apart are no accident
_MINUTE_US, _HALF_HOUR = 60_000_000, 30  # zones are whole numbers of half hours, but for three
_LATEST_US = 2 * 10**17  # in the year 8307: all that is before it has as many digits


def sequence_key(sequence_number: Column) -> Column:
    """What sequence numbers of one shard sort by: a text, their length (in 4 digits) before them.

    NULL for NULL, so that `max` passes it over. No struct: its greatest per group takes five times
    as long.
    """
    return F.concat((F.length(sequence_number) + LENGTHS).cast("string"), sequence_number)


def sequence_number(key: Column) -> Column:
    """The sequence number of a key."""
    return F.substring(key, NUMBER_AT, MAX_DIGITS)


def cell_sums(fingerprints: DataFrame, *more: Column) -> DataFrame:
    """The ledger summed over its batches: one row per cell that either side ever touched.

    Input:
        fingerprints: rows of one stream; several batches add up, removed rows count below zero;
        more: further aggregations, as columns of their own.
    Output:
        `shard_id`, `bucket_start`, `sent_n, sent_sum_lo, sent_sum_hi`, `landed_n, …` (bigint, never
        NULL), `sent_key`, `landed_key` (sequence keys of the greatest, or NULL),
        `reached` (the greatest sequence number and when an ingest first had it, see `reached_at`),
        `last_landed_at`, `unnumbered_at` (of rows without a sequence number; timestamps or NULL),
        `ever_landed`, `has_lost_rows` (booleans: whether a batch brought rows, or took some),
        `consumed_n`, `without_landed_at` (rows), `ledger_rows` (bigint).
        Of rows that our own backfills landed the sums and `ledger_rows` alone know.
    """
    sides = {"sent": F.col("side") == "traces", "landed": F.col("side") == "sink"}
    sums = [
        F.sum(F.when(mine, F.col(name)).otherwise(0)).alias(f"{prefix}_{name}")
        for prefix, mine in sides.items()
        for name in SUMS
    ]
    keys = [
        F.max(F.when(mine, sequence_key(F.col("max_sequence_number")))).alias(f"{prefix}_key")
        for prefix, mine in sides.items()
    ]
    return fingerprints.groupBy("shard_id", "bucket_start").agg(
        *sums,
        *keys,
        F.max(F.when(sides["landed"], _reached())).alias("reached"),
        F.max(F.when(sides["landed"], F.col("last_at"))).alias("last_landed_at"),
        F.max(F.when(sides["landed"], F.col("unnumbered_at"))).alias("unnumbered_at"),
        F.max(sides["landed"] & (consumed_rows() > 0)).alias("ever_landed"),
        F.max(sides["landed"] & (F.col("n") < 0)).alias("has_lost_rows"),
        F.sum(F.when(sides["landed"], consumed_rows()).otherwise(0)).alias("consumed_n"),
        F.sum(F.coalesce("without_landed_at", F.lit(0))).alias("without_landed_at"),
        F.count("*").alias("ledger_rows"),
        *more,
    )


def _reached() -> Column:
    """Of a batch's cell: the greater, the greater its sequence number and the earlier it landed.

    What lands again and again lands late: its first landing says since when the consumer rests.
    """
    early = (F.lit(_LATEST_US) - F.unix_micros("last_at")).cast("string")
    return F.concat(sequence_key(F.col("max_sequence_number")), F.lit("x"), early)


def reached_at(reached: Column) -> Column:
    """When the greatest sequence number first landed; of the greatest `reached` of some cells."""
    early = F.regexp_replace(reached, "^[0-9]*x", "").cast("bigint")
    return F.timestamp_micros(F.lit(_LATEST_US) - early)


def consumed_rows() -> Column:
    """How many of a fingerprint's rows the consumer landed, and no backfill of ours."""
    return F.col("n") - F.coalesce("own_n", F.lit(0))


def compared_cells(grid: DataFrame, sums: DataFrame) -> DataFrame:
    """The grid with both sides' sums and whether they differ: one row per cell, none is missing.

    Output:
        the grid's columns and those of `cell_sums` (zeros where neither side was seen), `differs`.
    """
    counts = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
    counts.append("ledger_rows")
    # Both sides are unique on the cell: the grid by its making, the sums by their grouping.
    return (
        grid.join(sums, ["shard_id", "bucket_start"], how="left")
        .fillna(0, subset=counts)
        .withColumn("differs", differs())
    )


def differs() -> Column:
    """Whether the two fingerprints of a cell are not the same set of ids, each landed once."""
    unequal = [F.col(f"sent_{name}") != F.col(f"landed_{name}") for name in SUMS]
    return unequal[0] | unequal[1] | unequal[2]


def sums_digest() -> Column:
    """Of a cell's two fingerprints: the same as long as what was sent and what landed is."""
    return F.xxhash64(*(f"{side}_{name}" for side in ("sent", "landed") for name in SUMS))


def grid(shards: DataFrame, *, window: Window, bucket: timedelta) -> DataFrame:
    """Every cell of the window: one row per shard and time bucket.

    Input:
        shards: `shard_id`, unique.
        window: aligned to the bucket.
    Output:
        `shard_id`, `bucket_start` (timestamp).
    """
    buckets = F.sequence(F.lit(window.start), F.lit(window.end - bucket), F.lit(bucket))
    return shards.select("shard_id", F.explode(buckets).alias("bucket_start"))


def shifted_shards(cells: DataFrame, sums: DataFrame) -> DataFrame:
    """The shards of which rows lie some hours from their traces: a `sent_at` in local time.

    What was sent to their cells landed, whole, in others, equally far each time. It may have begun
    or ended within the window: but a shard that has a sound cell between two such is not among
    them.

    Input:
        cells: of `compared_cells`; sums: `cell_sums` of all.
    Output:
        `shard_id`, unique; `minutes` (bigint: the rows' time less the traces', at least).
    """
    is_sent = F.col("sent_n") > 0
    sent = cells.where(is_sent & F.col("differs")).select(*_place("sent"))
    landed = sums.where((F.col("landed_n") > 0) & differs()).select(*_place("landed"))
    sound = cells.where(is_sent & ~F.col("differs")).select("shard_id", "bucket_start")
    minutes = (F.unix_micros("landed_in") - F.unix_micros("sent_in")) / F.lit(_MINUTE_US)
    # Not unique on either side: an empty cell is none, and equal sums are equal messages.
    shifted = (
        sent.join(landed, ["shard_id", *SUMS], how="inner")
        .withColumn("minutes", minutes.cast("bigint"))
        .groupBy("shard_id")
        .agg(
            F.count("*").alias("cells"),
            F.min("minutes").alias("minutes"),
            F.max("minutes").alias("most"),
            F.min("sent_in").alias("first_in"),
            F.max("sent_in").alias("last_in"),
        )
        .where(F.col("cells") >= FEWEST_SHIFTED)
        # Two times an hour apart where summer ends.
        .where((F.col("most") - F.col("minutes")).isin(0, 2 * _HALF_HOUR))
        .where(F.pmod("minutes", F.lit(_HALF_HOUR)) == 0)
    )
    # Many sound cells per shard, on purpose: one in between is enough.
    between = (
        shifted.join(sound, ["shard_id"], how="inner")
        .where(F.col("bucket_start") > F.col("first_in"))
        .where(F.col("bucket_start") < F.col("last_in"))
        .select("shard_id")
        .distinct()
    )
    # Presence only.
    return shifted.join(between, ["shard_id"], how="left_anti").select("shard_id", "minutes")


def _place(side: str) -> list[Column]:
    start = F.col("bucket_start").alias(f"{side}_in")
    return [F.col("shard_id"), start, *(F.col(f"{side}_{name}").alias(name) for name in SUMS)]
