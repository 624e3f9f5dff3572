"""What lacks in a cell less what a filter of the route left out of it, by counts alone.

What a filter traced as left out it left out. Where it need not trace that, what it received less
than it sent on, as long as its share says so. It is told by the place's own cells: of a place that
does not say the producer's shard nothing is taken away.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.rules.sighted import had_messages
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.rates import is_surely_below
from shardaudit.model.route.filters import Beside, RouteFilter

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


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """What filters of the route traced, and the places before and beside them.

    `rows`: SIGHTING_COUNTS; `filters`: the places that leave messages out by design; `beside`: of
    `beside_filters`.
    """

    rows: DataFrame
    filters: Sequence[str]
    beside: Sequence[Beside] = ()

    def by_cell(self, left_out: Column) -> DataFrame:
        """How many messages each cell's filters left out, and how many the places beside them had.

        Input:
            left_out: of a place's `received`, `sent` and `told`, what it traced as left out.
        Output:
            CELL, unique, `left_out`, `had` (bigint: of the first places beside each other, those
            behind the producer, a message again at each). Of places further on, `left_out` is
            without what was at several of them: they had more than those before them passed on.
        """
        # An ingest may have brought what a place received, and the next one what it did with it.
        places = self.rows.groupBy("location", *CELL).agg(
            F.sum("received").alias("received"),
            F.sum("sent").alias("sent"),
            F.sum(F.coalesce("left_out", F.lit(0))).alias("told"),
        )
        is_filter = F.col("location").isin(*self.filters)
        places = places.withColumns(
            {
                "out": F.when(is_filter, left_out).otherwise(0),
                "had": had_messages("told"),
            }
        )
        first = [name for one in self.beside if PRODUCER in one.before for name in one.names]
        again = [_again(one) for one in self.beside if PRODUCER not in one.before]
        return places.groupBy(*CELL).agg(
            (F.sum("out") - sum(again, F.lit(0))).alias("left_out"),
            _sum_of(F.col("had"), first).alias("had"),
        )


def _again(beside: Beside) -> Column:
    """How many messages places beside each other left to each other; 0 when nobody can tell."""
    had, out = F.col("had"), F.col("out")
    passed = _sum_of(had - out, beside.before)
    at_several = F.least(_sum_of(had, beside.names) - passed, _sum_of(out, beside.names))
    return F.when(passed > 0, F.greatest(at_several, F.lit(0))).otherwise(0)


def _sum_of(figure: Column, places: Sequence[str]) -> Column:
    return F.sum(F.when(F.col("location").isin(*places), figure).otherwise(0))


def left_out_for_good() -> Column:
    """How many of a cell's messages were left out, and by none of several places left to another.

    Where places beside each other had more than there are, that many were at several of them, and
    count once as left out too often. Of rows with `sent_n`, and `left_out` and `had` of
    `FilterCounts.by_cell`.
    """
    again = F.greatest(F.coalesce("had", F.lit(0)) - F.col("sent_n"), F.lit(0))
    return F.greatest(F.coalesce("left_out", F.lit(0)) - again, F.lit(0))


def less_the_filtered(cells: DataFrame, counts: FilterCounts, is_by_share: Column) -> DataFrame:
    """The holes, less what filters left out of their cells; doubts as they are.

    Input:
        cells: of `hole_cells`; is_by_share: whether a place's share says what else than it traced
            as left out it did leave out.
    """
    told = F.col("told")
    unsent = F.greatest(F.col("received") - F.col("sent"), told)
    by_cell = counts.by_cell(F.when(is_by_share, unsent).otherwise(told))
    # Unique on the cell on the right, by its grouping.
    known = cells.join(by_cell, CELL, how="left")
    missing = F.when(F.col("is_sure"), F.col("missing") - left_out_for_good()).otherwise(0)
    rest = known.withColumn("missing", missing.cast("bigint"))
    return rest.where(~F.col("is_sure") | (F.col("missing") > 0)).drop("left_out", "had")


def told_left_out(counts: FilterCounts) -> DataFrame:
    """`FilterCounts.by_cell` of what filters traced as left out."""
    return counts.by_cell(F.col("told"))
