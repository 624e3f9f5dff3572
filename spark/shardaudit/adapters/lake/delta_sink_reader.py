"""The door to a user's Delta table, read only: what its log says, without a JVM."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from shardaudit.adapters.aws.s3 import delta_rs_options
from shardaudit.adapters.files.files import FileStore, S3Access, StorageError
from shardaudit.adapters.lake.broken_tables import broken_table
from shardaudit.adapters.lake.delta_log import (
    CommitGoneError,
    TimeSpan,
    commit_path,
    commit_texts,
    last_commits,
    log_folder,
    log_start,
    may_hold,
    may_lack_by_log,
    vectors_at,
)
from shardaudit.adapters.lake.delta_schema import check_features, opening_error
from shardaudit.adapters.lake.sink_batches import located
from shardaudit.adapters.lake.sink_file import (
    Constant,
    SinkFile,
    Value,
    WantedColumn,
    partition_value,
)
from shardaudit.columns.sql_name import quoted
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import ConfigError, ShardauditError
from shardaudit.model.input_columns import SinkField
from shardaudit.model.source import DeltaFile, SourceFile

_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_COMPUTED = ("delta.generationExpression", "delta.identity.")
_CHECK = "delta.constraints."
_DECLARED, _LENGTH = "__CHAR_VARCHAR_TYPE_STRING", re.compile(r"(?:var)?char\((\d+)\)")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its name in the files, its type (JSON), and its number in id mode."""

    physical: str
    kind: str
    field_id: int | None = None


class DeltaSink:
    """One Delta table."""

    def __init__(self, path: str, access: S3Access) -> None:
        self.path, self._access = path, access

    def at(self, version: int | None = None) -> "DeltaVersion":
        """A version of the table; None: the newest one.

        Raises:
            ConfigError: there is no Delta table.
            TableFeatureError: it cannot be read.
            StorageError: it could not be reached, or that version is gone.
            BrokenTableError: its log is broken for good.
        """
        place = self.path.replace("s3a://", "s3://", 1)
        aws = Aws(region=self._access.region, endpoint_url=self._access.endpoint)
        with _log_errors(self.path, self._access):
            table = DeltaTable(place, version=version, storage_options=delta_rs_options(aws))
            check_features(self.path, table.protocol().reader_features or ())
            found = DeltaVersion(self.path, self._access, table)
            commit = commit_path(self.path, found.number)
            stored = FileStore(self._access).found(commit)
            if stored is not None and stored.size_bytes == 0:
                raise StorageError(commit, "it is empty: still being written, or torn")
            return found


