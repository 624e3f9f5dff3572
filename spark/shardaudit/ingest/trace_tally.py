"""What is in the files of a batch of traces, counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected


@dataclass(frozen=True, slots=True)
class TraceTally:
    """What is in the files of a batch. `damaged`: path -> reason; `kept_from`: path -> time.

    `first`: the least `sent_at` that was kept; `sighted`: traces of other places, beside `good`.
    """

    good: int
    bad: int
    damaged: Mapping[str, str]
    kept_from: Mapping[str, datetime]
    first: datetime | None
    buckets: tuple[datetime, datetime] | None
    days: frozenset[date]
    sighted: int = 0


def tallied(judged: DataFrame) -> TraceTally:
    """The tally of a batch.

    Input:
        judged: of `judged_traces`.
    """
    is_good = F.col("reason").isNull()
    rows = collected(
        judged.groupBy("file").agg(
            F.count_if(is_good).alias("good"),
            F.count_if(~is_good).alias("bad"),
            F.max(F.when(F.col("line").isNull(), F.col("reason"))).alias("damage"),
            F.min(F.when(is_good, F.col("sent_at"))).alias("kept_from"),
            F.min("bucket_start").alias("first"),
            F.max("bucket_start").alias("last"),
            F.collect_set(F.to_date("bucket_start")).alias("days"),
        )
    )
    kept = [row for row in rows if row.good]
    starts = sorted(start for row in kept for start in (row["first"], row["last"]))
    return TraceTally(
        good=sum(row.good for row in rows),
        bad=sum(row.bad for row in rows),
        damaged={row.file: row.damage for row in rows if row.damage is not None},
        kept_from={row.file: row.kept_from for row in kept},
        first=min((row.kept_from for row in kept), default=None),
        buckets=(starts[0], starts[-1]) if starts else None,
        days=frozenset(day for row in rows for day in row.days),
    )
