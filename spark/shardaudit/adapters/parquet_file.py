"""Parquet files read by Arrow, where the whole of a file must not fail for a part of it."""

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from shardaudit.adapters.unpack import DamageError

FOOTER = pa.schema([("file", pa.string()), ("columns", pa.string()), ("fault", pa.string())])

_BATCH_ROWS = 50_000
_SPARK_TYPES = (
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "long"),
)


def opened(file: pa.NativeFile) -> pq.ParquetFile:
    """The Parquet file behind an open file.

    Raises:
        DamageError: it has no readable footer.
    """
    try:
        return pq.ParquetFile(file, page_checksum_verification=True)
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
    try:
        for batch in source.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns)):
            batch.validate(full=True)  # texts that are not UTF-8 would reach Spark as they are
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, error) from error


def footer(file: pa.NativeFile, path: str) -> Iterator[pa.RecordBatch]:
    """One row of FOOTER: the file's columns as Spark types, or why it cannot be read."""
    try:
        source = opened(file)
    except DamageError as damage:
        yield lost(path, str(damage))
        return
    int96 = {
        source.schema.column(i).path
        for i in range(len(source.schema))
        if source.schema.column(i).physical_type == "INT96"
    }
    columns = {
        field.name: "timestamp" if field.name in int96 else _spark_type(field.type)
        for field in source.schema_arrow
    }
    yield _footer_row(path, columns=json.dumps(columns), fault=None)


def soundness(
    file: pa.NativeFile, path: str, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """One row of FOOTER if anything in the columns (all of them: None) cannot be decoded."""
    try:
        source = opened(file)
        wanted = [n for n in source.schema_arrow.names if columns is None or n in columns]
        for group in range(source.num_row_groups):
            for _ in row_group(source, group, columns=wanted, file=file):
                pass
    except DamageError as damage:
        yield lost(path, str(damage))


def lost(path: str, reason: str) -> pa.RecordBatch:
    """The row of FOOTER that says why a file cannot be read."""
    return _footer_row(path, columns=None, fault=reason)


def _footer_row(path: str, *, columns: str | None, fault: str | None) -> pa.RecordBatch:
    values = {"file": path, "columns": columns, "fault": fault}
    return pa.RecordBatch.from_pylist([values], schema=FOOTER)


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
