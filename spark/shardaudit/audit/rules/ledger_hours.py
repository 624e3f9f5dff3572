"""The ledger by shard and hour, of which all is made that an audit knows of a shard.

A day to which nothing comes any more is summed up once: its hours are kept, and the cells whose two
sides are not the same. What of it is alike on both sides nobody asks for again.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.audit.rules.shard_facts import furthest_then_latest, is_untimed, settled_frontier
from shardaudit.columns.ledger_sums import adds_landed, adds_traces, differs, is_any, reached_at
from shardaudit.model.tables.ledger_tables import CELL_FACTS, LEDGER_HOURS

OF_HOUR = ["shard_id", "hour"]
_LATEST = ("produced_until", "consumed_until", "last_arrival")
HOUR_FACTS = [
    name
    for name in LEDGER_HOURS.names
    if name not in {"stream", "sent_day", "latency_bin", "unequal", "day_digest"}
]


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """What the ledger adds up to.

    `near`: `cell_sums`, with the measures of gaps and arrivals, of the days that are read in full;
    `unequal`: the same of the other days, of the cells whose two sides differ alone; `kept`:
    LEDGER_HOURS of those days; `hours`: of `shard_hours`, of all days, read; `near_days`: those
    of `near`.
    """

    near: DataFrame
    unequal: DataFrame
    kept: DataFrame
    hours: DataFrame
    near_days: frozenset[date]

    @property
    def cells(self) -> DataFrame:
        """All cells, but for those of the other days whose two sides are the same."""
        return self.near.unionByName(self.unequal)

    def without_canary(self) -> "LedgerSums":
        """What there is of the stream's own shards."""
        near, hours = without_canary(self.near), without_canary(self.hours)
        return replace(self, near=near, hours=hours)


def shard_hours(
    cells: DataFrame, *, as_of: datetime, settle_grace: timedelta, bucket: timedelta
) -> DataFrame:
    """What a shard's cells of an hour add up to: HOUR_FACTS, unique on OF_HOUR.

    Input:
        cells: `cell_sums`, with `gap_measures` and `time_measures`.
    Output:
        of the hour (or of the bucket, where that is longer) what LEDGER_HOURS says; `settled_key`:
        of cells that rest for the settle grace; `last_active` and `came_after_us`: of cells that
        had messages, and began by then: a clock that is ahead says nothing.
    """
    begun, was_sent = F.col("bucket_start") <= F.lit(as_of), F.col("produced_until").isNotNull()
    is_active = begun & ((F.col("sent_n") > 0) | (F.col("landed_n") > 0))
    # What a device puts on the stream that was offline.
    came_after_us = F.unix_micros("first_arrival") - F.unix_micros("bucket_start")
    return (
        cells.withColumn("hour", hour_start(slot(bucket)))
        .groupBy(*OF_HOUR)
        .agg(
            *(F.sum(name).alias(name) for name in ("sent_n", "landed_n", "without_landed_at")),
            F.max("sent_key").alias("sent_key"),
            F.min("sent_key").alias("least_sent_key"),
            F.max("landed_key").alias("landed_key"),
            F.max(furthest_then_latest()).alias("furthest"),
            F.max_by("last_landed_at", furthest_then_latest()).alias("frontier_at"),
            F.max("reached").alias("reached"),
            settled_frontier(as_of - settle_grace).alias("settled_key"),
            F.max(reached_at(F.col("reached"))).alias("rested_at"),
            F.max(F.when(is_untimed(), F.col("landed_key"))).alias("untimed_key"),
            F.max("unnumbered_at").alias("unnumbered_at"),
            *(is_any(F.col(name)).alias(name) for name in ("ever_landed", "has_lost_rows")),
            F.max(F.when(is_active, F.col("bucket_start"))).alias("last_active"),
            F.min(F.when(is_active, came_after_us)).alias("came_after_us"),
            F.min(F.when(was_sent, F.col("bucket_start"))).alias("first_sent_at"),
            F.max(F.when(F.col("ever_landed"), F.col("bucket_start"))).alias("landed_until"),
            *(F.max(name).alias(name) for name in _LATEST),
        )
        .select(HOUR_FACTS)
    )


def time_measures() -> tuple[Column, ...]:
    """For `cell_sums`: `produced_until`, `consumed_until`: of what was added on either side."""
    sent, landed = adds_traces(), adds_landed()
    return (
        F.max(F.when(sent, F.col("last_at"))).alias("produced_until"),
        F.max(F.when(landed, F.col("last_at"))).alias("consumed_until"),
    )


def kept_hours(
    sums: LedgerSums, bins: DataFrame, digests: DataFrame, *, bucket: timedelta
) -> DataFrame:
    """What is kept of some days: LEDGER_HOURS, but for the stream.

    Input:
        sums: without the canary; bins: of `patience.hour_bins`.
        digests: `sent_day` and `day_digest` of these days, unique.
    """
    fields = F.struct(*(name for name, _ in CELL_FACTS))
    unequal = (
        sums.near.where(differs())
        .withColumn("hour", hour_start(slot(bucket)))
        .groupBy(*OF_HOUR)
        .agg(F.collect_list(fields).alias("unequal"))
    )
    # Unique on the day, and on the hour, on the right.
    return (
        sums.hours.withColumn("sent_day", F.to_date("hour"))
        .join(F.broadcast(digests), ["sent_day"], how="inner")
        .join(unequal, OF_HOUR, how="left")
        .join(bins, OF_HOUR, how="left")
    )


def unequal_cells(kept: DataFrame) -> DataFrame:
    """The cells that are kept: of `LedgerSums`.

    Input:
        kept: LEDGER_HOURS.
    """
    each = kept.select("shard_id", F.explode("unequal").alias("cell"))
    return each.select("shard_id", *(F.col(f"cell.{name}").alias(name) for name, _ in CELL_FACTS))
