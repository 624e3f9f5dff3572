"""The rows of one file of a sink by Arrow: types, partitions, deleted rows, and what is refused."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.lake.sink_file import (
    Constant,
    SinkFile,
    Value,
    WantedColumn,
    parquet_file,
    partition_value,
)
from shardaudit.model.source import DeletionVector, SourceFile
from tests.builders import spoil
from tests.sink_reading import rows_in
from tests.vectors import inline

SENT = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
ANCIENT, LAST = datetime(1500, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
TIMES = [ANCIENT, SENT, LAST, None]
Row = dict[str, Any]  # Any: whatever Arrow holds


def written(
    folder: Path, content: pa.Table, vector: DeletionVector | None = None, **kinds: str
) -> SinkFile:
    """A file of which some columns are read, in these types."""
    path = folder / "x.parquet"
    pq.write_table(content, path, row_group_size=4)
    known = SourceFile(str(path), path.stat().st_size, 0)
    columns = {name: WantedColumn(name, kind) for name, kind in kinds.items()}
    return SinkFile(known, str(path), str(folder), columns, vector=vector)


def times(kind: pa.DataType) -> pa.Array:
    instants = pa.array(TIMES, pa.timestamp("us", "UTC"))
    return instants.cast(pa.int64()).cast(pa.timestamp("us")).cast(kind, safe=False)


@pytest.mark.parametrize(
    ("column", "kind", "wanted"),
    [
        (pa.array(["a", "", "é🔥", None]), "string", ["a", "", "é🔥", None]),
        (pa.array(["a", None], pa.large_string()), "string", ["a", None]),
        (pa.array(["a", None], pa.string_view()), "string", ["a", None]),
        (pa.array(["a", "a", None]).dictionary_encode(), "string", ["a", "a", None]),
        (pa.array([b"a", None]), "string", ["a", None]),
        (pa.array([1, None, -128], pa.int8()), "long", [1, None, -128]),
        (pa.array([1, None], pa.int32()), "long", [1, None]),
        (pa.array([2**63 - 1, -(2**63)]), "long", [2**63 - 1, -(2**63)]),
        (pa.array([5], pa.int64()), "short", [5]),
        (times(pa.timestamp("us")), "timestamp", TIMES),
        (times(pa.timestamp("us")), "timestamp_ntz", [t and t.replace(tzinfo=None) for t in TIMES]),
        (times(pa.timestamp("ms")), "timestamp", [ANCIENT, SENT.replace(microsecond=123000)]),
        (pa.array(TIMES, pa.timestamp("us", "+05:00")), "timestamp", TIMES),
        (pa.nulls(2), "string", [None, None]),
        (pa.nulls(2), "timestamp", [None, None]),
    ],
)
def test_values_are_kept_when_the_type_fits(
    column: pa.Array, kind: str, wanted: list[object], tmp_path: Path
) -> None:
    rows = rows_in(written(tmp_path, pa.table({"x": column}), x=kind))
    assert rows.column("x").to_pylist()[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (pa.array([1.5]), "string", "has type double; wanted string"),
        (pa.array([1]), "string", "has type int64; wanted string"),
        (pa.array(["1"]), "long", "has type string; wanted int64"),
        (pa.array([2**40]), "integer", "not in range"),
        (pa.array([1], pa.uint64()), "long", "has type uint64"),
        (pa.array([b"\xff\xfe"]), "string", "Invalid UTF8"),
        (pa.array([date(2026, 11, 20)]), "timestamp", "has type date32"),
        (pa.array([SENT], pa.timestamp("ns", "UTC")), "timestamp", "has type timestamp.ns"),
        (pa.array([{"a": 1}]), "string", "has type struct"),
    ],
)
def test_file_is_refused_when_a_type_does_not_fit(
    column: pa.Array, kind: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DamageError, match=f"its column 'x'.*{reason}"):
        rows_in(written(tmp_path, pa.table({"x": column}), x=kind))


@pytest.mark.parametrize("names", [["x", "x"], ["X", "xX"], ["X", "x", "x"]])
def test_file_is_refused_when_it_is_not_clear_which_column_is_meant(
    names: list[str], tmp_path: Path
) -> None:
    table = pa.Table.from_arrays([pa.array(["a"])] * len(names), names=names)
    if names == ["X", "xX"]:
        assert rows_in(written(tmp_path, table, x="string")).column("x").to_pylist() == ["a"]
        return
    with pytest.raises(DamageError, match="has not one column 'x'"):
        rows_in(written(tmp_path, table, x="string"))


def test_column_is_the_exact_one_when_another_differs_in_case(tmp_path: Path) -> None:
    table = pa.table({"X": ["no"], "x": ["yes"], "a.b": ["dot"], "a": [{"b": "nested"}]})
    file = written(tmp_path, table, x="string")
    assert rows_in(file).column("x").to_pylist() == ["yes"]
    dotted = written(tmp_path, table, None, **{"a.b": "string"})
    assert rows_in(dotted).column("a.b").to_pylist() == ["dot"]


def test_rows_keep_their_numbers_when_others_are_deleted(tmp_path: Path) -> None:
    content = pa.table({"x": [f"m{i}" for i in range(11)]})
    file = written(tmp_path, content, inline([0, 3, 4, 10]), x="string", absent="long")
    rows = rows_in(file).to_pylist()
    assert [(row["x"], row["line"]) for row in rows] == [
        (f"m{i}", i + 1) for i in (1, 2, 5, 6, 7, 8, 9)
    ]
    assert {(row["file"], row["absent"]) for row in rows} == {(file.path, None)}


def test_file_is_refused_when_its_vector_is_another_files(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match="names rows that it does not have"):
        rows_in(written(tmp_path, pa.table({"x": ["a"]}), inline([1]), x="string"))


def test_file_is_refused_when_a_page_of_it_is_spoiled(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"x": [f"{i * 7919}" for i in range(2000)]}), x="string")
    spoil(Path(file.path), at=0.2, length=200)
    with pytest.raises(DamageError, match="unreadable Parquet file"):
        rows_in(file)


def test_constants_stand_in_every_row_when_partitions_have_them(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"x": ["a", "b"]}), x="string")
    constants: dict[str, Constant] = {
        "s": Constant("é'\\", "string"),
        "n": Constant(-5, "integer"),
        "t": Constant(SENT, "timestamp"),
        "none": Constant(None, "string"),
    }
    rows = rows_in(SinkFile(file.known, file.path, "", file.columns, constants)).to_pylist()
    expected: Row = {"s": "é'\\", "n": -5, "t": SENT, "none": None}
    assert [{name: row[name] for name in expected} for row in rows] == [expected] * 2


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (None, "string", None),
        ("", "string", None),
        ("", "long", None),
        ("000000000001", "string", "000000000001"),
        ("__HIVE_DEFAULT_PARTITION__", "string", "__HIVE_DEFAULT_PARTITION__"),
        ("-5", "byte", -5),
        ("9223372036854775807", "long", 2**63 - 1),
        ("2026-11-20 12:00:00", "timestamp", SENT.replace(microsecond=0)),
        ("2026-11-20 12:00:00.123456", "timestamp", SENT),
        ("2026-11-20T12:00:00.123456Z", "timestamp", SENT),
        ("2026-11-20T14:00:00.123456+02:00", "timestamp", SENT),
        ("2026-11-20 12:00:00.123456", "timestamp_ntz", SENT),
    ],
)
def test_partition_value_is_what_deltas_protocol_says(
    text: str | None, kind: str, value: Value
) -> None:
    assert partition_value(text, kind) == value


@pytest.mark.parametrize(("text", "kind"), [("x", "long"), ("yesterday", "timestamp")])
def test_partition_value_is_refused_when_it_is_none(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match=text):
        partition_value(text, kind)


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("shard_id=a%3Ab", "a:b"),
        ("shard_id=a%20b%2525", "a b%25"),
        ("shard_id=%C3%A9", "é"),
        ("shard_id=%E9", "é"),
        ("shard_id=100%", "100%"),
        ("shard_id=a=b", "a=b"),
        ("shard_id=", ""),
        ("shard_id=__HIVE_DEFAULT_PARTITION__", None),
        ("shard%5Fid=x", "x"),
    ],
)
def test_folder_gives_a_text_when_the_sink_is_parquet(folder: str, value: str | None) -> None:
    file = SourceFile(f"/lake/{folder}/x.parquet", 1, 1)
    found = parquet_file("/lake", file, {"shard_id": ("shard_id", "string"), "y": ("y", "long")})
    assert found.constants == {"shard_id": Constant(value, "string")}
    assert found.columns == {"y": WantedColumn("y", "long")}


def test_file_is_the_same_when_its_time_says_so() -> None:
    listed = SinkFile(SourceFile("/x", 5, 1500), "/x", "", {}, is_listed=True)
    in_log = SinkFile(SourceFile("x", 5, 1500), "/x", "", {})
    in_s3 = SinkFile(SourceFile("s3a://b/x", 5, 1500), "s3a://b/x", "", {}, is_listed=True)
    later, longer = SourceFile("", 5, 1501), SourceFile("", 6, 1500)
    assert [file.is_still(later) for file in (listed, in_log, in_s3)] == [False, True, True]
    assert [file.is_still(longer) for file in (listed, in_log, in_s3)] == [False] * 3
