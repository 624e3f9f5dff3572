"""What rows of `shards` say of a shard: that it takes records, or that it is closed."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import is_any
from shardaudit.model.verdict import ShardState


def says_closed() -> Column:
    """Whether a row says so: Kinesis listed it as closed, or no more, as a watch found."""
    is_gone = F.col("state") == ShardState.CLOSED.value
    return F.coalesce(is_gone | ~F.col("opened"), F.lit(False))


def closed_shards(observations: DataFrame, *, by: datetime | None = None) -> DataFrame:
    """Which shards take no records any more: one row per shard that was ever seen.

    A stream that is made anew has shards of the same names: one that is open again is not closed.

    Input:
        observations: rows of SHARDS, of one stream.
        by: those that were seen as closed by then; None: at any time.
    Output:
        `shard_id`, `is_closed`, `was_listed` (booleans; false: Kinesis was never asked of it).
    """
    at = F.col("observed_at")
    # Not by a watch that lacked it in a listing: that may be an old one, of before a split.
    says_so = ~F.col("opened") if by is None else ~F.col("opened") & (at <= F.lit(by))
    seen = observations.groupBy("shard_id").agg(
        F.max(F.when(F.col("opened"), at)).alias("open_at"),
        F.max(F.when(says_so, at)).alias("closed_at"),
        is_any(F.col("opened").isNotNull()).alias("was_listed"),
    )
    is_last = F.col("open_at").isNull() | (F.col("closed_at") > F.col("open_at"))
    is_closed = F.col("closed_at").isNotNull() & is_last
    return seen.select("shard_id", is_closed.alias("is_closed"), "was_listed")
