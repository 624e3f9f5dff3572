"""Traces and sink rows → fingerprints of cells, ready to be added to the ledger.

A fingerprint adds up: those of two batches sum to that of both, and what was removed is subtracted.
The hash of an id: `columns/ledger_sums.py`.
"""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import (
    ARRIVALS,
    CELL,
    SUMS,
    id_hash,
    sequence_key,
    sequence_number,
)
from shardaudit.ingest.rules.coarse_times import landed_within
from shardaudit.ingest.rules.deliveries import UNPLACED
from shardaudit.model.route.route import SINK
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS

# The columns of FINGERPRINTS without those that say whose they are, in table order.
MEASURES = (
    *SUMS,
    "max_sequence_number",
    "last_at",
    "latency_counts",
    "sent_day",
    "own_n",
    "without_landed_at",
    "unnumbered_at",
    *ARRIVALS,
    "min_sequence_number",
)
_ROWS = ("own_n", "without_landed_at")  # counted besides `n`
_BARE = "bare_n"  # rows with neither `landed_at` nor a sequence number: not for the ledger

_LOW_HALF = 0xFFFFFFFF
_SECOND_US = 1_000_000


def fingerprint_sums(h: Column, weight: Column) -> list[Column]:
    """`n`, `sum_lo`, `sum_hi` of the rows' hashes, in halves of 32 bits: their sums never overflow.

    Input:
        h: `xxhash64(message_id)`; weight: how often a row counts; below zero: it is taken away.
    """
    return [
        F.sum(weight).cast("bigint").alias("n"),
        F.sum(h.bitwiseAND(F.lit(_LOW_HALF)) * weight).alias("sum_lo"),
        F.sum(F.shiftright(h, 32) * weight).alias("sum_hi"),
    ]


def trace_sums(traces: DataFrame, *more: Column, by: Sequence[str] = ()) -> DataFrame:
    """What cells add up to, so that parts of a batch can be: see `trace_fingerprints`.

    Input:
        traces: `location`, CELL, `message_id`, `sequence_number`, `sent_at`, `acked_at`,
        `ingested_at`, `counted`.
        more: further aggregations, as columns of their own; by: columns by which cells are parted.
    Output:
        `location`, CELL, `by`, unique together; SUMS, keys, times, `more`.
    """
    weight, arrived_at = F.col("counted").cast("int"), trace_arrival()
    key = sequence_key(F.col("sequence_number"))
    grouped = traces.groupBy("location", *CELL, *by).agg(
        *fingerprint_sums(id_hash(), weight),
        F.max(key).alias("max_key"),
        # Where one has no number, the least of all is not known.
        F.min(F.coalesce(key, F.lit(""))).alias("min_key"),
        F.max("sent_at").alias("last_at"),
        F.min(arrived_at).alias("arrived_from"),
        F.max(arrived_at).alias("arrived_until"),
        *more,
        _hashed_not_sorted(),
    )
    return grouped.where(_is_hashed()).drop("nothing")


def trace_fingerprints(sums: DataFrame) -> DataFrame:
    """The counted ids of each cell; the greatest sequence number and time are of all its traces.

    Input:
        sums: of `trace_sums`, of all parts of one batch.
    Output:
        `location`, CELL, MEASURES; `n` may be 0, `latency_counts` is NULL.
    """
    grouped = sums.groupBy("location", *CELL).agg(
        *(F.sum(name).alias(name) for name in SUMS),
        *(F.min(name).alias(name) for name in ("min_key", "arrived_from")),
        *(F.max(name).alias(name) for name in ("max_key", "last_at", "arrived_until")),
        _hashed_not_sorted(),
    )
    return (
        grouped.where(_is_hashed())
        .withColumn("latency_counts", F.lit(None).cast("array<bigint>"))
        .withColumns({name: F.lit(None).cast("bigint") for name in _ROWS})
        .withColumn("unnumbered_at", F.lit(None).cast("timestamp"))
        .withColumn("min_sequence_number", F.nullif(sequence_number(F.col("min_key")), F.lit("")))
        .select("location", *CELL, *_measures())
    )


def trace_arrival() -> Column:
    """When the stream took a trace's message, at the latest: of rows of TRACES.

    A producer's clock may be ahead; what an ingest read had arrived by then.
    """
    return F.least(F.greatest("sent_at", "acked_at"), "ingested_at")


