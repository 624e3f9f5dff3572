"""Rows that left the sink when the stream had none of their cell any more.

A lake that keeps fewer days than an audit looks at, or somebody who deletes old rows: what landed
and is deleted later was not lost. That a cell was complete the ledger says: added up batch by
batch, the sink held at one time just what was sent.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.compare.arrivals import arrival, until
from shardaudit.compare.cells import SUMS
from shardaudit.compare.classify import Damage, is_damaged
from shardaudit.compare.drill_down import CELL
from shardaudit.model.retention import Retention


def last_arrival(bucket: timedelta) -> Column:
    """For `cell_sums`: `arrived_until`, the start of the cell in which its last message arrived."""
    return F.max(arrival("arrived_until", bucket)).alias("arrived_until")


def with_vanished(cells: DataFrame, vanished: DataFrame) -> DataFrame:
    """The cells with `was_complete`: whether they are among the vanished; never NULL."""
    marked = vanished.withColumn("was_complete", F.lit(True))
    # Unique on the cell on the right.
    return cells.join(marked, CELL, how="left").fillna(False, subset=["was_complete"])


def is_emptied() -> Column:
    """Whether nothing is left of a cell that was complete: of rows of `with_vanished`."""
    return F.col("was_complete") & (F.col("landed_n") == 0)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """What says whether a cell has left the stream. `damage`: cells that nobody can judge."""

    bucket: timedelta
    kept: Retention
    as_of: datetime
    damage: Damage


def vanished_cells(
    cells: DataFrame, ledger: DataFrame, batches: DataFrame, by: Deadlines
) -> DataFrame:
    """The cells of which rows are gone that were complete until after their last deadline.

    What left the sink while the stream still had a message of the cell is lost, whatever came
    later. What an unreadable file may have fed is not judged.

    Input:
        cells: of `compared_cells`, of sums with `last_arrival`.
        ledger: FINGERPRINTS of the stream; batches: BATCHES of its sink.
    Output:
        `shard_id`, `bucket_start`, unique.
    """
    deadline = until(F.col("arrived_until") + F.lit(by.bucket), by.kept)
    is_over = F.col("differs") & (F.col("sent_n") > 0) & (deadline < F.lit(by.as_of))
    is_dark = is_damaged(by.damage.traces + by.damage.sink)
    sent = [f"sent_{name}" for name in SUMS]
    over = cells.where(is_over & ~is_dark).select(*CELL, *sent, deadline.alias("deadline"))
    # Unique on the cell and on the batch on the right.
    parts = (
        ledger.where(F.col("side") == "sink")
        .join(over, CELL, how="inner")
        .join(batches.select("batch_id", "number", "planned_at"), ["batch_id"], how="inner")
        .groupBy(*CELL, "number")
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            *(F.max(name).alias(name) for name in (*sent, "deadline", "planned_at")),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    before = parts.withColumns(
        {f"before_{name}": F.sum(name).over(so_far) - F.col(name) for name in SUMS}
    )
    equal = [F.col(f"before_{name}") == F.col(f"sent_{name}") for name in SUMS]
    is_late = F.col("planned_at") > F.col("deadline")
    return before.where(equal[0] & equal[1] & equal[2] & is_late).select(*CELL).distinct()
