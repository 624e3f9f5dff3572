"""The rows of one file of a sink, by Arrow: those that count, each with its true number.

Runs in a Python worker, no Spark. The engines read ordinary files faster; this reads the others:
those with a deletion vector, or a name or types that the engines do not read alike.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from shardaudit.adapters.files.files import S3Access
from shardaudit.adapters.files.unpack import DamageError
from shardaudit.adapters.lake.deletion_vectors import deleted_rows
from shardaudit.adapters.lake.parquet_file import opened, row_group
from shardaudit.adapters.lake.sink_file import ARROW_TYPES, FILE, LINE, SinkFile


def sink_batches(
    file: pa.NativeFile, sink_file: SinkFile, access: S3Access
) -> Iterator[pa.RecordBatch]:
    """The rows as `SinkFile.kinds` says, then `file` and `line` (from 1).

    Raises:
        DamageError: file or vector cannot be read, or a column is not of a type that fits.
    """
    source = opened(file)
    vector = sink_file.vector
    gone = None if vector is None else deleted_rows(vector, sink_file.folder, access)
    if gone and gone.max() >= source.metadata.num_rows:
        raise DamageError("its deletion vector names rows that it does not have")
    names = _names(source, sink_file)
    wanted, first = sorted(set(names.values())), 0
    for group in range(source.num_row_groups):
        for batch in row_group(source, group, columns=wanted, file=file):
            standard = _standard(batch, sink_file, names, first)
            yield standard if gone is None else standard.filter(_kept(batch, gone, first))
            first += batch.num_rows


def _names(source: pq.ParquetFile, sink_file: SinkFile) -> dict[str, str]:
    """Standard name -> column of the file, for those that it has."""
    found = source.schema_arrow.names
    used = {standard: wanted.name for standard, wanted in sink_file.columns.items()}
    for name in sorted(set(used.values())):
        alike = [column for column in found if column.casefold() == name.casefold()]
        if found.count(name) > 1 or (alike and name not in alike):
            raise DamageError(f"it has not one column {name!r}, but {sorted(alike)}")
    return {standard: name for standard, name in used.items() if name in found}


def _standard(
    batch: pa.RecordBatch, sink_file: SinkFile, names: Mapping[str, str], first: int
) -> pa.RecordBatch:
    rows = batch.num_rows
    arrays: dict[str, pa.Array] = {}
    for standard, kind in sink_file.kinds:
        wanted = ARROW_TYPES[kind]
        constant = sink_file.constants.get(standard)
        if constant is not None:
            arrays[standard] = pa.repeat(pa.scalar(constant.value, wanted), rows)
        elif standard in names:
            column = batch.column(batch.schema.get_field_index(names[standard]))
            arrays[standard] = _typed(column, wanted, names[standard])
        else:
            arrays[standard] = pa.nulls(rows, wanted)
    arrays[FILE] = pa.repeat(pa.scalar(sink_file.path), rows)
    arrays[LINE] = pa.array(np.arange(first + 1, first + rows + 1))
    return pa.RecordBatch.from_pydict(arrays)


def _typed(column: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """The column in the type that it should have; a time without a zone is taken as UTC."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _fits(column.type, wanted):
        raise DamageError(f"its column {name!r} has type {column.type}; wanted {wanted}")
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise DamageError(f"its column {name!r}: {error}") from error


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    kind = pa.types
    if kind.is_null(found):
        return True
    if kind.is_string(wanted):
        texts = (kind.is_string, kind.is_large_string, kind.is_string_view)
        return any(is_kind(found) for is_kind in (*texts, kind.is_binary, kind.is_large_binary))
    if kind.is_integer(wanted):
        return bool(kind.is_signed_integer(found))
    return bool(kind.is_timestamp(found)) and found.unit != "ns"


def _kept(batch: pa.RecordBatch, gone: BitMap64, first: int) -> pa.Array:
    kept = np.ones(batch.num_rows, dtype=bool)
    deleted = gone & BitMap64(range(first, first + batch.num_rows))
    kept[[row - first for row in deleted]] = False
    return pa.array(kept)