def sink_fingerprints(added: DataFrame, removed: DataFrame | None, *, now: datetime) -> DataFrame:
    """The rows that came into each cell less those that went out of it.

    Input:
        added, removed: of `deliveries.judged_sink_rows`.
        now: when the sink was looked at. What was there had landed, whatever its own time says: a
        clock that is ahead, or local time, would hide for so long that a consumer stands still.
    Output:
        `location`, CELL, MEASURES, `added` (good rows, bigint), `bare_n` (rows that say neither
        when they landed nor where in their shard, bigint); one row with a NULL `bucket_start`
        counts in `n` the added rows that cannot be used, one with UNPLACED those that lack a place;
        neither is for the ledger, and both have no shard. `max_sequence_number` and `last_at` are
        of the added rows alone, NULL where none was added. Rows of our own say nothing of the
        consumer that reads the stream: only the sums and `own_n` know of them. Rows without
        `landed_at` are in no time, see `seen_by`.
    """
    signed = added.withColumn("sign", F.lit(1))
    if removed is not None:
        gone = removed.where(F.col("reason").isNull()).withColumn("sign", F.lit(-1))
        signed = signed.unionByName(gone)
    is_good, is_added = F.col("reason").isNull(), F.col("sign") == 1
    is_placed = is_good & (F.col("bucket_start") != F.lit(UNPLACED))
    is_own = F.coalesce("is_own", F.lit(False))
    is_consumed = is_good & ~is_own
    landed_at = F.when(F.col("landed_at") > F.lit(now), F.lit(now)).otherwise(F.col("landed_at"))
    is_bare = is_consumed & F.col("landed_at").isNull()
    key = sequence_key(F.col("sequence_number"))
    is_unnumbered = is_consumed & F.col("sequence_number").isNull()
    per_bin = (
        signed.withColumn("latency_bin", latency_bin(F.col("sent_at"), F.col("landed_at")))
        .withColumn("shard_id", F.when(is_placed, F.col("shard_id")))
        .withColumn("latency_bin", F.when(is_consumed, F.col("latency_bin")))
        .groupBy(*CELL, "latency_bin")
        .agg(
            *fingerprint_sums(id_hash(), F.col("sign")),
            F.count_if(is_added & is_good).alias("added"),
            F.max(F.when(is_added & is_consumed, key)).alias("max_key"),
            F.max(F.when(is_added & is_consumed, landed_at)).alias("last_at"),
            F.sum(F.when(is_good & is_own, F.col("sign")).otherwise(0)).alias("own_n"),
            F.sum(F.when(is_bare, F.col("sign")).otherwise(0)).alias("without_landed_at"),
            F.max(F.when(is_added & is_unnumbered, landed_at)).alias("unnumbered_at"),
            F.sum(F.when(is_bare & is_unnumbered, F.col("sign")).otherwise(0)).alias(_BARE),
            _hashed_not_sorted(),
        )
        .where(_is_hashed())
    )
    return _per_cell(per_bin)


def less_the_ledger(fresh: DataFrame, ledger: DataFrame) -> DataFrame:
    """A full new reading of the sink as the difference to what the ledger holds of it so far.

    Input:
        fresh: `sink_fingerprints` of all that is there now.
        ledger: FINGERPRINTS of the stream's sink.
    Output:
        as `fresh`; cells that are no longer there come out below zero, so that they add up to zero.
    """
    taken_back = ledger.groupBy(*CELL).agg(
        *((-F.sum(name)).alias(name) for name in SUMS),
        F.lit(None).cast("string").alias("max_sequence_number"),
        F.lit(None).cast("timestamp").alias("last_at"),
        F.array(*(-F.sum(_bin_count(i)) for i in range(LATENCY_BINS))).alias("latency_counts"),
        *((-F.sum(F.coalesce(name, F.lit(0)))).alias(name) for name in _ROWS),
        F.lit(None).cast("timestamp").alias("unnumbered_at"),
        *(F.lit(None).cast("bigint").alias(name) for name in ("added", _BARE)),
    )
    return (
        fresh.select(taken_back.columns)
        .unionByName(taken_back)
        .groupBy(*CELL)
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("added", _BARE)),
            # One row of each cell at most has these: the fresh one.
            F.max("max_sequence_number").alias("max_sequence_number"),
            F.max("last_at").alias("last_at"),
            F.array(*(F.sum(_bin_count(i)) for i in range(LATENCY_BINS))).alias("latency_counts"),
            *(F.sum(name).alias(name) for name in _ROWS),
            F.max("unnumbered_at").alias("unnumbered_at"),
        )
        .withColumns(_of_traces_alone())
        .select(F.lit(SINK).alias("location"), *CELL, *_with_day(), "added", _BARE)
    )


