"""The columns of a sink that matter, under their standard names."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.model.sql_name import quoted


def standard_rows(rows: DataFrame, columns: Mapping[str, str], *, with_place: bool) -> DataFrame:
    """The sink's columns under their standard names, and where each row stands.

    Output:
        the standard names of `columns`; with place: `file` and `line` (row number from 1; NULL in
        Delta tables without deletion vectors, whose rows Delta does not number).
    """
    chosen = [F.col(quoted(column)).alias(standard) for standard, column in columns.items()]
    if with_place:
        place = rows.metadataColumn("_metadata")
        fields = rows.select(place.alias("place")).schema["place"].dataType.simpleString()
        number = place["row_index"] + 1 if "row_index:" in fields else F.lit(None).cast("bigint")
        chosen += [place["file_path"].alias("file"), number.alias("line")]
    return rows.select(*chosen)
