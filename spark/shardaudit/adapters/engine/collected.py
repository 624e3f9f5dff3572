"""The door through which rows come to the driver."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

from shardaudit.adapters.lake.delta_schema import in_utc


def collected(rows: DataFrame) -> list[Row]:
    """The rows in their order, with timestamps in UTC; not those inside of arrays and structs.

    PySpark's `collect` gives times in the machine's own zone, without saying so, and confuses the
    two hours that a clock repeats in autumn.
    """
    # What `toArrow` does behind a question of its own for the schema, which takes as long.
    table: pa.Table = cast(ConnectDataFrame, rows)._to_table()[0]  # noqa: SLF001
    structs = [field.name for field in table.schema if pa.types.is_struct(field.type)]
    return [
        Row(**{**in_utc(row), **{name: _struct(row[name]) for name in structs}})
        for row in table.to_pylist(maps_as_pydicts="strict")
    ]


def _struct(value: dict[str, Any] | None) -> Row | None:  # Any: of whatever type a field is
    return None if value is None else Row(**value)
