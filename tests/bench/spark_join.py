"""The full outer join of both sides on the id, by plain Spark with a large heap."""

import json
import sys

from pyspark.sql import functions as F

from shardaudit.adapters.engine.apache_spark import spark_session
from tests.bench.sides import bench_settings, raw_sides
from tests.bench.timing import median_seconds


def main(folder: str) -> None:
    """Prints its seconds."""
    generous = {"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "16"}
    spark = spark_session(bench_settings(folder, **generous), app="spark_join")

    def join() -> None:
        # Built anew each time: a DataFrame that was collected once keeps its shuffles.
        traces, rows = raw_sides(spark, folder)
        sent = traces.groupBy("shard_id", "message_id").agg(F.count("*").alias("n"))
        landed = rows.groupBy("shard_id", "message_id").agg(F.count("*").alias("m"))
        kind = (
            F.when(F.col("m").isNull(), "missing")
            .when(F.col("n").isNull(), "untraced")
            .otherwise("duplicated")
        )
        both = sent.join(landed, ["shard_id", "message_id"], how="full_outer")
        found = both.where("n is null or m is null or m > 1")
        found.groupBy(kind.alias("kind")).count().collect()

    print(json.dumps({"spark_join": median_seconds(join)}))  # noqa: T201 - the result


if __name__ == "__main__":
    main(sys.argv[1])
