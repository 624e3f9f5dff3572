"""Parquet files read by Arrow, where the whole of a file must not fail for a part of it."""

import hashlib
import json
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.lake.sink_file import SinkFile, WantedColumn
from shardaudit.model.window import unix_micros

FOOTER = pa.schema([("file", pa.string()), ("footer", pa.string())])

_BATCH_ROWS = 50_000
_MICROS = {"ms": 1000, "us": 1}
_NEVER = (0, 0)  # of a column without rows
_SPARK_TYPES = (
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "long"),
)

# Names that both engines, and what they read S3 with, take as they are.
_PLAIN = re.compile(r"(s3a:/)?(/[A-Za-z0-9._=+@,~-]+)*/[A-Za-z0-9=+@,~-][A-Za-z0-9._=+@,~-]*")


def open_parquet(file: pa.NativeFile, *, few_values: Sequence[str] = ()) -> pq.ParquetFile:
    """The Parquet file behind an open file.

    Input:
        few_values: columns that are read as dictionaries.

    Raises:
        DamageError: it has no readable footer.
    """
    try:
        # To the microsecond: in nanoseconds the old type of time reaches from 1677 to 2262 alone.
        return pq.ParquetFile(
            file,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit="us",
            read_dictionary=list(few_values),
        )
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, error) from error


def unreadable(file: pa.NativeFile, error: Exception) -> DamageError:
    """The damage that an error in the middle of reading means.

    Arrow reports bad bytes and lost connections by the same class. If the bytes can all be had, it
    is the file that is bad; if not, the storage's error is raised here and the run tries later.
    """
    file.seek(0)
    while file.read(2**22):
        pass
    return DamageError(f"unreadable Parquet file: {str(error).splitlines()[0]}")


def row_group(
    source: pq.ParquetFile, group: int, *, columns: Sequence[str], file: pa.NativeFile
) -> Iterator[pa.RecordBatch]:
    """The batches of one row group.

    Raises:
        DamageError: something in it cannot be decoded; what was given before is sound.
    """
    wanted = left = source.metadata.row_group(group).num_rows
    try:
        for batch in source.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns)):
            batch.validate(full=True)  # texts that are not UTF-8 would reach Spark as they are
            left -= batch.num_rows
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, error) from error
    if left:  # Arrow says nothing where the footer has another number of a column's values
        raise DamageError(
            f"unreadable Parquet file: {wanted - left} rows in row group {group}, not {wanted}"
        )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file, its type as Spark names it, and its number where writers number them.

    `is_plain`: Arrow, by what it left in the file, makes nothing else of it than Spark.
    `nulls`: how many rows have none; NULL where the file does not say. `span`: the least and the
    greatest time in it, in microseconds since 1970; None where the file does not say.
    """

    name: str
    kind: str
    field_id: int | None
    is_plain: bool
    nulls: int | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says. `layout`: equal where the types of all columns are equal.

    `fault`: why it cannot be read; then nothing else is known.
    """

    size_bytes: int = 0
    columns: tuple[Column, ...] = ()
    layout: str = ""
    fault: str | None = None

    def as_json(self) -> str:
        """It as a text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What a text of `as_json` holds."""
        values = json.loads(text)
        columns = tuple(
            Column(**column | {"span": column["span"] and tuple(column["span"])})
            for column in values["columns"]
        )
        return cls(**values | {"columns": columns})


def read_footer(file: pa.NativeFile) -> Footer:
    """What the footer of an open file says."""
    try:
        source = open_parquet(file)
    except DamageError as damage:
        return Footer(fault=str(damage))
    old = old_times(source)
    fields, nulls = list(source.schema_arrow), _nulls(source)
    columns = tuple(
        Column(
            field.name,
            "timestamp" if field.name in old else _spark_type(field.type),
            _field_id(field),
            _is_plain(field.type),
            nulls.get(field.name),
            None if field.name in old else _span(source, field),
        )
        for field in fields
    )
    kinds = sorted(f"{field.name} {field.type}" for field in fields)
    stored = sorted(f"{leaf.path} {leaf.physical_type}" for leaf in _leaves(source))
    layout = hashlib.sha256("\n".join([*kinds, *stored]).encode()).hexdigest()
    return Footer(file.size(), columns, layout, None)


def old_times(source: pq.ParquetFile) -> set[str]:
    """The columns whose times have Parquet's old type: always in UTC, though it does not say so."""
    return {leaf.path for leaf in _leaves(source) if leaf.physical_type == "INT96"}


def _span(source: pq.ParquetFile, field: pa.Field) -> tuple[int, int] | None:
    if not pa.types.is_timestamp(field.type) or field.type.unit not in _MICROS:
        return None
    places = [n for n, leaf in enumerate(_leaves(source)) if leaf.path == field.name]
    if len(places) != 1:
        return None  # a file may have two columns of one name
    [place] = places
    in_file = map(source.metadata.row_group, range(source.num_row_groups))
    groups = [group.column(place).statistics for group in in_file if group.num_rows]
    if not groups:
        return _NEVER
    if not all(group is not None and group.has_min_max for group in groups):
        return None
    micros = _MICROS[field.type.unit]
    return (
        min(int(group.min_raw) for group in groups) * micros,
        max(int(group.max_raw) for group in groups) * micros,
    )


