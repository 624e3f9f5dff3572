"""The rows of a sink as an audit reads them: near some times, all of them or none."""

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JError

from shardaudit.adapters.lake.sink_rows import UnsoundFilesError
from tests.builders import T0, sink_row, write_parquet
from tests.spark.lake import Lake

DAY = timedelta(days=1)


@pytest.fixture
def days(lake: Lake) -> Lake:
    """A Delta sink with a file for each of three days, ingested."""
    for day in range(3):
        sent_at = T0 + day * DAY
        lake.land([sink_row(day, sent_at=sent_at, landed_at=sent_at + timedelta(seconds=30))])
    lake.ingest(now=T0 + 3 * DAY)
    return lake


def file_of(lake: Lake, day: int) -> Path:
    """The file with the row of a day."""
    actions = DeltaTable(lake.sink).get_add_actions(flatten=True).to_struct_array().to_pylist()
    [path] = [str(one["path"]) for one in actions if one["min.message_id"] == f"m{day}"]
    return lake.sink / path


@pytest.mark.parametrize("column", ["sent_at", "landed_at"])
def test_files_are_not_opened_when_the_log_says_that_they_hold_nothing_of_it(
    days: Lake, column: str
) -> None:
    file_of(days, 0).write_bytes(b"spoiled")
    rows = days.landed_now()
    spans = [(T0 + DAY, T0 + DAY + timedelta(hours=1)), (T0 + 2 * DAY, T0 + 3 * DAY)]
    scan = rows.scan(within=(column, spans))
    found = scan.materialized(scan.rows.select("message_id"))
    assert sorted(row.message_id for row in found.collect()) == ["m1", "m2"]
    with pytest.raises(UnsoundFilesError, match="unreadable Parquet file"):
        rows.scan()


def test_no_file_is_opened_when_no_time_is_wanted(days: Lake) -> None:
    for day in range(3):
        file_of(days, day).unlink()
    assert days.landed_now().scan(within=("sent_at", [])).rows.count() == 0


def test_rows_are_refused_when_a_file_goes_before_they_are_read(days: Lake) -> None:
    """The embedded engine reads nothing of it, and says nothing; the other raises of itself."""
    scan = days.landed_now().scan()
    file = file_of(days, 1)
    file.unlink()
    with pytest.raises((UnsoundFilesError, Py4JError), match=file.name):
        scan.materialized(scan.rows)


def test_rows_are_refused_when_a_file_is_another_than_was_ingested(spark_lake: Lake) -> None:
    lake = spark_lake
    lake.sink_format = "parquet"
    path = write_parquet(lake.sink / "a.parquet", [sink_row(0)])
    lake.ingest()
    assert lake.landed_now().scan().rows.count() == 1
    write_parquet(path, [sink_row(0), sink_row(1)])
    with pytest.raises(UnsoundFilesError, match="bytes and should have"):
        lake.landed_now().scan()


@pytest.mark.parametrize("column", ["sent_at", "landed_at"])
def test_files_of_a_folder_are_left_out_when_their_footers_say_that_they_hold_nothing_of_it(
    spark_lake: Lake, column: str
) -> None:
    lake = spark_lake
    lake.sink_format = "parquet"
    for day in range(3):
        at = T0 + day * DAY
        write_parquet(lake.sink / f"{day}.parquet", [sink_row(day, sent_at=at, landed_at=at)])
    lake.ingest(now=T0 + 3 * DAY)
    within = (column, [(T0 + DAY, T0 + DAY + timedelta.resolution), (T0 + 3 * DAY, T0 + 4 * DAY)])
    scan = lake.landed_now().scan(within=within)
    assert [Path(file.path).name for file in scan.files] == ["1.parquet"]
    assert [row.message_id for row in scan.rows.collect()] == ["m1"]
    late = T0 + 9 * DAY
    write_parquet(lake.sink / "2.parquet", [sink_row(2, sent_at=late, landed_at=late)])  # put anew
    with pytest.raises(UnsoundFilesError, match=r"2\.parquet"):
        scan.materialized(scan.rows)
    (lake.sink / "0.parquet").write_bytes(b"spoiled")  # that one no footer tells about
    with pytest.raises(UnsoundFilesError, match=r"0\.parquet"):
        lake.landed_now().scan(within=within)
