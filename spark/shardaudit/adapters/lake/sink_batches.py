"""The rows of one file of a sink, by Arrow: those that are not deleted, with their true numbers.

They are decoded here and not by an engine, so that a file can be read with the vector of any
commit, also when the table has another one by now.
Source: Delta's protocol, "Deletion Vectors" and "Deletion Vector Format".

Runs in a Python worker, no Spark. The engines read ordinary files faster; this reads the others:
those with a deletion vector, or a name or types that the engines do not read alike.
"""

import base64
import uuid
import zlib
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from shardaudit.adapters.files.files import S3Access, open_file
from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.lake.parquet_file import open_parquet, row_group
from shardaudit.adapters.lake.sink_file import ARROW_TYPES, FILE, LINE, SinkFile
from shardaudit.model.source import DeletionVector

_MAGIC = (1681511377).to_bytes(4, "little")
_UUID_CHARS = 20  # 16 bytes in base 85
_LENGTH_BYTES = _CHECKSUM_BYTES = 4

# Python has RFC 1924's alphabet; Delta writes ZeroMQ's.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


def located(folder: str, path: str) -> str:
    """What opens a file that a Delta log names: a URI, absolute or within the table's folder."""
    decoded = unquote(path)
    if decoded.startswith(("s3://", "s3n://")):
        return f"s3a://{decoded.partition('://')[2]}"
    if decoded.startswith("file:"):
        return f"/{decoded.removeprefix('file:').lstrip('/')}"
    is_absolute = decoded.startswith("/") or "://" in decoded
    return decoded if is_absolute else f"{folder}/{decoded}"


def deleted_rows(vector: DeletionVector, folder: str, access: S3Access) -> BitMap64:
    """The numbers of the deleted rows, from 0.

    Input:
        folder: of the table.

    Raises:
        DamageError: the vector is not there, or is not what the log says.
        StorageError: it could not be reached.
    """
    path = vector_path(vector, folder)
    if path is None:
        packed = _decoded(vector.place)[: vector.size_bytes]
    else:
        packed = _stored(path, vector, access)
    if packed[:4] != _MAGIC:
        raise DamageError(f"its deletion vector begins with {packed[:4].hex()}: an unknown format")
    try:
        rows = BitMap64.deserialize(packed[4:])
    except ValueError as error:
        raise DamageError(f"its deletion vector cannot be decoded: {error}") from error
    if len(rows) != vector.cardinality:
        raise DamageError(
            f"its deletion vector has {len(rows)} rows, the log says {vector.cardinality}"
        )
    return rows


def vector_path(vector: DeletionVector, folder: str) -> str | None:
    """The file that the vector is in; None when the log itself holds it.

    Raises:
        DamageError: nothing says where it is.
    """
    match vector.storage:
        case "i":
            return None
        case "p":
            return located(folder, vector.place)
        case "u" if len(vector.place) >= _UUID_CHARS:
            prefix, name = vector.place[:-_UUID_CHARS], vector.place[-_UUID_CHARS:]
            file = f"deletion_vector_{uuid.UUID(bytes=_decoded(name))}.bin"
            return "/".join(filter(None, (folder, prefix, file)))
    raise DamageError(f"its deletion vector is stored in an unknown way: {vector.storage!r}")


def _stored(path: str, vector: DeletionVector, access: S3Access) -> bytes:
    """The vector out of its file: behind its length, before its checksum."""
    size = vector.size_bytes
    try:
        with open_file(path, access) as file:
            file.seek(vector.offset or 0)
            stored = bytes(file.read(_LENGTH_BYTES + size + _CHECKSUM_BYTES))
    except FileNotFoundError as error:
        raise DamageError(f"its deletion vector is gone: {path}") from error
    packed = stored[_LENGTH_BYTES : _LENGTH_BYTES + size]
    is_whole = int.from_bytes(stored[:_LENGTH_BYTES], "big") == size == len(packed)
    if not is_whole or int.from_bytes(stored[-_CHECKSUM_BYTES:], "big") != zlib.crc32(packed):
        raise DamageError(f"its deletion vector is not what was written: {path}")
    return packed


def _decoded(text: str) -> bytes:
    try:
        return base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise DamageError(f"its deletion vector is not base 85: {text[:40]!r}") from error


def sink_batches(
    file: pa.NativeFile, sink_file: SinkFile, access: S3Access
) -> Iterator[pa.RecordBatch]:
    """The rows as `SinkFile.kinds` says, then `file` and `line` (from 1).

    Raises:
        DamageError: file or vector cannot be read, or a column is not of a type that fits.
    """
    source = open_parquet(file)
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
