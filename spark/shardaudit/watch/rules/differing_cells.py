"""The cells of which the two sides differ, seen by sums, without ids."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.deadlines import arrival
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.audit.rules.ledger_hours import unequal_cells
from shardaudit.columns.instants import cell_start
from shardaudit.columns.ledger_sums import SUMS, cell_sums, differs
from shardaudit.model.config.eras import Eras


def unequal_hours(fingerprints: DataFrame, *, shape: Eras) -> DataFrame:
    """The hours of a shard over which the sums of both sides differ: `shard_id`, `hour`.

    One pass over numbers alone: a week of 1,800 shards has 300,000 of them, but 18 million cells.

    Input:
        fingerprints: rows of one stream.
    """
    is_sent = F.col("side") == "traces"
    apart = [F.sum(F.when(is_sent, F.col(n)).otherwise(-F.col(n))).alias(n) for n in SUMS]
    hours = fingerprints.groupBy("shard_id", _hour(shape)).agg(*apart)
    return hours.where(_is_unequal()).select("shard_id", "hour")


def _is_unequal() -> Column:
    unequal = [F.col(name) != 0 for name in SUMS]
    return unequal[0] | unequal[1] | unequal[2]


def differing_cells(fingerprints: DataFrame, hours: DataFrame, *, shape: Eras) -> DataFrame:
    """The cells of some hours of which the two sides differ: `cell_sums`, and by what they do.

    Input:
        fingerprints: rows of one stream; hours: of `unequal_hours`.
    Output:
        the columns of `cell_sums`, `arrived_from`, `arrived_until` (starts of cells: when the first
        and the last of the cell's messages came into the stream; NULL: none was sent), `lacking_n`,
        `lacking_sum_lo`, `lacking_sum_hi` (bigint: sent less landed).
    """
    # A hash join: the hours are few, and each is there once.
    wanted = fingerprints.withColumn("hour", _hour(shape)).join(
        F.broadcast(hours), ["shard_id", "hour"], how="left_semi"
    )
    cells = cell_sums(
        wanted,
        F.min(arrival("arrived_from", shape)).alias("arrived_from"),
        F.max(arrival("arrived_until", shape)).alias("arrived_until"),
    ).where(differs())
    return _with_lacking(cells)


def kept_cells(kept: DataFrame, *, shape: Eras) -> DataFrame:
    """`differing_cells` of the days of which the sums are kept, in hours that differ as a whole.

    Input:
        kept: LEDGER_HOURS.
    """
    arrived_from = cell_start(F.col("first_arrival"), shape)
    cells = unequal_cells(kept).withColumn("arrived_from", arrived_from)
    cells = _with_lacking(cells.drop("first_key", "first_arrival", "last_arrival"))
    sums = [F.sum(f"lacking_{name}").alias(name) for name in SUMS]
    hours = cells.withColumn("hour", _hour(shape)).groupBy("shard_id", "hour").agg(*sums)
    # Presence only.
    wanted = hours.where(_is_unequal()).select("shard_id", "hour")
    found = cells.withColumn("hour", _hour(shape)).join(
        wanted, ["shard_id", "hour"], how="left_semi"
    )
    return found.drop("hour")


def _with_lacking(cells: DataFrame) -> DataFrame:
    return cells.withColumns(
        {f"lacking_{name}": F.col(f"sent_{name}") - F.col(f"landed_{name}") for name in SUMS}
    )


def _hour(shape: Eras) -> Column:
    return hour_start(slot(shape.widest)).alias("hour")
