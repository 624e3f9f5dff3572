"""The door through which rows come to the driver."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.model.window import EPOCH


def collected(rows: DataFrame) -> list[Row]:
    """The rows in their order, with timestamps in UTC; not those inside of arrays and structs.

    PySpark gives times in the machine's own zone, without saying so, and Spark Connect confuses
    the two hours that a clock repeats in autumn: so they travel as numbers.
    """
    times = {name for name, kind in rows.dtypes if kind == "timestamp"}
    numbers = rows.select(
        *(F.unix_micros(name).alias(name) if name in times else name for name in rows.columns)
    )
    return [
        Row(**{n: _instant(v) if n in times else v for n, v in row.asDict(recursive=False).items()})
        for row in numbers.collect()
    ]


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
