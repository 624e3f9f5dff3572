"""Small frames for tests of single rules."""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def frame(spark: SparkSession, ddl: str, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """A frame of the columns of the DDL; what a row does not have is NULL."""
    listed = list(rows)
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    names = schema.names
    unknown = {name for row in listed for name in row} - set(names)
    assert not unknown, unknown
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in listed], ddl)
