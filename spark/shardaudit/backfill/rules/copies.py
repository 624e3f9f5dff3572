"""Rows of the sink that bear the same message id: which one stays, which ones go."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.backfill.rules.decode import ID
from shardaudit.columns.sql_name import quoted

COPY, DIGEST, CONTENT = "_sa_copy", "_sa_digest", "_sa_content"
INTERNAL_OF_COPIES = (ID, COPY, DIGEST, CONTENT)
# To the microsecond, as the sink has them: by itself JSON has milliseconds. The session is in UTC.
_EXACTLY = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def numbered_copies(rows: DataFrame, *, id_column: str, order: list[str]) -> DataFrame:
    """The rows of messages that stand more than once, and their number: 1 stays, the others go.

    Input:
        rows: of the sink; order: its columns that tell the first one, as far as it has them (the
        landing time, then the sequence number). Of rows alike in everything any one is the first.
    Output:
        the sink's columns and INTERNAL_OF_COPIES.
    """
    content = F.to_json(F.struct(*(quoted(name) for name in rows.columns)), _EXACTLY)
    keyed = (
        rows.withColumn(ID, F.col(quoted(id_column)).cast("string"))
        .withColumn(CONTENT, content)
        .withColumn(DIGEST, F.xxhash64(CONTENT))
    )
    first = [F.col(quoted(name)).asc_nulls_last() for name in order]
    by_id = Window.partitionBy(ID)
    return (
        keyed.withColumn(COPY, F.row_number().over(by_id.orderBy(*first, DIGEST)))
        .withColumn("_sa_copies", F.count("*").over(by_id))
        .where(F.col("_sa_copies") > 1)
        .drop("_sa_copies")
    )


def digests_by_id(copies: DataFrame) -> DataFrame:
    """Which rows each message has: one row per message.

    Input:
        copies: of `numbered_copies`.
    Output:
        `id` (text), `digests` (array of bigint, sorted).
    """
    digests = F.sort_array(F.collect_list(DIGEST)).alias("digests")
    return copies.groupBy(F.col(ID).alias("id")).agg(digests)