class DeltaVersion:
    """A version of a table: its identity, its columns and its files."""

    def __init__(self, path: str, access: S3Access, table: DeltaTable) -> None:
        self.path = path
        self._access, self._table = access, table
        metadata = table.metadata()
        self.number = table.version()
        self.table_id: str = str(metadata.id)
        self.partitions: list[str] = list(metadata.partition_columns)
        self._properties = metadata.configuration
        self._mapping = self._properties.get("delta.columnMapping.mode", "none")

    @cached_property
    def columns(self) -> dict[str, TableColumn]:
        """Its columns by name."""
        return {field["name"]: self._column(field) for field in self._fields}

    @property
    def fields(self) -> list[SinkField]:
        """The columns as the table declares them."""
        return [
            SinkField(
                name=field["name"],
                kind=_sql_type(field["type"]),
                nullable=field["nullable"],
                partitions=field["name"] in self.partitions,
                computes=any(key.startswith(_COMPUTED) for key in field["metadata"]),
            )
            for field in self._fields
        ]

    @property
    def checks(self) -> dict[str, str]:
        """By name the conditions in SQL that Delta asks of each row: CHECK, and texts' lengths."""
        checks = {
            f"constraint {key.removeprefix(_CHECK)}": text
            for key, text in self._properties.items()
            if key.startswith(_CHECK)
        }
        for field in self._fields:
            if declared := _LENGTH.fullmatch(field["metadata"].get(_DECLARED, "")):
                name = quoted(field["name"])
                fits = f"length({name}) <= {declared[1]}"
                checks[f"{declared[0]} of {field['name']}"] = f"{name} IS NULL OR {fits}"
        return checks

    def files(
        self, *, within: tuple[str, Sequence[TimeSpan]] | None = None, lacking: Sequence[str] = ()
    ) -> list[DeltaFile]:
        """The data files, with paths as in the log.

        Input:
            within: a column and spans of time: files of which the log says that no value of the
                column lies in any span are left out.
            lacking: columns: files of which the log says that no row has NULL in any are left out;
                none given, none is.

        Raises:
            StorageError: the log could not be read, or is not whole as far as this version.
            BrokenTableError: it is broken for good.
        """
        has_vectors = "deletionVectors" in (self._table.protocol().reader_features or ())
        vectors = {}
        with _log_errors(self.path, self._access):
            if has_vectors:
                vectors = vectors_at(self.path, self.number, self._access)
            else:
                log_start(self.path, self.number, self._access)
            actions = pa.table(self._table.get_add_actions(flatten=False))
        if within is not None:
            column, spans = within
            actions = actions.filter(may_hold(actions, self.columns[column].physical, spans))
        if lacking:
            gaps = (may_lack_by_log(actions, self.columns[name].physical) for name in lacking)
            actions = actions.filter(reduce(pc.or_, gaps))
        return [
            DeltaFile(
                path=row["path"],
                size_bytes=row["size_bytes"],
                modified_ms=row["modification_time"],
                partition_values={
                    self.columns[name].physical: _as_text(value)
                    for name, value in (row.get("partition") or {}).items()
                },
                vector=vectors.get(row["path"]),
            )
            for row in actions.drop_columns(
                [name for name in actions.column_names if name not in _FILE_COLUMNS]
            ).to_pylist()
        ]

    def commits_since(self, before: int) -> list[str]:
        """The texts of the commits after another version up to this one, in order.

        Raises:
            CommitGoneError: not all of them are there any more, or one is empty.
            StorageError: they could not be reached.
        """
        return commit_texts(self.path, before, self.number, self._access)

    def commit_mark(self, number: int) -> str:
        """What tells the commit of a version from any other; empty where it was cleaned up."""
        try:
            [text] = commit_texts(self.path, number - 1, number, self._access)
        except CommitGoneError:
            return ""
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def last_commits(self, limit: int) -> list[str]:
        """The texts of at most so many commits up to this version: the newest that are there."""
        try:
            return last_commits(self.path, self.number, self._access, limit=limit)
        except CommitGoneError:  # by the table's own clean-up, just now
            return []

    def sink_file(self, file: DeltaFile, columns: Mapping[str, str]) -> SinkFile:
        """The file with what it takes to read it.

        Input:
            columns: standard name -> column.

        Raises:
            ConfigError: it lies where shardaudit does not read.
            StorageError: the log gives a partition a value that it cannot have.
        """
        wanted: dict[str, WantedColumn] = {}
        constants: dict[str, Constant] = {}
        for standard, name in columns.items():
            column = self.columns[name]
            kind = json.loads(column.kind)
            if name in self.partitions:
                constants[standard] = Constant(self._partition_value(file, column, kind), kind)
            else:
                wanted[standard] = WantedColumn(column.physical, kind, column.field_id)
        path = located(self.path, file.path)
        if "://" in path and not path.startswith("s3a://"):
            place = f"sink.path {self.path}"
            raise ConfigError(place, path, "a table whose files lie in S3 or in folders")
        return SinkFile(
            known=SourceFile(file.path, file.size_bytes, file.modified_ms),
            path=path,
            folder=self.path,
            columns=wanted,
            constants=constants,
            vector=file.vector,
        )

    def _partition_value(self, file: DeltaFile, column: TableColumn, kind: str) -> Value:
        text = file.partition_values.get(column.physical)
        try:
            return partition_value(text, kind)
        except ValueError as error:
            raise StorageError(log_folder(self.path), error) from error

    @cached_property
    def _fields(self) -> list[dict[str, Any]]:  # Any: JSON
        fields: list[dict[str, Any]] = json.loads(self._table.schema().to_json())["fields"]
        return fields

    def _column(self, field: Mapping[str, Any]) -> TableColumn:  # Any: JSON
        name, metadata = field["name"], field["metadata"]
        kind = json.dumps(field["type"])
        if self._mapping == "none":
            return TableColumn(name, kind)
        physical = metadata.get("delta.columnMapping.physicalName", name)
        number = metadata.get("delta.columnMapping.id") if self._mapping == "id" else None
        return TableColumn(physical, kind, number)


@contextmanager
def _log_errors(path: str, access: S3Access) -> Iterator[None]:
    """Turns what is said against reading a table's log into our errors."""
    try:
        yield
    except TableNotFoundError as error:
        wanted = 'a Delta table, or format = "parquet"'
        raise ConfigError("sink.path", path, wanted) from error
    except (OSError, DeltaError) as error:
        told = error if isinstance(error, ShardauditError) else opening_error(path, error)
        if isinstance(told, StorageError):
            told = broken_table(path, access, error) or told
        if told is error:
            raise
        raise told from error


_FILE_COLUMNS = ("path", "size_bytes", "modification_time", "partition")


def _as_text(value: object) -> str | None:
    """A partition's value as the log itself writes it."""
    if value is None or isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _sql_type(kind: Any) -> str:  # Any: JSON
    """A type as the log writes it, in Spark SQL."""
    if isinstance(kind, str):
        return _SQL_NAMES.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{_sql_type(kind['elementType'])}>"
        case "map":
            return f"map<{_sql_type(kind['keyType'])},{_sql_type(kind['valueType'])}>"
    fields = (f"{field['name']}:{_sql_type(field['type'])}" for field in kind["fields"])
    return f"struct<{','.join(fields)}>"
