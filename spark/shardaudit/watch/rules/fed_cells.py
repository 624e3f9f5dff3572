"""Minutes to which messages come all the time: sums never settle them, so ids have to.

As of devices without a clock, that all stamp the date of their firmware. What is on its way keeps
both sides apart, and hides what the consumer has lost there.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.patience import is_cell_due
from shardaudit.columns.instants import cell_width, seconds_between
from shardaudit.columns.ledger_sums import CELL, sequence_key, sums_digest
from shardaudit.watch.rules.holes import HoleTerms

# After so long a pause in what comes a watch has judged the cell: that of the next quarter of an
# hour, and as long again for its ingest.
_JUDGED_AFTER = timedelta(minutes=30)


def fed_cells(fingerprints: DataFrame, standing: DataFrame, terms: HoleTerms) -> DataFrame:
    """The cells that differ and are not settled, though what came to them first should have landed.

    Input:
        fingerprints: rows of one stream; standing: of `standing_cells`.
    Output:
        `shard_id`, `bucket_start`, `sent_n`, `landed_n`, `arrived_until`, `sums_digest`, `fed_from`
        (when that coming began which never paused since for so long that a watch could judge it),
        `patience` (seconds).
    """
    is_open = ~F.col("is_judged") & ~_is_due("arrived_until", terms)
    open_still = standing.where(is_open & (F.col("sent_n") > 0))
    coming = _coming(fingerprints, open_still.select(*CELL, "patience"), bucket=terms.shape.widest)
    # Unique on the cell on the right, by its grouping.
    fed = open_still.join(coming, CELL, how="inner")
    # Where no cell is settled, as of a shard with no other minute, the time has to do.
    passed = sequence_key(F.when(F.col("has_position"), F.col("settled_until")))
    has_begun = F.col("bucket_start") <= F.col("landed_until")
    is_behind = F.coalesce(F.col("first_key") <= passed, has_begun)
    return fed.where(_is_due("fed_from", terms) & is_behind).select(
        *CELL,
        "sent_n",
        "landed_n",
        F.coalesce("arrived_until", "bucket_start").alias("arrived_until"),
        sums_digest().alias("sums_digest"),
        "fed_from",
        "patience",
    )


def _is_due(arrived_at: str, terms: HoleTerms) -> Column:
    last = F.coalesce(arrived_at, "bucket_start")
    return is_cell_due(last + cell_width(last, terms.shape), terms.settled_by)


def _coming(fingerprints: DataFrame, cells: DataFrame, *, bucket: timedelta) -> DataFrame:
    """Of each cell when the last unbroken coming of messages began, and their first number.

    Output:
        CELL, `fed_from` (timestamp), `first_key` (sequence key; NULL: not known).
    """
    batches = (
        fingerprints.where((F.col("side") == "traces") & (F.col("n") > 0))
        # Unique on the cell on the right: one row per cell.
        .join(F.broadcast(cells), CELL, how="inner")
        .withColumn("first", F.coalesce("arrived_from", "bucket_start"))
        .withColumn("last", F.coalesce("arrived_until", "bucket_start"))
    )
    in_order = Window.partitionBy(*CELL).orderBy("first", "last", "batch_id")
    pause = (bucket + _JUDGED_AFTER).total_seconds()
    goes_on = seconds_between(F.col("before"), F.col("first")) < F.col("patience") + F.lit(pause)
    begun = (
        batches.withColumn("until", F.max("last").over(in_order))
        .withColumn("before", F.lag("until").over(in_order))
        .withColumn("begins", F.when(~F.coalesce(goes_on, F.lit(False)), F.col("first")))
    )
    whole = Window.partitionBy(*CELL)
    return (
        begun.withColumn("fed_from", F.max("begins").over(whole))
        .where(F.col("first") >= F.col("fed_from"))
        .groupBy(*CELL)
        .agg(
            F.max("fed_from").alias("fed_from"),
            F.min(sequence_key(F.col("min_sequence_number"))).alias("first_key"),
        )
    )


def named_or_doubted(fed: DataFrame, *, gone_before: datetime) -> DataFrame:
    """What is known of them: holes, as an audit's findings say, and doubts of what came since.

    Input:
        fed: of `fed_cells`, and `looked_at` (when the newest published audit looked; NULL: none
        did), `live`, `given_up` as of `explained`, never NULL.
        gone_before: what came into the stream earlier has left it.
    Output:
        the columns of `explained`; a cell of which findings are live twice.
    """
    patience_us = (F.col("patience") * 1_000_000).cast("bigint")
    settled_then = F.timestamp_micros(F.unix_micros("looked_at") - patience_us)
    here_from = F.greatest("fed_from", F.lit(gone_before))
    holes = fed.where(F.col("live") > 0)
    return _said(holes, F.col("live"), here_from, is_hole=True).unionByName(
        _said(fed, F.lit(0), F.greatest(here_from, settled_then), is_hole=False)
    )


def _said(cells: DataFrame, missing: Column, arrived_from: Column, *, is_hole: bool) -> DataFrame:
    return cells.select(
        *CELL,
        "sent_n",
        "landed_n",
        arrived_from.alias("arrived_from"),
        "arrived_until",
        missing.cast("bigint").alias("missing"),
        F.lit(is_hole).alias("is_sure"),
        F.lit(is_hole).alias("is_named"),
        "sums_digest",
        "given_up",
    )
