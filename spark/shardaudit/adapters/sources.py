"""The one Python door: input files opened on the workers, their content given to Spark as Arrow.

Why not Spark's own readers: a damaged file must give what comes before the damage, every line its
number, and no error may take the good files with it (docs/decisions/001-python-file-reader.md).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import shardaudit
from shardaudit.adapters import parquet_file
from shardaudit.adapters.files import S3Access, StorageError, open_file
from shardaudit.adapters.json_traces import json_batches
from shardaudit.adapters.loose_traces import LOOSE, damaged
from shardaudit.adapters.parquet_traces import parquet_batches
from shardaudit.model.source import SourceFile

_BIN_BYTES = 64 * 2**20
_LEAST_BINS = 16

Batches = Iterator[pa.RecordBatch]


@contextmanager
def storage_errors() -> Iterator[None]:
    """Gives a StorageError of a worker, met by an action in the block, its class back."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        said = re.search(r"StorageError: (.+) could not be read: (.*); try again", str(error))
        if said is None:
            raise
        raise StorageError(said[1], said[2]) from error


@dataclass(frozen=True)
class _Reading:
    """What is done to each file on a worker."""

    schema: pa.Schema
    read: Callable[[pa.NativeFile, str], Batches]
    lost: Callable[[str, str], pa.RecordBatch]
    access: S3Access


def read_traces(
    spark: SparkSession,
    files: Sequence[SourceFile],
    access: S3Access,
    *,
    columns: Mapping[str, str],
    is_parquet: bool,
) -> DataFrame:
    """The traces of files: one row per line or row, and one per damage, as `LOOSE` says.

    Input:
        columns: standard name -> key or column in the files, for every standard name.
    """
    batches = parquet_batches if is_parquet else json_batches

    def read(file: pa.NativeFile, path: str) -> Batches:
        return batches(file, path, columns)

    return _read(spark, files, _Reading(LOOSE, read, damaged, access))


def read_footers(spark: SparkSession, files: Sequence[SourceFile], access: S3Access) -> list[Row]:
    """One row per Parquet file: `file`, `columns` (JSON, name -> Spark type), `fault`."""
    reading = _Reading(parquet_file.FOOTER, parquet_file.footer, parquet_file.lost, access)
    with storage_errors():
        return _read(spark, files, reading).collect()


def find_damaged(
    spark: SparkSession,
    files: Sequence[SourceFile],
    access: S3Access,
    *,
    columns: Sequence[str] | None = None,
) -> dict[str, str]:
    """Path -> reason, for the Parquet files of which some column cannot be read to the end."""

    def read(file: pa.NativeFile, path: str) -> Batches:
        return parquet_file.soundness(file, path, columns)

    reading = _Reading(parquet_file.FOOTER, read, parquet_file.lost, access)
    with storage_errors():
        return {row.file: row.fault for row in _read(spark, files, reading).collect()}


def _read(spark: SparkSession, files: Sequence[SourceFile], reading: _Reading) -> DataFrame:
    # By value: a cluster's workers then need pyarrow, orjson and zstandard, but not this package.
    cloudpickle.register_pickle_by_value(shardaudit)  # type: ignore[no-untyped-call]
    bins = _bins(files)

    def on_worker(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for path in bins[number]:
                    yield from _content(path, reading)

    numbers = spark.range(0, len(bins), 1, max(1, len(bins)))
    return numbers.mapInArrow(on_worker, from_arrow_schema(reading.schema))


def _content(path: str, reading: _Reading) -> Batches:
    try:
        with open_file(path, reading.access) as file:
            yield from reading.read(file, path)
    except FileNotFoundError:
        yield reading.lost(path, "the file is gone")
    except OSError as error:
        raise StorageError(path, error) from error


def _bins(files: Sequence[SourceFile]) -> list[list[str]]:
    """Files dealt out to tasks: the largest first, each time to the next bin."""
    total = sum(file.size_bytes for file in files)
    count = min(len(files), max(_LEAST_BINS, total // _BIN_BYTES))
    by_size = sorted(files, key=lambda file: (-file.size_bytes, file.path))
    return [[file.path for file in by_size[i::count]] for i in range(count)]
