"""The one Python door: input files opened on the workers, their content given to Spark as Arrow.

Why not Spark's own readers: a damaged file must give what comes before the damage, every line its
number, and no error may take the good files with it (docs/decisions/001-python-file-reader.md).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import shardaudit
from shardaudit.adapters.engine.embedded import most_readers
from shardaudit.adapters.files.access_refused import plain_words
from shardaudit.adapters.files.files import FileStore, S3Access, at_once, open_file, storage_error
from shardaudit.adapters.files.json_traces import all_json_batches, json_batches
from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.files.loose_traces import LOOSE, damaged
from shardaudit.adapters.files.parquet_traces import parquet_batches
from shardaudit.adapters.files.reader_process import ArrowBatches, read_by_child
from shardaudit.adapters.files.told_numbers import (
    TOLD_NUMBERS,
    lost_numbers,
    parquet_numbers,
    with_told_numbers,
)
from shardaudit.adapters.lake import parquet_file
from shardaudit.adapters.lake.parquet_file import Footer
from shardaudit.adapters.lake.sink_batches import sink_batches
from shardaudit.adapters.lake.sink_file import SinkFile, placed_schema
from shardaudit.model.input_columns import EVENT, PARENT_IDS
from shardaudit.model.source import KEPT_BACK, SourceFile
from shardaudit.model.tables.table import INTERNAL_PREFIX

_BIN_BYTES = 64 * 2**20
_LEAST_BINS = 16
_LEAST_BYTES = 2**17  # to start a task costs as much as to read that
_MUCH_BYTES = 32 * 2**20  # of files whose rows Python makes: worth a process for each core
_FEW = 20_000  # files whose footers the driver reads itself: 0.1 ms each on a disk
_GONE = "the file is gone"
# What a file may make a reader stumble over that expected something else of it.
_ODD = (ArithmeticError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError)
_STORAGE = re.compile(
    r"(?:StorageError|AccessRefusedError|MisplacedError): (.+) "
    r"(?:could not be read|is refused|is a folder in the place of .* of a folder): "
    r"(.*); (?:try again|give this role|move it away)"
)
_FAULT = pa.schema([("file", pa.string()), ("fault", pa.string())])


@contextmanager
def storage_errors() -> Iterator[None]:
    """Gives an error of storage that a worker met, by an action in the block, its class back."""
    try:
        yield
    except PySparkException as error:
        said = _STORAGE.search(str(error))
        if said is None:
            raise
        raise storage_error(said[1], said[2]) from error


@dataclass(frozen=True)
class _Reading:
    """What is done to each file on a worker."""

    schema: pa.Schema
    read: Callable[[pa.NativeFile, str], ArrowBatches]
    lost: Callable[[str, str], pa.RecordBatch]
    access: S3Access
    names: Mapping[str, str] = field(default_factory=dict)  # path -> the one that rows have
    goes_on: bool = False  # without a file that the storage does not give
    given_up: Mapping[str, str] = field(default_factory=dict)  # such name -> why
    by_children: bool = False  # where it is much: Python makes the rows; it can be pickled


@dataclass(frozen=True)
class TraceReading:
    """How trace files are read. `columns`: of `trace_columns`.

    `with_numbers`: one more row of each file, with the fault PASSED_OVER, holds in `raw` what its
    lines tell of their sessions' numbers: of `ToldNumbers.as_text`. `given_up`: by the path that
    rows are said to be of, why the file is not opened: one damage. `by_children`: whether children
    may read, each of which takes some memory.
    """

    columns: Mapping[str, str]
    is_parquet: bool
    with_numbers: bool = False
    given_up: Mapping[str, str] = field(default_factory=dict)
    by_children: bool = True

    def batches(self, file: pa.NativeFile, path: str) -> ArrowBatches:
        """The rows of an open file: LOOSE."""
        of_json = all_json_batches if self.with_numbers else json_batches
        read = parquet_batches if self.is_parquet else of_json
        found = read(file, path, self.all_columns)
        return with_told_numbers(found, path, self.all_columns) if self.with_numbers else found

    @property
    def all_columns(self) -> dict[str, str]:
        """The columns of all standard names; no input has one of those that are not read."""
        absent = {name: f"{INTERNAL_PREFIX}{name}" for name in (EVENT, PARENT_IDS)}
        return absent | dict(self.columns)


def read_traces(
    spark: SparkSession,
    files: Mapping[str, SourceFile],
    access: S3Access,
    *,
    kind: TraceReading,
    goes_on: bool = False,
) -> DataFrame:
    """The traces of files: one row per line or row, and one per damage, as `LOOSE` says.

    Input:
        files: the path that rows are said to be of -> the file, or a copy of it.
        goes_on: a file that the storage does not give is one damage, not the end of all.
    """
    names = {file.path: path for path, file in files.items()}
    of_kind = (LOOSE, kind.batches, damaged, access, names, goes_on, kind.given_up)
    reading = _Reading(*of_kind, by_children=kind.by_children)
    return _read(spark, list(files.values()), reading)


def read_told_numbers(
    spark: SparkSession, files: Sequence[SourceFile], access: S3Access, columns: Mapping[str, str]
) -> DataFrame:
    """What plain Parquet files tell of their sessions' numbers: `file`, and `raw` as above.

    Input:
        columns: standard name -> column, for those that the files have.
    """

    def read(file: pa.NativeFile, path: str) -> ArrowBatches:
        return parquet_numbers(file, path, columns)

    return _read(spark, files, _Reading(TOLD_NUMBERS, read, lost_numbers, access))


def read_footers(
    spark: SparkSession, files: Sequence[SourceFile], access: S3Access
) -> dict[str, Footer]:
    """The footers of Parquet files, by path."""
    if len(files) <= _FEW:
        store = FileStore(access)
        footers = at_once(lambda file: _footer(file.path, store), files)
        return {file.path: footer for file, footer in zip(files, footers, strict=True)}
    reading = _Reading(parquet_file.FOOTER, parquet_file.footer_row, parquet_file.lost, access)
    with storage_errors():
        rows = _read(spark, files, reading).collect()
    return {row.file: Footer.from_json(row.footer) for row in rows}


def read_sink_files(spark: SparkSession, files: Sequence[SinkFile], access: S3Access) -> DataFrame:
    """The rows that count of files whose rows look alike: the standard columns, `file` and `line`.

    An action on it raises the engine's own error where a file is gone or damaged, see
    `find_damaged`.
    """

    def read(file: pa.NativeFile, path: str) -> ArrowBatches:
        for sink_file in by_path[path]:
            yield from sink_batches(file, sink_file, access)

    by_path = _by_path(files)
    reading = _Reading(placed_schema(files[0].kinds), read, _refuse, access)
    return _read(spark, [found[0].source for found in by_path.values()], reading)


def find_damaged(
    spark: SparkSession, files: Sequence[SinkFile], access: S3Access
) -> dict[str, str]:
    """Path -> reason, for the files of which some row cannot be read."""

    def read(file: pa.NativeFile, path: str) -> ArrowBatches:
        try:
            for sink_file in by_path[path]:
                for _ in sink_batches(file, sink_file, access):
                    pass
        except DamageError as damage:
            yield _fault(path, str(damage))

    by_path = _by_path(files)
    reading = _Reading(_FAULT, read, _fault, access)
    with storage_errors():
        rows = _read(spark, [found[0].source for found in by_path.values()], reading).collect()
    return {row.file: row.fault for row in rows}


def _by_path(files: Iterable[SinkFile]) -> dict[str, list[SinkFile]]:
    """A file may come several times, with several deletion vectors."""
    found: dict[str, list[SinkFile]] = {}
    for file in files:
        found.setdefault(file.path, []).append(file)
    return found


def _footer(path: str, store: FileStore) -> Footer:
    try:
        with store.open(path) as file:
            return parquet_file.read_footer(file)
    except FileNotFoundError:
        return Footer(fault=_GONE)


def _fault(path: str, reason: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"file": path, "fault": reason}], schema=_FAULT)


def _refuse(path: str, reason: str) -> pa.RecordBatch:
    raise DamageError(f"{path}: {reason}")


def _read(spark: SparkSession, files: Sequence[SourceFile], reading: _Reading) -> DataFrame:
    # The embedded engine works on all of them at the same time, and holds them in memory.
    most = most_readers(spark)
    is_much = sum(file.size_bytes for file in files) >= _MUCH_BYTES
    by_children = reading.by_children and most is not None and len(files) > 1 and is_much
    bins = _bins(files, most=most or len(files))
    _pickle_by_value(is_wanted=most is None)

    def on_worker(batches: Iterable[pa.RecordBatch]) -> ArrowBatches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                read = partial(_contents, bins[number], reading)
                yield from read_by_child(read, reading.schema) if by_children else read()

    numbers = spark.range(0, len(bins), 1, max(1, len(bins)))
    return numbers.mapInArrow(
        on_worker, from_arrow_schema(reading.schema, prefer_timestamp_ntz=True)
    )


def _pickle_by_value(*, is_wanted: bool) -> None:
    """A cluster's workers then need pyarrow, orjson and zstandard, but not this package."""
    if is_wanted:
        cloudpickle.register_pickle_by_value(shardaudit)  # type: ignore[no-untyped-call]
    elif shardaudit.__name__ in cloudpickle.list_registry_pickle_by_value():  # type: ignore[no-untyped-call]
        cloudpickle.unregister_pickle_by_value(shardaudit)  # type: ignore[no-untyped-call]


