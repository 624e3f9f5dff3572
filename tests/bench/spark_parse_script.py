"""JSON lines to Parquet, as one would write it in plain Spark: `spark_parse_script.py FOLDER`."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
schema = (
    "message_id string, stream string, shard_id string, sequence_number string, sent_at timestamp, "
    "location string, attempt int, producer_id string, acked_at timestamp"
)
lines = spark.read.text(f"{folder}/traces")
traces = lines.select(F.from_json("value", schema).alias("trace")).select("trace.*")
traces.write.mode("overwrite").parquet(f"{folder}/parsed")
