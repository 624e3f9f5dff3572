"""The cells that must have a verdict, made before anything is compared."""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.model.window import Window


def grid(shards: DataFrame, *, window: Window, bucket: timedelta) -> DataFrame:
    """Every cell of the window: one row per shard and time bucket.

    Input:
        shards: `shard_id`, unique.
        window: aligned to the bucket.
    Output:
        `shard_id`, `bucket_start` (timestamp).
    """
    buckets = F.sequence(F.lit(window.start), F.lit(window.end - bucket), F.lit(bucket))
    return shards.select("shard_id", F.explode(buckets).alias("bucket_start"))
