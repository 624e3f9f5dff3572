"""The ledger of a sink that is a folder of Parquet files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.audit.evidence import ingested
from shardaudit.ingest.rules.deliveries import SinkTypeError
from shardaudit.model.errors import SinkSchemaError
from tests.builders import T0, Line, cut_off, shard, sink_row, spoil, write_parquet
from tests.spark.lake import Lake


@pytest.fixture
def folder(spark_lake: Lake) -> Lake:
    """A stream whose sink is an empty folder."""
    spark_lake.sink_format = "parquet"
    return spark_lake


def landed(lake: Lake) -> dict[str, int]:
    """Rows per shard, in the ledger; the newest batch must read as many again."""
    found: dict[str, int] = {}
    for (shard_id, _), totals in lake.ledger("sink").items():
        found[shard_id] = found.get(shard_id, 0) + totals[0]
    assert lake.landed_now().scan().rows.count() == sum(found.values())
    return found


def unplaced(lake: Lake) -> list[tuple[str, bool]]:
    """The ids of rows that lack their place, and whether they came after the first batch."""
    rows = lake.unplaced_now().rows
    return sorted((row.message_id, row.is_new) for row in rows.collect())


def without(row: Line, *names: str) -> Line:
    return {name: value for name, value in row.items() if name not in names}


def test_rows_are_counted_once_when_files_come_go_and_change(folder: Lake) -> None:
    lake = folder
    assert lake.ingest().batches == ()
    write_parquet(lake.sink / "a.parquet", [sink_row(0), sink_row(1)])
    write_parquet(lake.sink / "_temporary" / "b.parquet", [sink_row(9)])
    assert lake.ingest().sink_rows == 2
    write_parquet(lake.sink / "sub" / "b [1]*.parquet", [sink_row(2), sink_row(3, shard_id="x")])
    summary = lake.ingest()
    assert (summary.sink_rows, summary.sink_files_added, summary.sink_to_version) == (2, 1, None)
    assert landed(lake) == {shard(0): 3, "x": 1}
    write_parquet(lake.sink / "a.parquet", [sink_row(number) for number in range(5, 15)])
    lake.ingest()
    assert landed(lake) == {shard(0): 11, "x": 1}
    (lake.sink / "a.parquet").unlink()
    (lake.sink / "sub" / "b [1]*.parquet").unlink()
    lake.ingest()
    assert landed(lake) == {}
    assert lake.ingest().batches == ()


def test_each_batch_says_its_own_files_and_the_newest_all(folder: Lake) -> None:
    lake = folder
    for number in range(4):
        write_parquet(lake.sink / f"{number}.parquet", [without(sink_row(number), "shard_id")])
        lake.ingest()
    texts = [row.inputs for row in lake.batches() if row.side == "sink"]
    told = [{n for n in range(4) if f"/{n}.parquet" in text} for text in texts]
    assert told == [{0}, {1}, {2}, {0, 1, 2, 3}]
    for since in range(1, 5):
        new = [(f"m{number}", number >= since) for number in range(4)]
        rows = lake.unplaced_now(since=since).rows
        assert sorted((row.message_id, row.is_new) for row in rows.collect()) == new


def test_partition_folders_are_columns_of_text_when_they_look_like_numbers(folder: Lake) -> None:
    lake = folder
    row = without(sink_row(0), "shard_id")
    write_parquet(lake.sink / "shard_id=000000000001" / "day=2026-11-20" / "a.parquet", [row])
    write_parquet(lake.sink / "shard_id=a%3Ab" / "day=2026-11-21" / "b.parquet", [row])
    write_parquet(lake.sink / "shard_id=__HIVE_DEFAULT_PARTITION__" / "c.parquet", [row])
    summary = lake.ingest()
    assert landed(lake) == {"000000000001": 1, "a:b": 1}
    assert (summary.sink_rows, summary.quarantined) == (3, 0)
    assert unplaced(lake) == [("m0", False)]
    write_parquet(lake.sink / "d.parquet", [without(sink_row(1), "shard_id")])
    lake.ingest()
    assert unplaced(lake) == [("m0", False), ("m1", True)]


def test_rows_without_a_place_count_once_however_often_the_sink_is_read_anew(folder: Lake) -> None:
    lake = folder
    write_parquet(lake.sink / "a.parquet", [sink_row(0, sent_at=None), sink_row(1)])
    write_parquet(lake.sink / "b.parquet", [sink_row(2)])
    lake.ingest()
    for number in range(3, 5):
        write_parquet(lake.sink / "b.parquet", [sink_row(n) for n in range(2, number + 1)])
        lake.ingest()
        assert '"added":null' in lake.batches()[-1].inputs
        assert ingested(lake.warehouse, lake.name).unplaced == 1
    write_parquet(lake.sink / "c.parquet", [sink_row(5, sent_at=None), sink_row(6)])
    lake.ingest()
    assert ingested(lake.warehouse, lake.name).unplaced == 2
    (lake.sink / "a.parquet").unlink()
    lake.ingest()
    assert ingested(lake.warehouse, lake.name).unplaced == 1


def test_files_are_read_together_when_their_types_differ(folder: Lake) -> None:
    lake = folder
    write_parquet(lake.sink / "a.parquet", [sink_row(0, extra=1)])
    write_parquet(lake.sink / "b.parquet", [sink_row(1, sent_at=T0.isoformat(), extra="x")])
    late = without(sink_row(2, sent_at=int(T0.timestamp() * 1000)), "sequence_number")
    write_parquet(lake.sink / "c.parquet", [late])
    lake.ingest()
    assert landed(lake) == {shard(0): 3}


def test_file_is_named_when_a_needed_column_is_gone(folder: Lake) -> None:
    lake = folder
    write_parquet(lake.sink / "a.parquet", [sink_row(0)])
    lake.ingest()
    gone = write_parquet(lake.sink / "b.parquet", [without(sink_row(1), "landed_at")])
    with pytest.raises(SinkSchemaError, match=r"'landed_at' .* is not in the new files in"):
        lake.ingest()
    write_parquet(lake.sink / "c.parquet", [sink_row(2)])
    with pytest.raises(SinkSchemaError, match=f"'landed_at' .* is not in file {gone}"):
        lake.ingest()


def test_type_is_refused_when_spark_cannot_read_it(folder: Lake) -> None:
    lake = folder
    times = pa.array([T0], pa.timestamp("ns", "UTC"))
    content = pa.Table.from_pylist([without(sink_row(0), "sent_at")]).append_column(
        "sent_at", times
    )
    lake.sink.mkdir()
    pq.write_table(content, lake.sink / "a.parquet")
    with pytest.raises(SinkTypeError, match=r"sent_at has type timestamp\[ns, tz=UTC\]"):
        lake.ingest()


def test_good_files_are_read_when_others_are_broken(folder: Lake) -> None:
    lake = folder
    write_parquet(lake.sink / "good.parquet", [sink_row(0)])
    cut = cut_off(write_parquet(lake.sink / "cut.parquet", [sink_row(1)]))
    rows = [sink_row(number, message_id=f"m{number * 7919 % 104729}") for number in range(3000)]
    spoiled = spoil(write_parquet(lake.sink / "spoiled.parquet", rows), at=0.3, length=500)
    written = datetime.fromtimestamp(spoiled.stat().st_mtime, UTC)
    summary = lake.ingest(now=written)
    assert (summary.sink_rows, summary.quarantined) == (1, 2)
    assert landed(lake) == {shard(0): 1}
    assert {row.file for row in lake.refused()} == {str(cut), str(spoiled)}
    [batch] = [row for row in lake.batches() if row.side == "sink"]
    assert batch.damaged_from.astimezone(UTC) == T0
    assert batch.damaged_to.astimezone(UTC) > written
    write_parquet(lake.sink / "more.parquet", [sink_row(2)])
    lake.ingest(now=written)
    assert not lake.unplaced_now().has_left

    write_parquet(Path(cut), [sink_row(1)])
    write_parquet(Path(spoiled), rows)
    lake.ingest(now=written + timedelta(hours=1))
    assert landed(lake) == {shard(0): 3003}
    assert {row.damaged_from for row in lake.batches()} == {None}
