"""Trace files through the engine: little is read in its process, much by children of it."""

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from shardaudit.adapters.engine.embedded import is_embedded
from shardaudit.adapters.files.access_refused import MisplacedError
from shardaudit.adapters.files.sources import TraceReading, read_traces, storage_errors
from shardaudit.model.source import SourceFile
from shardaudit.model.trace_line import NUMBERS, TEXTS, TIMES
from tests.sink_reading import ACCESS

_NAMES = (*TEXTS, *NUMBERS, *TIMES, "attributes")
KIND = TraceReading({name: name for name in _NAMES}, is_parquet=False, with_numbers=True)
LITTLE, MUCH = 0, 2**30  # bytes, as a listing says
_OWN_NUMBER = "/proc/self/stat"  # begins with the number of the process that reads it


def rows_of(spark: SparkSession, paths: list[str], *, size_bytes: int) -> list[Row]:
    files = {path: SourceFile(path, size_bytes, 0) for path in paths}
    with storage_errors():
        return read_traces(spark, files, ACCESS, kind=KIND).collect()


def log_file(folder: Path, name: str) -> str:
    """A file with lines of each kind."""
    odd = ["no object", "", '{"message_id": 1e999}', '{"gap": 3}', '{"message_id": "\ud800"}']
    good = [json.dumps({"message_id": f"{name}-{n}", "sent_at": n}) for n in range(50)]
    path = folder / name
    path.write_bytes("\n".join(odd + good).encode(errors="surrogatepass"))
    return str(path)


def test_rows_are_the_same_whoever_reads(spark: SparkSession, tmp_path: Path) -> None:
    paths = [*(log_file(tmp_path, name) for name in "abc"), str(tmp_path / "gone")]
    little, much = (rows_of(spark, paths, size_bytes=size) for size in (LITTLE, MUCH))
    assert len(little) > 150
    assert sorted(map(str, little)) == sorted(map(str, much))


@pytest.mark.parametrize(("size_bytes", "is_here"), [(LITTLE, True), (MUCH, False)])
def test_much_is_read_by_children_on_one_machine(
    spark: SparkSession, tmp_path: Path, size_bytes: int, is_here: bool
) -> None:
    assert is_embedded(spark)
    rows = rows_of(spark, [_OWN_NUMBER, log_file(tmp_path, "a")], size_bytes=size_bytes)
    [reader] = {int(row.raw.split()[0]) for row in rows if row.file == _OWN_NUMBER and row.line}
    assert (reader == os.getpid()) == is_here


@pytest.mark.parametrize("size_bytes", [LITTLE, MUCH])
def test_file_that_nobody_can_read_is_told_whoever_tries(
    spark: SparkSession, tmp_path: Path, size_bytes: int
) -> None:
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    with pytest.raises(MisplacedError, match=r"folder.jsonl is a folder in the place of a file"):
        rows_of(spark, [str(folder), log_file(tmp_path, "a")], size_bytes=size_bytes)
