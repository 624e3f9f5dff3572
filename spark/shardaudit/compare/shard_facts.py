"""What the ledger proves of each shard: how far its consumer is, how long a row takes to land."""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.model.table import LATENCY_BINS
from shardaudit.model.window import Window

# A shard that was days late once is not believed for days: there has to be time for a repair.
ALLOWANCE_SHARE_OF_RETENTION = 10


def shard_facts(
    sums: DataFrame, allowances: DataFrame, *, as_of: datetime, settle_grace: timedelta
) -> DataFrame:
    """One row per shard of the ledger: its frontier, its allowance and its state.

    Input:
        sums: `cell_sums` of the whole ledger, not of the window alone.
        allowances: `landing_allowances`; a shard that is not there has the settle grace.
    Output:
        `shard_id`, `frontier`, `settled_frontier` (sequence keys or NULL), `frontier_at` (timestamp
        or NULL), `allowance` (seconds, double), `shard_state` (silent | stalled | advancing).
        A stalled shard's frontier is older than its allowance; whether it has something to do, the
        ids say.
    """
    produced = F.col("sent_n") > 0
    frontiers = sums.groupBy("shard_id").agg(
        F.max("landed_key").alias("frontier"),
        F.max_by("last_landed_at", "landed_key").alias("frontier_at"),
        settled_frontier(as_of - settle_grace).alias("settled_frontier"),
        F.max(F.col("ever_landed")).alias("has_landed"),
        F.max(produced).alias("has_produced"),
    )
    # Unique on shard_id on both sides, by their grouping.
    return (
        frontiers.join(allowances, ["shard_id"], how="left")
        .fillna(settle_grace.total_seconds(), subset=["allowance"])
        .withColumn("shard_state", _shard_state(as_of))
        .select(
            "shard_id", "frontier", "settled_frontier", "frontier_at", "allowance", "shard_state"
        )
    )


def settled_frontier(rested_since: datetime) -> Column:
    """Of a shard's `cell_sums`: the greatest sequence key of a cell in which nothing landed since.

    What is at or before it and did not land never will: sinks with parallel writers flush out of
    order, but no later than that.
    """
    is_at_rest = F.col("last_landed_at") <= F.lit(rested_since)
    return F.max(F.when(is_at_rest, F.col("landed_key")))


def _shard_state(as_of: datetime) -> Column:
    resting_us = F.unix_micros(F.lit(as_of)) - F.unix_micros("frontier_at")
    return (
        F.when(F.col("has_produced") & ~F.col("has_landed"), "silent")
        .when(resting_us / F.lit(1_000_000) > F.col("allowance"), "stalled")
        .otherwise("advancing")
    )


def landing_allowances(
    fingerprints: DataFrame, *, window: Window, settle_grace: timedelta, retention: timedelta
) -> DataFrame:
    """How long a message may take before it is overdue: one row per shard that landed rows.

    The greater of the settle grace and the 99th percentile of the landing latency within the window
    (the upper edge of its bin, 2^i seconds), the latter never above a tenth of the retention.

    Output:
        `shard_id`, `allowance` (seconds, double).
    """
    landed = fingerprints.where(
        (F.col("side") == "sink")
        & F.col("latency_counts").isNotNull()
        & (F.col("bucket_start") >= F.lit(window.start))
        & (F.col("bucket_start") < F.lit(window.end))
    )
    per_bin = landed.groupBy("shard_id").agg(
        F.array(
            *(F.sum(F.get("latency_counts", i)).cast("bigint") for i in range(LATENCY_BINS))
        ).alias("counts")
    )
    cap = retention.total_seconds() / ALLOWANCE_SHARE_OF_RETENTION
    edges_s = F.array(*(F.lit(float(1 << i)) for i in range(LATENCY_BINS)))
    p99_s = F.get(edges_s, _percentile_bin(F.col("counts"), percent=99))
    return per_bin.where(_total(F.col("counts")) > 0).select(
        "shard_id",
        F.greatest(F.lit(settle_grace.total_seconds()), F.least(p99_s, F.lit(cap))).alias(
            "allowance"
        ),
    )


def _total(counts: Column) -> Column:
    return F.aggregate(counts, F.lit(0).cast("bigint"), lambda total, n: total + n)


def _percentile_bin(counts: Column, *, percent: int) -> Column:
    """The first bin at which the running count reaches that share of all."""
    upto = F.transform(
        F.sequence(F.lit(1), F.lit(LATENCY_BINS)),
        lambda length: F.struct(
            (length - 1).alias("bin"), _total(F.slice(counts, 1, length)).alias("running")
        ),
    )
    reached = F.filter(upto, lambda x: x["running"] * 100 >= _total(counts) * percent)
    return F.get(reached, 0)["bin"]
