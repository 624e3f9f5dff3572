"""What a person would write instead, in plain Spark: run as it stands, `spark_script.py FOLDER`."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.apache_spark import JARS

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.driver.memory", "8g")
    .config("spark.sql.shuffle.partitions", "16")
    .config("spark.jars", ",".join(map(str, JARS.glob("*.jar"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
is_json = any(Path(folder, "traces").glob("*.json*"))
traces = spark.read.json(f"{folder}/traces") if is_json else spark.read.parquet(f"{folder}/traces")
sink = spark.read.format("delta").load(f"{folder}/sink")
sent = traces.groupBy("shard_id", "message_id").agg(F.count("*").alias("n"))
landed = sink.groupBy("shard_id", "message_id").agg(F.count("*").alias("m"))
kind = F.when(F.col("m").isNull(), "missing").when(F.col("n").isNull(), "untraced")
found = (
    sent.join(landed, ["shard_id", "message_id"], how="full_outer")
    .where("n is null or m is null or m > 1")
    .groupBy(kind.otherwise("duplicated").alias("kind"))
    .count()
)
print(json.dumps({row["kind"]: row["count"] for row in found.collect()}))  # noqa: T201 - the result