def seen_by(cells: DataFrame, *, now: datetime) -> DataFrame:
    """The same cells, with what is known of rows that do not say when they landed: by now.

    Only where more of them came than went: what is rewritten did not land anew.

    Input:
        cells: of `sink_fingerprints` or `less_the_ledger`; now: when the sink was looked at.
    """
    landed = F.when(F.col("without_landed_at") > 0, F.lit(now)).otherwise(F.col("last_at"))
    return cells.withColumn("last_at", landed).withColumn("unnumbered_at", _unnumbered_at(now))


def _unnumbered_at(now: datetime) -> Column:
    """When the last row without a sequence number landed; by now, where it does not say."""
    # The ledger does not know which of its rows are bare: a full new reading counts them all.
    is_bare = F.least("without_landed_at", _BARE) > 0
    return F.when(is_bare, F.lit(now)).otherwise(F.col("unnumbered_at"))


def latency_bin(sent_at: Column, landed_at: Column) -> Column:
    """The bin of a latency: 0 up to 1 s (below zero too), i up to 2^i s, the last is open."""
    latency_us = F.unix_micros(landed_at) - F.unix_micros(sent_at)
    found = F.when(latency_us <= _SECOND_US, 0)
    for i in range(1, LATENCY_BINS - 1):
        found = found.when(latency_us <= _SECOND_US << i, i)
    return found.when(latency_us.isNotNull(), LATENCY_BINS - 1)


def _hashed_not_sorted() -> Column:
    """An empty list, for the plan's sake.

    The greatest of a text alone would make Spark sort every row; beside a list it groups by hashing
    (5 s instead of 18 s at 10 M rows).
    """
    return F.collect_list(F.lit(None).cast("int")).alias("nothing")


def _is_hashed() -> Column:
    """Always true; it keeps the list of `_hashed_not_sorted` in the plan."""
    return F.size("nothing") == 0


def _per_cell(per_bin: DataFrame) -> DataFrame:
    """The rows per (cell, latency bin) put together: one row per cell."""
    grouped = per_bin.groupBy(*CELL).agg(
        *(F.sum(name).alias(name) for name in (*SUMS, "added", *_ROWS, _BARE)),
        *(F.max(name).alias(name) for name in ("max_key", "last_at", "unnumbered_at")),
        # No list of bins: the embedded engine makes an object of it for each cell.
        F.array(*(_rows_in_bin(i) for i in range(LATENCY_BINS))).alias("latency_counts"),
        _hashed_not_sorted(),
    )
    return (
        grouped.where(_is_hashed())
        .withColumns(_of_traces_alone())
        .select(F.lit(SINK).alias("location"), *CELL, *_measures(), "added", _BARE)
    )


def _rows_in_bin(i: int) -> Column:
    return F.sum(F.when(F.col("latency_bin") == i, F.col("n")).otherwise(0))


def _of_traces_alone() -> dict[str, Column]:
    """What rows of the sink do not say."""
    arrivals = {name: F.lit(None).cast("timestamp") for name in ARRIVALS}
    return arrivals | {"min_sequence_number": F.lit(None).cast("string")}


def _measures() -> list[Column]:
    return [
        *(F.col(name) for name in SUMS),
        sequence_number(F.col("max_key")).alias("max_sequence_number"),
        *(F.col(name) for name in ("last_at", "latency_counts")),
        F.to_date("bucket_start").alias("sent_day"),
        *(F.col(name).cast("bigint").alias(name) for name in _ROWS),
        *(F.col(name) for name in ("unnumbered_at", *ARRIVALS, "min_sequence_number")),
    ]


def _with_day() -> list[Column]:
    day = F.to_date("bucket_start").alias("sent_day")
    return [day if name == "sent_day" else F.col(name) for name in MEASURES]


def _bin_count(i: int) -> Column:
    return F.coalesce(F.get("latency_counts", i), F.lit(0).cast("bigint"))


def placed_ledger(placed: DataFrame, *, now: datetime, came_by: datetime) -> DataFrame:
    """What the ledger would hold of the rows: FINGERPRINTS, of no batch and no stream.

    Input:
        came_by: when an ingest last found such rows. By then landed what only a cut time tells of.
    """
    nothing = F.lit(None).cast("string")
    cells = sink_fingerprints(placed.withColumn("reason", nothing), None, now=now)
    whose = {"batch_id": nothing, "stream": nothing, "side": F.lit("sink")}
    return (
        landed_within(cells, now=now, came_by=came_by)
        .withColumn("unnumbered_at", _unnumbered_at(now))
        .withColumns(whose)
        .select(FINGERPRINTS.names)
    )
