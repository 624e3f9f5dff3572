"""What the ledger's fingerprints add up to: the words that ingest, audit and watch share."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.model.sequence import LENGTHS, MAX_DIGITS, NUMBER_AT

CELL = ["shard_id", "bucket_start"]
SUMS = ("n", "sum_lo", "sum_hi")
ARRIVALS = ("arrived_from", "arrived_until")  # of traces alone, as the least sequence number
_LATEST_US = 2 * 10**17  # in the year 8307: all that is before it has as many digits


def id_hash() -> Column:
    """What ids are compared by where they are many: `id_hash` (bigint)."""
    return F.xxhash64("message_id").alias("id_hash")


def cell_hash() -> Column:
    """What cells are told by where rows are many: `cell` (bigint)."""
    return F.xxhash64(*CELL).alias("cell")


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
    return fingerprints.groupBy(*CELL).agg(
        *sums,
        *keys,
        F.max(F.when(sides["landed"], _reached())).alias("reached"),
        F.max(F.when(sides["landed"], F.col("last_at"))).alias("last_landed_at"),
        F.max(F.when(sides["landed"], F.col("unnumbered_at"))).alias("unnumbered_at"),
        is_any(sides["landed"] & (consumed_rows() > 0)).alias("ever_landed"),
        is_any(sides["landed"] & _takes_rows()).alias("has_lost_rows"),
        F.sum(F.when(sides["landed"], consumed_rows()).otherwise(0)).alias("consumed_n"),
        F.sum(F.coalesce("without_landed_at", F.lit(0))).alias("without_landed_at"),
        F.count("*").alias("ledger_rows"),
        *more,
    )


def is_any(condition: Column) -> Column:
    """Whether a condition holds of one of a group's rows; NULL does not hold.

    Not `max`: the embedded engine takes ten times as long for the greatest of booleans.
    """
    return F.count_if(condition) > 0


def _takes_rows() -> Column:
    """Whether rows went with a batch: more than came, or as many, with other ids."""
    others = (F.col("sum_lo") != 0) | (F.col("sum_hi") != 0)
    return (F.col("n") < 0) | ((F.col("n") == 0) & others)


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


def adds_traces() -> Column:
    """Whether a fingerprint is of traces that a batch brought."""
    return (F.col("side") == "traces") & (F.col("n") > 0)


def adds_landed() -> Column:
    """Whether it is of rows that the consumer landed."""
    return (F.col("side") == "sink") & (consumed_rows() > 0)


def differs() -> Column:
    """Whether the two fingerprints of a cell are not the same set of ids, each landed once."""
    unequal = [F.col(f"sent_{name}") != F.col(f"landed_{name}") for name in SUMS]
    return unequal[0] | unequal[1] | unequal[2]


def is_whole() -> Column:
    """Whether something was sent to a cell, and just that landed in it, each once."""
    return (F.col("sent_n") > 0) & ~differs()


def sums_digest() -> Column:
    """Of a cell's two fingerprints: the same as long as what was sent and what landed is."""
    return F.xxhash64(*(f"{side}_{name}" for side in ("sent", "landed") for name in SUMS))
