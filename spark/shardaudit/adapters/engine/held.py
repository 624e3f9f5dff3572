"""Small frames that Apache Spark reads in no job: their rows are part of its plans."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from shardaudit.adapters.engine.embedded import is_embedded


def own_rows(spark: SparkSession, rows: Sequence[Sequence[object]], ddl: str) -> DataFrame:
    """The driver's own few rows as a frame.

    Input:
        rows: their values in the order of `ddl`; times with their zone.
    """
    schema = spark.createDataFrame([], ddl).schema
    named = [dict(zip(schema.names, values, strict=True)) for values in rows]
    return spark.createDataFrame(pa.Table.from_pylist(named, to_arrow_schema(schema)), schema)


def held(rows: DataFrame) -> DataFrame:
    """The rows, computed once: of shards and hours, never of ids.

    What is chosen among them later costs no job.
    """
    if is_embedded(rows.sparkSession):
        return rows.localCheckpoint()
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)
