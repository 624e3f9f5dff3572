"""Rows that are appended to a table: what its log says of their files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse

START = datetime(2026, 11, 1, tzinfo=UTC)
US = timedelta(microseconds=1)
TABLE = Table(
    "told",
    (
        ("stream", "string", ""),
        ("day", "date", ""),
        ("message_id", "string", ""),
        ("sent_at", "timestamp", ""),
        ("attributes", "map<string,string>", ""),
    ),
    ("message_id",),
    ("stream", "day"),
)
# Whole milliseconds and their neighbours: the log knows milliseconds alone.
TIMES = [START + timedelta(days=day) + n * US for day in (0, 1) for n in (0, 1, 999, 1000, 1001)]


@pytest.fixture
def appended(warehouse: Warehouse) -> Warehouse:
    rows = [("a.b-c", at.date(), f"m{n}\u00e9", at, {"k": "v"}) for n, at in enumerate(TIMES)]
    ddl = ", ".join(f"{name} {kind}" for name, kind, _ in TABLE.columns)
    warehouse.append(warehouse.spark.createDataFrame(rows, ddl), TABLE)
    return warehouse


def test_rows_are_found_by_each_of_their_times(appended: Warehouse) -> None:
    for at in TIMES:
        found = appended.read(TABLE).where(F.col("sent_at") == F.lit(at))
        assert [row.sent_at for row in collected(found)] == [at]
        (row,) = appended.rows(TABLE, where=pc.field("sent_at") == at)
        assert (row["sent_at"], row["day"], row["stream"]) == (at, at.date(), "a.b-c")
        assert dict(row["attributes"]) == {"k": "v"}


@pytest.mark.usefixtures("appended")
def test_log_says_between_what_the_rows_lie(tmp_path: Path) -> None:
    (place,) = tmp_path.rglob("told")
    log = DeltaTable(place).get_add_actions(flatten=True)
    files = {str(file["partition.day"]): file for file in pa.table(log).to_pylist()}
    assert set(files) == {"2026-11-01", "2026-11-02"}
    for day, file in files.items():
        mine = [at for at in TIMES if str(at.date()) == day]
        assert file["num_records"] == len(mine)
        assert file["min.sent_at"] <= min(mine)
        assert max(mine) <= file["max.sent_at"]
        assert (file["null_count.sent_at"], file["null_count.message_id"]) == (0, 0)
        assert file["min.message_id"] <= file["max.message_id"]


@pytest.mark.parametrize("year", [1, 9999])
def test_times_at_the_calendar_s_ends_are_found(warehouse: Warehouse, year: int) -> None:
    first, last = datetime(year, 1, 2, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, 999_999, UTC)
    rows = [("a", START.date(), str(at), at, None) for at in (first, last)]
    ddl = ", ".join(f"{name} {kind}" for name, kind, _ in TABLE.columns)
    warehouse.append(warehouse.spark.createDataFrame(rows, ddl), TABLE)
    for at in (first, last):
        found = warehouse.read(TABLE).where(F.col("sent_at") == F.lit(at))
        assert [row.sent_at for row in collected(found)] == [at]


def test_no_rows_are_no_files(appended: Warehouse) -> None:
    appended.append(appended.read(TABLE).where(F.lit(False)), TABLE)
    assert appended.read(TABLE).count() == len(TIMES)
