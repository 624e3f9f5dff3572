"""The cells that must have a verdict, and the fingerprints of both sides in them."""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.drill_down import difference_hash
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_hash, differs, sums_digest
from shardaudit.ingest.rules.fingerprint import fingerprint_sums
from shardaudit.model.window import Window

FEWEST_SHIFTED = 10  # so many cells of a shard that lie equally far apart are no accident
_UNSENT = [f"unsent_{name}" for name in SUMS]
_MINUTE_US, _HALF_HOUR = 60_000_000, 30  # zones are whole numbers of half hours, but for three


def compared_cells(grid: DataFrame, sums: DataFrame) -> DataFrame:
    """The grid with both sides' sums and whether they differ: one row per cell, none is missing.

    Output:
        the grid's columns and those of `cell_sums` (zeros where neither side was seen), `differs`,
        `unsent_n, …` of `with_unsent`, and `filtered_n` of `without_left_out`, 0; `sums_digest`, of
        both sides as the ledger has them; NULL: they are alike.
    """
    counts = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
    counts.append("ledger_rows")
    # Both sides are unique on the cell: the grid by its making, the sums by their grouping.
    return (
        grid.join(sums, CELL, how="left")
        .fillna(0, subset=counts)
        .withColumns(
            {
                "differs": differs(),
                "sums_digest": F.when(differs(), sums_digest()),
                **dict.fromkeys([*_UNSENT, "filtered_n"], F.lit(0).cast("bigint")),
            }
        )
    )


def with_unsent(cells: DataFrame, unsent: DataFrame) -> DataFrame:
    """The cells with `unsent_n`: how many untraced ids are only counted there, and not named.

    Input:
        unsent: of `drill_down.unsent`, those that no finding names.
    Output:
        also `unsent_sum_lo`, `unsent_sum_hi` of these.
    """
    sums = zip(fingerprint_sums(F.col("id_hash"), F.lit(1)), _UNSENT, strict=True)
    counts = unsent.groupBy("cell").agg(*(column.alias(name) for column, name in sums))
    # Unique on the cell on the right, by its grouping.
    found = cells.drop(*_UNSENT).withColumn("cell", cell_hash()).join(counts, ["cell"], how="left")
    return found.fillna(0, subset=_UNSENT).drop("cell")


def landed_besides(name: str = "n") -> Column:
    """Of a sum of what landed in a cell, all but the ids of `with_unsent`."""
    return F.col(f"landed_{name}") - F.col(f"unsent_{name}")


def is_all_else_even() -> Column:
    """Whether a cell, but for some ids of `with_unsent`, holds just what was sent."""
    same = [F.col(f"sent_{name}") == landed_besides(name) for name in SUMS]
    return (F.col("unsent_n") > 0) & same[0] & same[1] & same[2]


def most_unsent() -> Column:
    """How many untraced rows there are at most in the cells that are read by id: of `with_bare`."""
    # One that differs as if by one id has one too many, or none.
    is_one_more = F.col("landed_n") > F.col("sent_n")
    is_by_one = difference_hash().isNotNull()
    most = F.when(~is_by_one, F.col("landed_n")).when(is_one_more, 1)
    return F.coalesce(F.sum(F.when(_is_read(), most)), F.lit(0))


def gaps_no_more() -> Column:
    """How many cells were gaps and are none by the rows that are there now: of `with_bare`."""
    return F.count_if(_is_read() & F.col("has_gap") & (F.col("landed_n") > 0))


def _is_read() -> Column:
    return F.col("differs") & ~F.col("is_bare")


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
        cells: of `compared_cells`; sums: `LedgerSums.cells`.
    Output:
        `shard_id`, unique; `minutes` (bigint: the rows' time less the traces', at least).
    """
    is_sent = F.col("sent_n") > 0
    sent = cells.where(is_sent & F.col("differs")).select(*_place("sent"))
    landed = sums.where((F.col("landed_n") > 0) & differs()).select(*_place("landed"))
    sound = cells.where(is_sent & ~F.col("differs")).select(*CELL)
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
