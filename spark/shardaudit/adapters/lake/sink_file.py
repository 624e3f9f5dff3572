"""A file of a sink with what it takes to read its rows, and a sink that is a folder of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote

import pyarrow as pa

from shardaudit.model.source import DeletionVector, SourceFile

# The types that are read, as Spark's schemas name them.
ARROW_TYPES = {
    "string": pa.string(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_INTEGERS = ("byte", "short", "integer", "long")
_TIMES = ("timestamp", "timestamp_ntz")

FILE, LINE = "file", "line"
_SECOND_MS = 1000

Value = str | int | datetime | None
Kinds = tuple[tuple[str, str], ...]

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column that is read: its name in the file (or its number there), and the type it gets."""

    name: str
    kind: str
    field_id: int | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """What a column holds in all rows of a file, as that of a partition does."""

    value: Value
    kind: str


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file, and its columns by their standard names.

    `known`: the file as the listing or the log has it; `path` opens it; `folder`: the sink's.
    `is_listed`: its time is the storage's own.
    """

    known: SourceFile
    path: str
    folder: str
    columns: Mapping[str, WantedColumn]
    constants: Mapping[str, Constant] = field(default_factory=dict)
    vector: DeletionVector | None = None
    is_listed: bool = False

    def is_still(self, found: SourceFile) -> bool:
        """Whether a file that was found now is this one."""
        # Some S3 lists milliseconds, but each says of a single file the second alone.
        cut = _SECOND_MS if self.path.startswith("s3a://") else 1
        is_same_time = found.modified_ms // cut == self.known.modified_ms // cut
        is_same_size = found.size_bytes == self.known.size_bytes
        return is_same_size and (is_same_time or not self.is_listed)

    @property
    def source(self) -> SourceFile:
        """The file by the path that opens it."""
        return SourceFile(self.path, self.known.size_bytes, self.known.modified_ms)

    @property
    def kinds(self) -> Kinds:
        """What its rows look like: the standard name and type of each column."""
        both: dict[str, WantedColumn | Constant] = {**self.columns, **self.constants}
        return tuple((name, both[name].kind) for name in sorted(both))


def placed_schema(kinds: Kinds) -> pa.Schema:
    """The schema of such rows in Arrow, each with the place where it stands."""
    columns = [(name, ARROW_TYPES[kind]) for name, kind in kinds]
    return pa.schema([*columns, (FILE, pa.string()), (LINE, pa.int64())])


def partition_value(text: str | None, kind: str) -> Value:
    """The value that a Delta log's text stands for; the empty text is NULL in every type.

    Source: Delta's protocol, "Partition Value Serialization".

    Raises:
        ValueError: it stands for none.
    """
    if text is None or text == "":
        return None
    if kind in _INTEGERS:
        return int(text)
    if kind in _TIMES:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    return text


def partition_columns(folder: str, path: str) -> list[str]:
    """The columns that the folders between the sink and a file name, as in `day=2026-11-20`."""
    return list(_partition_values(folder, path))


def parquet_file(folder: str, file: SourceFile, columns: Mapping[str, tuple[str, str]]) -> SinkFile:
    """A file of the sink. What its folders' names say is text: `000000000001` is no number.

    Input:
        columns: standard name -> (column, Spark type).
    """
    values = _partition_values(folder, file.path)
    return SinkFile(
        known=file,
        path=file.path,
        folder=folder,
        columns={
            standard: WantedColumn(column, kind)
            for standard, (column, kind) in columns.items()
            if column not in values
        },
        constants={
            standard: Constant(values[column], kind)
            for standard, (column, kind) in columns.items()
            if column in values
        },
        is_listed=True,
    )


def _partition_values(folder: str, path: str) -> dict[str, str | None]:
    folders = path.removeprefix(folder).strip("/").split("/")[:-1]
    named = [name.partition("=") for name in folders if "=" in name]
    return {
        unquote(column): None if value == _NULL else _unescaped(value) for column, _, value in named
    }


def _unescaped(text: str) -> str:
    """UTF-8, as Python writers escape it, or else a character for each `%`, as Spark does."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return unquote(text, encoding="latin-1")
