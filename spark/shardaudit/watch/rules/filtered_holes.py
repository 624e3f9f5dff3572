"""What lacks in a cell less what a filter of the route left out of it, by counts alone.

What a filter traced as left out it left out. Where it need not trace that, what it received less
than it sent on, as long as its share says so. It is told by the place's own cells: of a place that
does not say the producer's shard nothing is taken away.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.rates import is_surely_below
from shardaudit.model.route.filters import RouteFilter

Counts = tuple[str, datetime, int, int]  # of a place and hour: received, sent


def broken_filter_hours(counts: Sequence[Counts], of: Sequence[RouteFilter]) -> set[datetime]:
    """The hours in which a filter passed on less than its share; none of one that tells."""
    broken = set[datetime]()
    for each in [one for one in of if not one.tells]:
        received, passed = Counter[datetime](), Counter[datetime]()
        for place, at, came, sent in counts:
            if place in each.places:
                received[at] += came
                passed[at] += sent
        broken |= {at for at in received if is_surely_below(passed[at], received[at], each.share)}
    return broken


def less_the_filtered(cells: DataFrame, counts: DataFrame, is_by_share: Column) -> DataFrame:
    """The holes, less what filters left out of their cells; doubts as they are.

    Input:
        cells: of `hole_cells`; counts: SIGHTING_COUNTS of filters; is_by_share: whether a row's
            share says what else than it traced as left out it did leave out.
    """
    told = F.coalesce("left_out", F.lit(0))
    unsent = F.greatest(F.col("received") - F.col("sent"), told)
    left = F.when(is_by_share, unsent).otherwise(told)
    by_cell = counts.groupBy(*CELL).agg(F.sum(left).alias("left_out"))
    # Unique on the cell on the right, by its grouping.
    known = cells.join(by_cell, CELL, how="left").fillna(0, subset=["left_out"])
    missing = F.when(F.col("is_sure"), F.col("missing") - F.col("left_out")).otherwise(0)
    rest = known.withColumn("missing", missing.cast("bigint"))
    return rest.where(~F.col("is_sure") | (F.col("missing") > 0)).drop("left_out")


def told_left_out(counts: DataFrame) -> DataFrame:
    """Of each cell how many of its messages filters traced as left out.

    Input:
        counts: SIGHTING_COUNTS of filters.
    Output:
        CELL, unique, `left_out` (bigint; NULL: its rows are older than that column).
    """
    return counts.groupBy(*CELL).agg(F.sum("left_out").alias("left_out"))