def _contents(paths: Sequence[str], reading: _Reading) -> ArrowBatches:
    for path in paths:
        yield from _content(path, reading)


def _content(path: str, reading: _Reading) -> ArrowBatches:
    name = reading.names.get(path, path)
    if name in reading.given_up:
        yield reading.lost(name, reading.given_up[name])
        return
    try:
        with open_file(path, reading.access) as file:
            yield from reading.read(file, name)
    except FileNotFoundError:
        yield reading.lost(name, _GONE)
    except OSError as error:
        if not reading.goes_on:
            raise
        yield reading.lost(name, f"{KEPT_BACK}{plain_words(error)}")
    except _ODD as error:  # told by the file's name: it would end every later run as well
        said = str(error).splitlines()[0] if str(error) else ""
        yield reading.lost(name, f"it cannot be read: {type(error).__name__}: {said}")


def _bins(files: Sequence[SourceFile], *, most: int) -> list[list[str]]:
    """Files dealt out to tasks: the largest first, each time to the next bin."""
    total = sum(file.size_bytes for file in files)
    least = min(_LEAST_BINS, -(-total // _LEAST_BYTES))
    count = min(len(files), most, max(1, least, total // _BIN_BYTES))
    by_size = sorted(files, key=lambda file: (-file.size_bytes, file.path))
    return [[file.path for file in by_size[i::count]] for i in range(count)]