def _leaves(source: pq.ParquetFile) -> list[pq.ColumnSchema]:
    schema = source.schema
    return [schema.column(i) for i in range(len(schema))]


def _nulls(source: pq.ParquetFile) -> dict[str, int]:
    """How many NULLs each column has that is no nested one, where all of its parts say it."""
    metadata = source.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    found: dict[str, int] = {}
    for i, leaf in enumerate(_leaves(source)):
        if leaf.path != leaf.name:
            continue
        said = [group.column(i).statistics for group in groups]
        if all(part is not None and part.has_null_count for part in said):
            found[leaf.path] = sum(part.null_count for part in said)
    return found


def footer_row(file: pa.NativeFile, path: str) -> Iterator[pa.RecordBatch]:
    """One row of FOOTER."""
    yield _footer_batch(path, read_footer(file))


def lost(path: str, reason: str) -> pa.RecordBatch:
    """The row of FOOTER that says why a file cannot be read."""
    return _footer_batch(path, Footer(fault=reason))


def _footer_batch(path: str, footer: Footer) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"file": path, "footer": footer.as_json()}], schema=FOOTER)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit in {"ms", "us"} and kind.tz in {None, "UTC"}
    return any(is_kind(kind) for is_kind, _ in _SPARK_TYPES)


def _field_id(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if number is None else int(number)


def _spark_type(kind: pa.DataType) -> str:
    """The type as Spark names it; Arrow's own name where Spark's Parquet reader has none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return str(kind)  # Spark cannot read nanoseconds
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    for is_kind, name in _SPARK_TYPES:
        if is_kind(kind):
            return name
    return str(kind)


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """A file whose footer was read: its columns have the names that they have in it.

    `layout`: as in Footer; `is_plain`: both engines read it, and alike.
    """

    file: SinkFile
    layout: str
    is_plain: bool

    @property
    def group(self) -> Hashable:
        """What files must have in common for an engine to read them in one frame."""
        names = tuple(wanted.name for _, wanted in sorted(self.file.columns.items()))
        return self.layout, names, tuple(sorted(self.file.constants.items()))


def footer_fault(file: SinkFile, footer: Footer) -> str | None:
    """Why the file cannot be read; None when its footer tells of nothing."""
    if footer.fault is None and footer.size_bytes != file.known.size_bytes:
        return f"it has {footer.size_bytes} bytes and should have {file.known.size_bytes}"
    by_number = any(wanted.field_id is not None for wanted in file.columns.values())
    if by_number and all(column.field_id is None for column in footer.columns):
        return footer.fault or "its columns have no numbers, by which the table finds them"
    return footer.fault


def may_lack(file: SinkFile, footer: Footer, names: Sequence[str]) -> bool:
    """Whether a row of the file may have NULL in one of these standard columns."""
    return any(_null_counts(file, footer, name) != 0 for name in names)


def must_lack(file: SinkFile, footer: Footer, names: Sequence[str]) -> bool:
    """Whether each row of the file has NULL in one of these standard columns.

    Nothing is known of a file whose footer cannot be read: its reader tells of it.
    """
    return footer.fault is None and any(_is_nowhere(file, footer, name) for name in names)


def may_be_within(
    file: SinkFile, footer: Footer, name: str, spans: Sequence[tuple[datetime, datetime]]
) -> bool:
    """Whether a row of the file may have a time in one of some half-open spans in that column.

    As `must_lack`, of a file that cannot be read as it should nothing is known.
    """
    wanted = file.columns.get(name)
    found = [] if wanted is None else _like(wanted, footer.columns)
    if len(found) != 1 or found[0].span is None or footer_fault(file, footer) is not None:
        return True
    first, last = found[0].span
    return any(unix_micros(start) <= last and first < unix_micros(end) for start, end in spans)


def _null_counts(file: SinkFile, footer: Footer, name: str) -> int | None:
    """How many rows have NULL, 1 where all have; None where nobody knows."""
    if _is_nowhere(file, footer, name):
        return 1
    if name in file.constants:
        return 0
    found = _like(file.columns[name], footer.columns)
    return found[0].nulls if len(found) == 1 else None


def _is_nowhere(file: SinkFile, footer: Footer, name: str) -> bool:
    if name in file.constants:
        return file.constants[name].value is None
    return name not in file.columns or not _like(file.columns[name], footer.columns)


def ready_file(file: SinkFile, footer: Footer) -> ReadyFile:
    """The file as its sound footer says that it can be read."""
    is_plain = file.vector is None and _PLAIN.fullmatch(file.path) is not None
    columns: dict[str, WantedColumn] = {}
    for standard, wanted in file.columns.items():
        match _like(wanted, footer.columns):
            case []:
                columns[standard] = wanted  # NULL in every row
            case [column]:
                columns[standard] = replace(wanted, name=column.name)
                is_plain = is_plain and column.is_plain and column.kind == wanted.kind
            case _:
                columns[standard], is_plain = wanted, False
    return ReadyFile(replace(file, columns=columns), footer.layout, is_plain)


def _like(wanted: WantedColumn, columns: Sequence[Column]) -> list[Column]:
    """The columns of a file that may be meant; letters' case matters to no engine."""
    if wanted.field_id is not None:
        return [column for column in columns if column.field_id == wanted.field_id]
    return [column for column in columns if column.name.casefold() == wanted.name.casefold()]
