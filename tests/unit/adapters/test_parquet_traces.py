"""Traces in Parquet: types, damage, and what is kept."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.files.loose_traces import LOOSE
from shardaudit.adapters.files.parquet_traces import parquet_batches
from shardaudit.model.input_columns import TRACE_COLUMNS
from tests.builders import SHARD, cut_off, spoil

COLUMNS = {name: name for name in TRACE_COLUMNS}
SENT = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
SENT_US = int(SENT.timestamp() * 1_000_000)
Rows = list[dict[str, Any]]  # Any: whatever Arrow holds


def table(**columns: pa.Array) -> pa.Table:
    """Two rows with what a trace needs, but for the columns given."""
    needed = {
        "message_id": pa.array(["a", "b"]),
        "shard_id": pa.array([SHARD, SHARD]),
        "sent_at": pa.array([SENT, SENT], pa.timestamp("us", "UTC")),
    }
    return pa.table(needed | columns)


def read(path: Path, **mapped: str) -> Rows:
    rows: Rows = []
    with pa.OSFile(str(path)) as file:
        for batch in parquet_batches(file, str(path), COLUMNS | mapped):
            assert batch.schema == LOOSE
            rows += batch.to_pylist()
    return rows


def written(tmp_path: Path, content: pa.Table, **options: Any) -> Path:  # Any: pyarrow's options
    path = tmp_path / "x.parquet"
    pq.write_table(content, path, **options)
    return path


def test_rows_are_numbered_from_one_when_file_has_several_groups(tmp_path: Path) -> None:
    ids = pa.array([f"m{i}" for i in range(10)])
    shards, times = pa.array([SHARD] * 10), pa.array([SENT] * 10, pa.timestamp("us", "UTC"))
    content = pa.table({"message_id": ids, "shard_id": shards, "sent_at": times})
    rows = read(written(tmp_path, content, row_group_size=3))
    assert [(row["line"], row["message_id"]) for row in rows] == [
        (i + 1, f"m{i}") for i in range(10)
    ]
    assert {row["sent_at_us"] for row in rows} == {SENT_US}
    assert {row["fault"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("column", "field", "found"),
    [
        (pa.array([SENT, None], pa.timestamp("us", "UTC")), "sent_at_us", [SENT_US, None]),
        (
            pa.array([SENT, None], pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns")),
            "sent_at_us",
            [SENT_US, None],
        ),
        (
            pa.array([SENT.astimezone(timezone(timedelta(hours=3))), None]),
            "sent_at_us",
            [SENT_US, None],
        ),
        (pa.array([1732060800000, None], pa.int64()), "sent_at_us", [1732060800000000, None]),
        (pa.array([2**62, -5], pa.int64()), "sent_at_us", [0, 0]),
        (pa.array(["2026-11-20T00:00:00Z", None]), "sent_at_text", ["2026-11-20T00:00:00Z", None]),
    ],
)
def test_time_is_read_when_written_in_any_of_the_types(
    tmp_path: Path, column: pa.Array, field: str, found: list[object]
) -> None:
    rows = read(written(tmp_path, table(sent_at=column)))
    assert [row[field] for row in rows] == found


def test_time_is_utc_when_written_as_int96(tmp_path: Path) -> None:
    rows = read(written(tmp_path, table(), use_deprecated_int96_timestamps=True))
    assert [row["sent_at_us"] for row in rows] == [SENT_US, SENT_US]


def test_texts_are_read_when_written_in_any_of_the_types(tmp_path: Path) -> None:
    content = table(
        message_id=pa.array([1, 2], pa.int32()),
        shard_id=pa.array([SHARD, SHARD]).dictionary_encode(),
        sequence_number=pa.array(["1", None], pa.large_string()),
        attempt=pa.array([1, None], pa.int16()),
        sample_rate=pa.array([0.5, None]),
        producer_id=pa.nulls(2),
        location=pa.array([b"edge", None]),
    )
    first, second = read(written(tmp_path, content))
    assert (first["message_id"], first["shard_id"], first["sequence_number"]) == ("1", SHARD, "1")
    assert (first["attempt"], first["sample_rate"], first["location"]) == ("1", "0.5", "edge")
    assert second["sequence_number"] is None
    assert second["producer_id"] is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("k", "1"), ("n", None)], None], pa.map_(pa.string(), pa.string())),
        pa.array([[("k", 1), ("n", None)], None], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_attributes_are_a_map_of_texts_when_given_as_map(tmp_path: Path, column: pa.Array) -> None:
    first, second = read(written(tmp_path, table(attributes=column)))
    assert first["attributes"] == [("k", "1"), ("n", None)]
    assert second["attributes"] is None


def test_attributes_are_a_map_of_texts_when_given_as_struct(tmp_path: Path) -> None:
    column = pa.array([{"row": 1, "name": "x"}, {"row": 2, "name": None}])
    first, second = read(written(tmp_path, table(attributes=column)))
    assert first["attributes"] == [("row", "1"), ("name", "x")]
    assert second["attributes"] == [("row", "2"), ("name", None)]


def test_attributes_are_a_map_of_texts_when_given_as_json_text(tmp_path: Path) -> None:
    column = pa.array(['{"k": 1, "n": null, "big": 12345678901234567890123}', "[]"])
    first, second = read(written(tmp_path, table(attributes=column)))
    assert first["attributes"] == [("k", "1"), ("n", None), ("big", "12345678901234567890123")]
    assert (first["attributes_fault"], second["attributes"]) == (None, None)
    assert second["attributes_fault"] == "attributes is not an object"


def test_column_is_found_when_its_mapped_name_is_odd(tmp_path: Path) -> None:
    content = table(**{"a.b `c`": pa.array(["x", "y"])}).drop_columns("message_id")
    rows = read(written(tmp_path, content), message_id="a.b `c`")
    assert [row["message_id"] for row in rows] == ["x", "y"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sequence_number": pa.array([1, 2])}, "sequence_number has type int64; wanted text"),
        ({"message_id": pa.array([1.5, 2])}, "message_id has type double; wanted text"),
        ({"sent_at": pa.array([1.5, 2])}, "sent_at has type double; wanted a timestamp"),
        ({"attributes": pa.array([[1], [2]])}, "attributes has type list"),
        ({"_sa_x": pa.array([1, 2])}, "column _sa_x begins with _sa_, which is reserved"),
    ],
)
def test_file_is_set_aside_when_a_column_cannot_be_used(
    tmp_path: Path, changed: dict[str, pa.Array], reason: str
) -> None:
    [row] = read(written(tmp_path, table(**changed)))
    assert row["line"] is None
    assert reason in row["fault"]


def test_file_is_set_aside_when_a_needed_column_is_missing(tmp_path: Path) -> None:
    [row] = read(written(tmp_path, table().drop_columns("message_id")))
    assert "no column 'message_id' for message_id; found ['shard_id', 'sent_at']" in row["fault"]


def test_file_is_set_aside_when_it_has_a_column_twice(tmp_path: Path) -> None:
    content = table()
    path = written(tmp_path, content.append_column("sent_at", content["sent_at"]))
    [row] = read(path)
    assert row["fault"] == "it has not one column 'sent_at', but 2"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_file_is_set_aside_when_it_breaks_off(tmp_path: Path, share: float) -> None:
    [row] = read(cut_off(written(tmp_path, table()), share=share))
    assert row["line"] is None
    assert row["fault"].startswith("unreadable Parquet file: ")


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip"])
def test_rows_before_the_damage_are_kept_when_a_later_group_is_corrupt(
    tmp_path: Path, codec: str
) -> None:
    count = 20_000
    content = pa.table(
        {
            "message_id": [f"m{i:07d}-{i * 7919 % 104729}" for i in range(count)],
            "shard_id": [SHARD] * count,
            "sent_at": pa.array([SENT] * count, pa.timestamp("us", "UTC")),
        }
    )
    path = written(tmp_path, content, row_group_size=5000, compression=codec)
    *kept, damage = read(spoil(path, at=0.6))
    assert [row["message_id"][:8] for row in kept] == [f"m{i:07d}" for i in range(len(kept))]
    assert len(kept) >= 5000
    assert (damage["line"], damage["message_id"]) == (None, None)
    assert damage["fault"].startswith("unreadable Parquet file: ")


def test_no_row_is_made_up_when_texts_are_not_utf8(tmp_path: Path) -> None:
    path = written(tmp_path, table(), compression="none", use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"shardId", b"sh\xff\xfeIdd"))
    [row] = read(path)
    assert row["line"] is None


def test_last_value_counts_when_an_attribute_is_there_twice(tmp_path: Path) -> None:
    """No engine takes a map with a key twice: every audit ended with it."""
    pairs = [[("a", "1"), ("b", None), ("a", "2")], None, [], [("a", "3")]] * 2
    attributes = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    ids, shards = pa.array([f"m{i}" for i in range(8)]), pa.array([SHARD] * 8)
    content = pa.table(
        {
            "message_id": ids,
            "shard_id": shards,
            "sent_at": pa.array([SENT] * 8, pa.timestamp("us", "UTC")),
            "attributes": attributes,
        }
    )
    rows = read(written(tmp_path, content, row_group_size=3))
    once = [[("a", "2"), ("b", None)], None, [], [("a", "3")]]
    assert [row["attributes"] for row in rows] == once * 2


@pytest.mark.parametrize(
    ("parents", "told", "faults"),
    [
        (pa.array(["p", None]), [[("parent_ids", '["p"]')], None], [None, None]),
        (
            pa.array([["p", "q"], ["b"]]),
            [[("parent_ids", '["p","q"]')], None],
            [None, "parent_ids names the message itself"],
        ),
        (pa.array([7, 8]), [[("parent_ids", f'["{n}"]')] for n in (7, 8)], [None, None]),
        *(
            (pa.array([["p"], None], kind), [[("parent_ids", '["p"]')], None], [None, None])
            for kind in (pa.large_list(pa.large_string()), pa.list_(pa.string(), 1))
        ),
    ],
)
def test_what_messages_were_made_from_is_an_attribute(
    tmp_path: Path, parents: pa.Array, told: list[object], faults: list[str | None]
) -> None:
    rows = read(written(tmp_path, table(parent_ids=parents)))
    assert [row["attributes"] for row in rows] == told
    assert [row["attributes_fault"] for row in rows] == faults


def test_parents_of_another_type_set_the_file_aside(tmp_path: Path) -> None:
    [row] = read(written(tmp_path, table(parent_ids=pa.array([{"a": "p"}, None]))))
    assert row["fault"].startswith("the column for parent_ids has type")


def test_rows_that_the_footer_hides_are_no_less_damage(tmp_path: Path) -> None:
    """Arrow ends without a word where a column has fewer values than its row group has rows."""
    path = written(tmp_path, table())
    content, two, fewer = path.read_bytes(), b"\x16\x04\x16", b"\x16\x03\x16"  # 2 and -2, as Thrift
    at = content.index(two, content.index(two) + 1)  # of the second column
    path.write_bytes(content[:at] + fewer + content[at + 3 :])
    [row] = read(path)
    assert row["fault"] == "unreadable Parquet file: 0 rows in row group 0, not 2"
