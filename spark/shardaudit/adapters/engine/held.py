"""Frames computed once. Small ones Apache Spark reads in no job: their rows are in its plans."""

from collections.abc import Sequence
from typing import cast

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from shardaudit.adapters.engine.embedded import is_embedded

# So many rows travel in a plan, or to the driver, sooner than a job of Spark's begins.
FEW_ROWS = 2_000


def own_rows(spark: SparkSession, rows: Sequence[Sequence[object]], ddl: str) -> DataFrame:
    """The driver's own few rows as a frame.

    Input:
        rows: their values in the order of `ddl`; times with their zone.
    """
    schema = _schema(spark, ddl)
    named = [dict(zip(schema.names, values, strict=True)) for values in rows]
    return spark.createDataFrame(pa.Table.from_pylist(named, to_arrow_schema(schema)), schema)


def given_rows(spark: SparkSession, rows: pa.Table, ddl: str) -> DataFrame:
    """`own_rows` of those that are a table already, with the columns of `ddl` among its own."""
    if not rows.num_rows:  # and perhaps no chunk, which PySpark 4.1 does not take
        return own_rows(spark, [], ddl)
    schema = _schema(spark, ddl)
    chosen = rows.select(schema.names).cast(to_arrow_schema(schema))
    return spark.createDataFrame(chosen, schema)


def held(rows: DataFrame) -> DataFrame:
    """The rows, computed once: of shards and hours, never of ids.

    What is chosen among them later costs no job.
    """
    if is_embedded(rows.sparkSession):
        return rows.localCheckpoint()
    table, schema = gathered(rows)
    return rows.sparkSession.createDataFrame(table.cast(to_arrow_schema(schema)), schema)


def held_rows(rows: DataFrame) -> DataFrame:
    """The same of rows by the million, which stay where they were computed."""
    if is_embedded(rows.sparkSession):
        return rows.localCheckpoint()  # it takes no level
    # As bytes: as objects they fill Java's heap.
    return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)


def gathered(rows: DataFrame) -> tuple[pa.Table, StructType]:
    """The rows in the driver, and their schema: few ones, or those of shards and hours."""
    # `toArrow` asks for the schema in a question of its own, which takes as long.
    table, schema = cast(ConnectDataFrame, rows)._to_table()  # noqa: SLF001
    return table, schema or rows.schema


def bare(rows: DataFrame) -> DataFrame:
    """The rows without the notes of our tables' columns.

    pysail 0.7.2 cannot plan a union of which one side alone has some.
    """
    if not is_embedded(rows.sparkSession):
        return rows
    return rows.select(*(F.when(F.col(n).isNotNull(), F.col(n)).alias(n) for n in rows.columns))


_KNOWN: dict[str, StructType] = {}


def _schema(spark: SparkSession, ddl: str) -> StructType:
    """What the engine makes of a schema; it is asked once, whatever the session."""
    if ddl not in _KNOWN:
        _KNOWN[ddl] = spark.createDataFrame([], ddl).schema
    return _KNOWN[ddl]
