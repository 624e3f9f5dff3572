"""Both sides of the simulated files as they lie there, and the settings of the benchmark."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.model.config.settings import Settings, load_settings


def bench_settings(folder: str, **spark: str) -> Settings:
    """The simulation's own configuration, with the product's own settings of Spark or others."""
    settings = load_settings(Path(folder) / "shardaudit.toml")
    return settings.model_copy(update={"spark": {"spark.master": "local[2]", **spark}})


def raw_sides(spark: SparkSession, folder: str) -> tuple[DataFrame, DataFrame]:
    """Traces and rows of the sink, straight from Parquet, in the columns of the comparison."""
    bucket = F.date_trunc("minute", "sent_at").alias("bucket_start")
    sides = []
    for name in ("traces", "sink"):
        rows = spark.read.option("recursiveFileLookup", "true").parquet(f"{folder}/{name}")
        sides.append(rows.withColumn("sent_at", F.col("sent_at").cast("timestamp")))
    traces, rows = sides
    return (
        traces.select("message_id", "shard_id", bucket, F.lit(True).alias("counted")),
        rows.select("message_id", "shard_id", bucket),
    )
