"""How long a landing may take before somebody asks: one measure, for the audit and for the watch.

By the hours of a week and not by its messages: those that an outage delays all lie in its own
hours, and these are a few among many, or so slow that they are left out.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.columns.instants import in_windows, seconds_between
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.window import Window

LOOKED_BACK = timedelta(days=7)
# What takes longer is no habit: there has to be time for a repair.
SHARE_OF_RETENTION = 10
# Of a hundred messages of an hour so many landed, and of so many hours one was as fast.
_PERCENT, _HOURS = 99, 3


def looked_back(as_of: datetime, bucket: timedelta) -> Window:
    """The last seven days, in whole hours where they begin."""
    since = Window(as_of - LOOKED_BACK, as_of).aligned(slot(bucket)).start
    return Window(since, as_of)


def is_overdue(since: Column, as_of: datetime) -> Column:
    """Whether more time has passed since then than a landing takes; of no time NULL.

    Of a row with the `patience` of its shard. What arrived then should have landed, and a frontier
    that first landed then rests.
    """
    return seconds_between(since, F.lit(as_of)) > F.col("patience")


def is_cell_due(end: Column, as_of: datetime) -> Column:
    """The same of all that arrived in a cell: nothing in it came at its end, or later."""
    return seconds_between(end, F.lit(as_of)) >= F.col("patience")


def patiences(week: DataFrame, *, settle_grace: timedelta, retention: timedelta) -> DataFrame:
    """How long a landing may take: one row per shard of which the consumer landed rows of late.

    The time in which 99 % of an hour's messages landed, as a third of the hours of the last seven
    days keep it. Hours that took longer than a tenth of the retention were outages: they do not
    count, unless there are no others. At least the settle grace, at most that tenth. Messages are
    of the hour in which they were sent; bins of latency count by their upper edge.

    Input:
        week: of `week_bins`.
    Output:
        `shard_id`, `patience` (seconds, double).
    """
    cap_s = (retention / SHARE_OF_RETENTION).total_seconds()
    within = sum(1 << i <= cap_s for i in range(LATENCY_BINS - 1))  # so many bins, the first ones
    by_bin = week.groupBy("shard_id").agg(
        F.array(*(F.count_if(F.col("latency_bin") == i) for i in range(within))).alias("hours")
    )
    edges_s = F.array(*(F.lit(float(1 << i)) for i in range(LATENCY_BINS)))
    usual_s = F.get(edges_s, _first_bin(F.col("hours"), share=1, of=_HOURS))
    bounded_s = F.least(F.coalesce(usual_s, F.lit(cap_s)), F.lit(cap_s))
    patience = F.greatest(F.lit(settle_grace.total_seconds()), bounded_s).alias("patience")
    return by_bin.select("shard_id", patience)


def week_bins(
    fingerprints: DataFrame, kept: DataFrame, *, as_of: datetime, bucket: timedelta
) -> DataFrame:
    """`hour_bins` of the last seven days.

    Input:
        fingerprints: rows of one stream, of some days; kept: LEDGER_HOURS of others.
    """
    week = [looked_back(as_of, bucket)]
    near = fingerprints.where(in_windows(F.col("bucket_start"), week))
    known = kept.where(in_windows(F.col("hour"), week) & F.col("latency_bin").isNotNull())
    return hour_bins(near, bucket).union(known.select("shard_id", "hour", "latency_bin"))


def hour_bins(fingerprints: DataFrame, bucket: timedelta) -> DataFrame:
    """Of each shard and hour in which rows landed the bin of their 99th percentile.

    Output:
        `shard_id`, `hour`, unique together, `latency_bin` (int).
    """
    landed = fingerprints.where((F.col("side") == "sink") & F.col("latency_counts").isNotNull())
    sums = [F.sum(F.get("latency_counts", i)).alias(f"bin_{i}") for i in range(LATENCY_BINS)]
    counts = F.array(*(F.col(f"bin_{i}").cast("bigint") for i in range(LATENCY_BINS)))
    of_hour = _first_bin(F.col("counts"), share=_PERCENT, of=100).cast("int")
    return (
        landed.groupBy("shard_id", hour_start(slot(bucket)).alias("hour"))
        .agg(*sums)
        .select("shard_id", "hour", counts.alias("counts"))
        .where(_total(F.col("counts")) > 0)
        .select("shard_id", "hour", of_hour.alias("latency_bin"))
    )


def _total(counts: Column) -> Column:
    return F.aggregate(counts, F.lit(0).cast("bigint"), lambda total, n: total + n)


def _first_bin(counts: Column, *, share: int, of: int) -> Column:
    """The first bin at which the running count reaches that share of all; NULL of none."""
    upto = F.transform(
        F.sequence(F.lit(0), F.size(counts) - 1),
        lambda i: F.struct(i.alias("bin"), _total(F.slice(counts, 1, i + 1)).alias("running")),
    )
    reached = F.filter(
        upto, lambda x: (x["running"] > 0) & (x["running"] * of >= _total(counts) * share)
    )
    return F.get(reached, 0)["bin"]
