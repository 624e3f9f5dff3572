"""Clean cells that an audit reads by id all the same, others every day."""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.drill_down import CELL


def sampled_cells(cells: DataFrame, *, seed: str, size: int) -> DataFrame:
    """Some clean cells: `shard_id`, `bucket_start`. Another seed, other cells.

    Of as few buckets as possible, so that few files have to be opened.

    Input:
        cells: of `compared_cells`.
    """
    return (
        cells.where(~F.col("differs") & (F.col("sent_n") > 0))
        .orderBy(F.xxhash64("bucket_start", F.lit(seed)), F.xxhash64("shard_id", F.lit(seed)))
        .limit(size)
        .select(*CELL)
    )


def with_neighbours(cells: DataFrame, *, bucket: timedelta) -> DataFrame:
    """The cells and those before and after them in time on the same shard; each once."""
    start, width = F.col("bucket_start"), F.lit(bucket)
    starts = F.array(start - width, start, start + width)
    return cells.select("shard_id", F.explode(starts).alias("bucket_start")).distinct()
