"""What the gates are told of the ledger: its hours over all shards, and the holes in them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.instants import bucket_start, in_windows
from shardaudit.model.window import Window

# How far before the window one looks: to know when traces were logged, and how silent is usual.
LOOK_BACK = timedelta(days=30)

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Hour:
    """What the ledger has of an hour (or a bucket, when that is longer), over all shards.

    `sent_before`: what an earlier audit counted in it; None when it was not in its window.
    """

    start: datetime
    sent: int
    landed: int
    sent_before: int | None = None
    without_landed_at: int = 0


@dataclass(frozen=True, slots=True)
class Hole:
    """An hour's stretch in which rows landed and no trace was logged, though one was before it.

    `is_open`: no trace was logged after it either.
    """

    hours: int
    landed: int
    is_open: bool


def slot(bucket: timedelta) -> timedelta:
    """The width of what is called an hour here."""
    return max(HOUR, bucket)


def hour_sums(
    cells: DataFrame, kept: DataFrame, before: DataFrame, *, window: Window, width: timedelta
) -> DataFrame:
    """One row per hour, from a while before the window on, with anything in it: the fields of Hour.

    Input:
        cells, kept: `near` and `kept` of `LedgerSums`.
        before: `shard_id, bucket_start, sent`: cells of an earlier audit within the window.
    """
    unknown = F.lit(None).cast("bigint")
    counts = (F.col("sent_n").alias("sent"), F.col("landed_n").alias("landed"))
    rest = (unknown.alias("sent_before"), "without_landed_at")
    since = Window(window.start - LOOK_BACK, window.end).aligned(width).start
    looked_at = [Window(since, window.end)]
    near = cells.where(in_windows(F.col("bucket_start"), looked_at))
    far = kept.where(in_windows(F.col("hour"), looked_at))
    ledger = near.select(hour_start(width).alias("start"), *counts, *rest).union(
        far.select(hour_start(width, "hour").alias("start"), *counts, *rest)
    )
    earlier = before.select(
        hour_start(width).alias("start"),
        unknown.alias("sent"),
        unknown.alias("landed"),
        F.col("sent").alias("sent_before"),
        F.lit(0).cast("bigint").alias("without_landed_at"),
    )
    return (
        ledger.unionByName(earlier)
        .groupBy("start")
        .agg(
            F.coalesce(F.sum("sent"), F.lit(0)).alias("sent"),
            F.coalesce(F.sum("landed"), F.lit(0)).alias("landed"),
            F.sum("sent_before").alias("sent_before"),
            F.sum("without_landed_at").alias("without_landed_at"),
        )
        .where((F.col("sent") > 0) | (F.col("landed") > 0) | F.col("sent_before").isNotNull())
    )


def holes(hours: Sequence[Hour], width: timedelta) -> dict[datetime, Hole]:
    """The hole that an hour is in, by the hour's start. Before the first trace there is none."""
    found: dict[datetime, Hole] = {}
    stretch: list[Hour] = []
    is_traced = False
    for hour in sorted(hours, key=lambda hour: hour.start):
        if hour.sent > 0:
            found |= _hole(stretch, width, is_open=False)
            stretch, is_traced = [], True
        elif hour.landed > 0 and is_traced:
            stretch.append(hour)
    return found | _hole(stretch, width, is_open=True)


def silence_lengths(hours: Iterable[Hour], width: timedelta) -> dict[datetime, tuple[int, int]]:
    """By an hour's start the silence before it, and the longest one anywhere else, in hours."""
    active = sorted(hour.start for hour in hours if hour.sent > 0 or hour.landed > 0)
    lengths = {then: (then - before - width) // HOUR for before, then in pairwise(active)}
    longest = [*sorted(lengths.values(), reverse=True)[:2], 0, 0]
    return {
        start: (length, longest[1] if length == longest[0] else longest[0])
        for start, length in lengths.items()
    }


def _hole(stretch: Sequence[Hour], width: timedelta, *, is_open: bool) -> dict[datetime, Hole]:
    if not stretch:
        return {}
    hours = (stretch[-1].start - stretch[0].start + width) // HOUR
    hole = Hole(hours, sum(hour.landed for hour in stretch), is_open)
    return {hour.start: hole for hour in stretch}


def hour_start(width: timedelta, instant: Column | str = "bucket_start") -> Column:
    """The start of the hour (of that width) in which a cell, or an instant, lies."""
    return bucket_start(F.col(instant) if isinstance(instant, str) else instant, width)
