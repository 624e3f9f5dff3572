"""What the ledger proves of each shard: how far its consumer is, and what it does."""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.patience import is_overdue
from shardaudit.columns.ledger_sums import is_any, reached_at
from shardaudit.model.verdict import ConsumerState


def shard_facts(
    hours: DataFrame, patience: DataFrame, *, as_of: datetime, settle_grace: timedelta
) -> DataFrame:
    """One row per shard of the ledger: its frontier, its patience and its state.

    Input:
        hours: of `ledger_hours.shard_hours`: of the whole ledger, not of the window alone.
        patience: `patiences`; a shard that is not there has the settle grace.
    Output:
        `shard_id`, `frontier`, `settled_frontier` (sequence keys or NULL), `frontier_at` (timestamp
        or NULL), `rests_since` (when the frontier first landed: what lands again makes it no
        younger), `untimed_frontier` (the same over cells of which nobody knows when they landed),
        `has_more` (boolean: whether something was sent beyond the frontier),
        `has_position` (boolean: whether the frontier says where the consumer is),
        `patience` (seconds, double), `consumer_state` (a value of `ConsumerState`; advancing, too,
        where nobody knows since when the frontier rests), `sent_total`, `landed_total` (bigint: all
        that the ledger counts of it), `has_lost_rows` (boolean: whether a batch ever took rows from
        it).
    """
    frontiers = hours.groupBy("shard_id").agg(
        F.max("landed_key").alias("frontier"),
        F.max_by("frontier_at", "furthest").alias("frontier_at"),
        reached_at(F.max("reached")).alias("rests_since"),
        F.max("settled_key").alias("settled_frontier"),
        F.max("untimed_key").alias("untimed_frontier"),
        F.coalesce(F.max("sent_key") > F.max("landed_key"), F.lit(False)).alias("has_more"),
        is_any(F.col("ever_landed")).alias("has_landed"),
        is_any(F.col("has_lost_rows")).alias("has_lost_rows"),
        is_any(F.col("sent_n") > 0).alias("has_produced"),
        F.max("unnumbered_at").alias("unnumbered_at"),
        F.sum("sent_n").alias("sent_total"),
        F.sum("landed_n").alias("landed_total"),
    )
    # Unique on shard_id on both sides, by their grouping.
    return (
        frontiers.join(patience, ["shard_id"], how="left")
        .fillna(settle_grace.total_seconds(), subset=["patience"])
        .withColumn("has_position", _has_position())
        .withColumn("consumer_state", _consumer_state(as_of))
        .select(
            "shard_id",
            "frontier",
            "settled_frontier",
            "frontier_at",
            "rests_since",
            "untimed_frontier",
            "has_more",
            "has_position",
            "patience",
            "consumer_state",
            "sent_total",
            "landed_total",
            "has_lost_rows",
        )
    )


def with_behind_parent(facts: DataFrame, behind: DataFrame | None) -> DataFrame:
    """The facts of each shard, and `behind_parent`: which its consumer has to drain before it.

    Input:
        facts: of `shard_facts`.
        behind: `shard_id` (unique), `behind_parent`; None: no shard is behind one.
    """
    if behind is None:
        return facts.withColumn("behind_parent", F.lit(None).cast("string"))
    # Unique on shard_id on both sides.
    return facts.join(F.broadcast(behind), ["shard_id"], how="left")


def settled_frontier(rested_since: datetime) -> Column:
    """Of a shard's `cell_sums`: the greatest sequence key of a cell that had first landed by then.

    What is at or before it and did not land never will: sinks with parallel writers flush out of
    order, but no later than that. What is written anew, with another time, was there before.
    """
    is_at_rest = reached_at(F.col("reached")) <= F.lit(rested_since)
    return F.max(F.when(is_at_rest, F.col("landed_key")))


def furthest_then_latest() -> Column:
    """Sorts cells by their sequence key; of an aggregate's two cells the one that landed last."""
    landed_us = F.coalesce(F.unix_micros("last_landed_at"), F.lit(0))
    return F.concat("landed_key", (landed_us + F.lit(10**17)).cast("string"))


def is_untimed() -> Column:
    """Whether none of a cell's rows says when it landed: only that an ingest found them."""
    untimed = F.col("without_landed_at")
    return (untimed > 0) & (untimed >= F.col("consumed_n"))


def _has_position() -> Column:
    """Whether the frontier says where the consumer is; else it may be anywhere.

    Rows have sequence numbers, the frontier's a known time, and none landed later without one.
    """
    is_newest = F.col("unnumbered_at").isNull() | (F.col("unnumbered_at") <= F.col("frontier_at"))
    return F.col("frontier").isNotNull() & F.coalesce(
        F.col("frontier_at").isNotNull() & is_newest, F.lit(False)
    )


def _consumer_state(as_of: datetime) -> Column:
    is_resting = is_overdue(F.col("rests_since"), as_of)
    return (
        F.when(F.col("has_produced") & ~F.col("has_landed"), ConsumerState.NOT_STARTED.value)
        .when(is_resting, ConsumerState.RESTING.value)
        .otherwise(ConsumerState.ADVANCING.value)
    )
