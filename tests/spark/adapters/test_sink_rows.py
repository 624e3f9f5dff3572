"""The rows of a sink's files through the engine: of any version, of odd files, and of none."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.files.files import list_files
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.adapters.lake.sink_file import SinkFile, WantedColumn, parquet_file
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.model.source import SourceFile
from tests.builders import cut_off, spoil
from tests.sink_reading import ACCESS
from tests.spark_tables import NAMES, STANDARD, spark_table

SENT = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
KINDS = {"message_id": "string", "n": "long", "sent_at": "timestamp"}
COLUMNS = {name: (name, kind) for name, kind in KINDS.items()}
ODD_NAMES = [
    *("a b", "a%20b", "a%b", "a#b", "a+b", "a&b", "[a]", "a*", "a?", "{a}", "_a", ".a", "-a"),
    *("a:b", "a,b", "a=b", "é", "日本", "🔥", "a\\b", "a'b", 'a"b', "a;b", "~a", "a!b", "a@b"),
]
# As partitions' values; Delta takes the empty text for NULL.
ODD_VALUES = [
    *ODD_NAMES,
    *("000000000001", "1e5", "2026-11-20", "true", "null", "NULL", "(null)"),
    *(" ", "a ", "a\tb", "a\nb", "\x7f", "/", "a/b", "..", "x" * 80),
    None,
]
Row = tuple[object, ...]


@pytest.fixture
def reader(spark: SparkSession) -> SinkReader:
    """A reader that has seen nothing."""
    return SinkReader(spark, ACCESS)


def collected(frames: Sequence[DataFrame]) -> "Counter[Row]":
    """The rows; instants as microseconds."""
    found: Counter[Row] = Counter()
    for frame in frames:
        columns = [
            F.unix_micros(F.col(name).cast("timestamp")) if "timestamp" in kind else F.col(name)
            for name, kind in sorted(frame.dtypes)
        ]
        rows = frame.select(*(c.cast("string").alias(f"c{i}") for i, c in enumerate(columns)))
        found.update(tuple(row) for row in rows.collect())
    return found


def file_of(path: Path, folder: Path) -> SinkFile:
    """A file of a Parquet sink as its listing has it."""
    stat = path.stat()
    known = SourceFile(str(path), stat.st_size, stat.st_mtime_ns // 1_000_000)
    return parquet_file(str(folder), known, COLUMNS)


def write(path: Path, *ids: str, **columns: pa.Array) -> Path:
    """A file with these ids; `columns` take the place of others, or stand beside them."""
    content = {
        "message_id": pa.array(ids),
        "n": pa.array(range(len(ids)), pa.int64()),
        "sent_at": pa.array([SENT] * len(ids), pa.timestamp("us", "UTC")),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(content | columns), path)
    return path


def ids(frames: Sequence[DataFrame]) -> list[str]:
    return sorted(row.message_id for frame in frames for row in frame.collect())


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_apache_sparks_when_a_version_is_read(
    name: str, reader: SinkReader, tmp_path: Path
) -> None:
    table = spark_table(name, tmp_path)
    for number, known in enumerate(table.versions):
        version = DeltaSink(str(table.path), ACCESS).at(number)
        files = [version.sink_file(file, known.columns) for file in version.files()]
        wanted: Counter[Row] = Counter()
        for row, count in known.rows.items():
            named = dict(zip(STANDARD, row, strict=True))
            values = (named[standard] for standard in sorted(STANDARD))
            wanted[tuple(None if value is None else str(value) for value in values)] += count
        assert collected(reader.frames(files)) == wanted, number
        reader.check_unchanged(files)


def test_files_are_read_once_when_their_names_are_odd(reader: SinkReader, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.parquet", name) for name in ODD_NAMES]
    paths += [write(tmp_path / name / "x.parquet", f"in {name}") for name in ODD_NAMES]
    frames = reader.frames([file_of(path, tmp_path) for path in paths])
    assert ids(frames) == sorted([*ODD_NAMES, *(f"in {name}" for name in ODD_NAMES)])


def test_partitions_keep_their_values_when_those_are_odd(
    reader: SinkReader, tmp_path: Path
) -> None:
    names = [f"m{n}" for n in range(len(ODD_VALUES))]
    rows = pa.table({"message_id": names, "shard": pa.array(ODD_VALUES, pa.string())})
    write_deltalake(tmp_path / "sink", rows, partition_by=["shard"])
    version = DeltaSink(str(tmp_path / "sink"), ACCESS).at()
    columns = {"message_id": "message_id", "shard_id": "shard"}
    files = [version.sink_file(file, columns) for file in version.files()]
    assert len(files) == len(set(ODD_VALUES))
    [frame] = reader.frames(files)
    found = {row.message_id: row.shard_id for row in frame.collect()}
    assert found == dict(zip(names, ODD_VALUES, strict=True))


def test_files_are_read_together_when_their_other_columns_differ(
    reader: SinkReader, tmp_path: Path
) -> None:
    texts = pa.array(["text"])
    paths = [
        write(tmp_path / "plain.parquet", "plain"),
        write(tmp_path / "more.parquet", "more", other=pa.array([1])),
        write(tmp_path / "text.parquet", "text", other=texts),
        write(tmp_path / "dictionary.parquet", "", message_id=texts.dictionary_encode()),
        write(tmp_path / "large.parquet", "", message_id=texts.cast(pa.large_string())),
        write(tmp_path / "narrow.parquet", "narrow", n=pa.array([0], pa.int32())),
        write(tmp_path / "local.parquet", "local", sent_at=pa.array([SENT], pa.timestamp("us"))),
        write(
            tmp_path / "zone.parquet",
            "zone",
            sent_at=pa.array([SENT], pa.timestamp("us", "+05:00")),
        ),
        write(tmp_path / "beside.parquet", "beside", N=texts),
    ]
    old = write(tmp_path / "old.parquet", "old")
    pq.write_table(pq.read_table(old), old, use_deprecated_int96_timestamps=True)
    renamed = write(tmp_path / "renamed.parquet", "renamed")
    pq.write_table(pq.read_table(renamed).rename_columns(["MESSAGE_ID", "N", "Sent_At"]), renamed)
    [frame] = reader.frames([file_of(path, tmp_path) for path in (*paths, old, renamed)])
    micros = str(int(SENT.timestamp() * 1_000_000))
    named = ("plain", "more", "narrow", "local", "zone", "beside", "old", "renamed")
    assert collected([frame]) == Counter(
        [*((n, "0", micros) for n in named), *[("text", "0", micros)] * 3]
    )


def test_columns_are_null_when_a_file_lacks_them(reader: SinkReader, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"other": [1, 2]}), path)
    assert collected(reader.frames([file_of(path, tmp_path)])) == Counter({(None, None, None): 2})


def test_files_are_named_when_their_footers_tell_that_they_are_broken(
    reader: SinkReader, tmp_path: Path
) -> None:
    good = write(tmp_path / "good.parquet", "a")
    empty = write(tmp_path / "empty.parquet", "b")
    empty.write_bytes(b"")
    cut = cut_off(write(tmp_path / "cut.parquet", "c"))
    files = [file_of(path, tmp_path) for path in (good, empty, cut)]
    longer = write(tmp_path / "longer.parquet", "d")
    files.append(file_of(longer, tmp_path))
    write(longer, *"dddddddddddddd")
    gone = write(tmp_path / "gone.parquet", "e")
    files.append(file_of(gone, tmp_path))
    gone.unlink()
    with pytest.raises(UnsoundFilesError) as unsound:
        reader.frames(files)
    faults = {Path(path).stem: fault for path, fault in unsound.value.faults.items()}
    assert sorted(faults) == ["cut", "empty", "gone", "longer"]
    assert faults["gone"] == "the file is gone"
    assert "bytes and should have" in faults["longer"]
    assert reader.damaged(files) == unsound.value.faults
    assert ids(reader.frames(files[:1])) == ["a"]


def test_files_are_named_when_only_their_rows_are_broken(
    reader: SinkReader, tmp_path: Path
) -> None:
    names = [f"m{n * 7919 % 104729}" for n in range(3000)]
    spoiled = spoil(write(tmp_path / "spoiled.parquet", *names), at=0.3, length=500)
    doubled = tmp_path / "doubled.parquet"
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["message_id"] * 2)
    pq.write_table(twice, doubled)
    wrong = write(tmp_path / "wrong.parquet", "a", n=pa.array(["text"]))
    good = write(tmp_path / "good.parquet", "a")
    found = reader.damaged([file_of(path, tmp_path) for path in (good, spoiled, doubled, wrong)])
    reasons = {Path(path).stem: reason for path, reason in found.items()}
    assert sorted(reasons) == ["doubled", "spoiled", "wrong"]
    assert reasons["doubled"].startswith("it has not one column 'message_id'")
    assert reasons["wrong"] == "its column 'n' has type string; wanted int64"


def test_change_is_seen_when_a_file_goes_or_changes_between_the_looks(
    reader: SinkReader, tmp_path: Path
) -> None:
    files = [file_of(write(tmp_path / f"{name}.parquet", name), tmp_path) for name in "ab"]
    reader.frames(files)
    reader.check_unchanged(files)
    Path(files[0].path).unlink()
    write(Path(files[1].path), "other")
    with pytest.raises(UnsoundFilesError, match="it changed while it was read") as unsound:
        reader.check_unchanged(files)
    assert len(unsound.value.faults) == 2


def test_rows_have_their_places_when_those_are_wanted(reader: SinkReader, tmp_path: Path) -> None:
    table = spark_table("vectors", tmp_path)
    version, known = DeltaSink(str(table.path), ACCESS).at(4), table.versions[4]
    files = [version.sink_file(file, known.columns) for file in version.files()]
    [frame] = reader.placed(files)
    rows = frame.collect()
    assert Counter(row.message_id for row in rows) == Counter(row[0] for row in known.rows)
    for row in rows[::7]:
        [found] = pq.ParquetFile(row.file).read().slice(row.line - 1, 1).to_pylist()
        assert found["message_id"] == row.message_id


def test_sinks_columns_may_have_any_name(reader: SinkReader, tmp_path: Path) -> None:
    names = ["a.b `c`", "x y,;{}()\t=", "é🔥"]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({name: [name] for name in names}), path)
    columns = {f"c{i}": WantedColumn(name, "string") for i, name in enumerate(names)}
    file = SinkFile(SourceFile(str(path), path.stat().st_size, 0), str(path), "", columns)
    assert collected(reader.frames([file])) == Counter([tuple(names)])


def test_listing_finds_what_the_reader_reads(reader: SinkReader, tmp_path: Path) -> None:
    write(tmp_path / "p=1" / "x.parquet", "a")
    files = [parquet_file(str(tmp_path), f, COLUMNS) for f in list_files(str(tmp_path), ACCESS)]
    assert ids(reader.frames(files)) == ["a"]
