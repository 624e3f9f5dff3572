"""Rows that bear the same id: the first that landed is number 1, the others go."""

import json

import pytest
from pyspark.sql import SparkSession

from shardaudit.backfill.rules.copies import (
    CONTENT,
    COPY,
    INTERNAL_OF_COPIES,
    numbered_copies,
)
from shardaudit.backfill.rules.decode import ID
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import MINUTE, Row

DDL = "`the id` bigint, `landed.at` timestamp, seq string, note string"
# By id its rows as (minute it landed, sequence number), in the order in which they count.
ROWS: dict[int, list[tuple[int | None, str | None]]] = {
    1: [(0, "5")],
    2: [(0, "5"), (1, "1")],
    3: [(0, "1"), (0, "2"), (0, None), (None, "0")],
    4: [(3, "7"), (3, "7"), (3, "7")],  # alike in everything
}


def rows_of_sink() -> list[Row]:
    rows: list[Row] = [
        {"the id": number, "landed.at": None if at is None else T0 + at * MINUTE, "seq": seq}
        for number, rows in ROWS.items()
        for at, seq in reversed(rows)
    ]
    return [row | {"note": "it's `x`"} for row in rows]


def test_the_first_to_land_is_the_one_that_stays(spark: SparkSession) -> None:
    rows = frame(spark, DDL, rows_of_sink())
    found = numbered_copies(rows, id_column="the id", order=["landed.at", "seq"])
    assert {*found.columns} == {*rows.columns, *INTERNAL_OF_COPIES}
    told = sorted((row[ID], row[COPY], row.seq) for row in found.collect())
    assert told == sorted(
        (str(number), place, seq)
        for number, rows in ROWS.items()
        if len(rows) > 1
        for place, (_, seq) in enumerate(rows, 1)
    )


def test_without_an_order_each_row_has_a_number_of_its_own(spark: SparkSession) -> None:
    rows = frame(spark, DDL, rows_of_sink())
    found = numbered_copies(rows, id_column="the id", order=[]).collect()
    assert sorted((row[ID], row[COPY]) for row in found) == sorted(
        (str(number), place)
        for number, rows in ROWS.items()
        if len(rows) > 1
        for place in range(1, len(rows) + 1)
    )
    assert all('"note":"it\'s `x`"' in row[CONTENT] for row in found)


@pytest.mark.apache_spark  # dedupes run there alone
def test_a_row_is_kept_to_the_microsecond(spark: SparkSession) -> None:
    sql = """
        SELECT 1 AS id, CAST(at AS timestamp) AS at, CAST(at AS timestamp_ntz) AS local
        FROM explode(array('2026-11-20 12:00:00.123456', '2026-11-20 12:00:00.123457')) AS t(at)
    """
    found = numbered_copies(spark.sql(sql), id_column="id", order=["at"]).collect()
    assert [json.loads(row[CONTENT]) for row in sorted(found, key=lambda row: row[COPY])] == [
        {
            "id": 1,
            "at": f"2026-11-20T12:00:00.{us}Z",
            "local": f"2026-11-20T12:00:00.{us}",
        }
        for us in (123456, 123457)
    ]
