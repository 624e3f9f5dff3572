"""What the columns of a Parquet sink are to a backfill, by its files' footers."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.files.files import S3Access
from shardaudit.adapters.lake.parquet_append import parquet_fields
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import SinkField
from shardaudit.model.source import appended_name

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MICROS = pa.timestamp("us")
COLUMNS = {
    "id": pa.array(["a"]),
    "large": pa.array(["a"], pa.large_string()),
    "coded": pa.array(["a"]).dictionary_encode(),
    "raw": pa.array([b"a"]),
    "small": pa.array([1], pa.int16()),
    "unsigned": pa.array([1], pa.uint32()),
    "huge": pa.array([1], pa.uint64()),
    "at": pa.array([NOW], pa.timestamp("us", "UTC")),
    "local": pa.array([NOW], MICROS),
    "day": pa.array([NOW.date()]),
    "price": pa.array([1]).cast(pa.decimal128(38, 2)),
    "tags": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
    "parts": pa.array([[{"x": 1.5}]]),
}


def test_types_are_those_that_spark_reads(tmp_path: Path) -> None:
    folder = tmp_path / "shard=000001" / "hour=12"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(COLUMNS | {"hour": pa.array([12])}), folder / "a.parquet")
    assert parquet_fields(str(tmp_path), S3Access()) == [
        SinkField("id", "string"),
        SinkField("large", "string"),
        SinkField("coded", "string"),
        SinkField("raw", "binary"),
        SinkField("small", "smallint"),
        SinkField("unsigned", "bigint"),
        SinkField("huge", "decimal(20,0)"),
        SinkField("at", "timestamp"),
        SinkField("local", "timestamp_ntz"),
        SinkField("day", "date"),
        SinkField("price", "decimal(38,2)"),
        SinkField("tags", "map<string,int>"),
        SinkField("parts", "array<struct<x:double>>"),
        SinkField("shard", "string", partitions=True),
        SinkField("hour", "string", partitions=True),
    ]


def test_times_are_instants_when_they_have_parquets_old_type(tmp_path: Path) -> None:
    old = pa.table({"at": pa.array([NOW], MICROS)})
    pq.write_table(old, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert parquet_fields(str(tmp_path), S3Access()) == [SinkField("at", "timestamp")]


def test_columns_are_all_that_newer_files_have_and_types_those_of_the_newest(
    tmp_path: Path,
) -> None:
    def write(name: str, at: int, **columns: pa.Array) -> None:
        pq.write_table(pa.table(columns), tmp_path / name)
        os.utime(tmp_path / name, (at, at))

    one, text = pa.array([1], pa.int32()), pa.array(["a"])
    write("a.parquet", 1, id=text, n=one)
    write("b.parquet", 3, id=text, n=one.cast(pa.int64()), gained=text)
    write("c.parquet", 2, id=text, other=one)
    write(appended_name("plan", "0.parquet"), 4, id=text, n=one)  # a backfill's of then
    (tmp_path / "d.parquet").write_bytes(b"")  # broken, and the newest of all
    assert parquet_fields(str(tmp_path), S3Access()) == [
        SinkField("id", "string"),
        SinkField("n", "bigint"),
        SinkField("gained", "string"),
        SinkField("other", "int"),
    ]


def test_cure_is_told_when_the_columns_cannot_be_had(tmp_path: Path) -> None:
    for content, reason in (
        (None, "a folder with Parquet files"),
        (b"no Parquet", "unreadable Parquet file"),
    ):
        if content is not None:
            (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(ConfigError, match=reason):
            parquet_fields(str(tmp_path), S3Access())
    pq.write_table(pa.table({"half": pa.array([1.5], pa.float16())}), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match="files that Spark reads"):
        parquet_fields(str(tmp_path), S3Access())
