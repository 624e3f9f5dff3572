"""Traces in Parquet files: read row group by row group, or kept as they came.

The columns come out as `LOOSE` says, whatever type the producer gave them. A column of a type that
cannot be what it should be sets the whole file aside: all its rows would be wrong in the same way.

Both engines read them by themselves, and alike. Whatever is not plain in a file's columns is judged
row by row instead and put into a table (`adapters/files/parquet_traces.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.files.loose_traces import ATTRIBUTES, LOOSE, attribute_maps, damaged
from shardaudit.adapters.lake.parquet_file import (
    Column,
    Footer,
    open_parquet,
    ready_file,
    row_group,
)
from shardaudit.adapters.lake.sink_file import SinkFile, WantedColumn
from shardaudit.model.input_columns import MAX_MS, PARENT_IDS
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.model.tables.table import INTERNAL_PREFIX
from shardaudit.model.trace_line import TEXTS, TIMES, attributes_in, with_parents

_INT = frozenset(["byte", "short", "integer"])
_KINDS = (
    dict.fromkeys(TEXTS, frozenset(["string"]))
    | dict.fromkeys(TIMES, frozenset(["timestamp", "timestamp_ntz"]))
    | {"attempt": _INT, "session_seq": _INT | {"long"}}
)
_NEEDED = ("message_id", "shard_id", "sent_at")


def parquet_batches(
    file: pa.NativeFile, path: str, columns: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The rows of an open Parquet file, numbered from 1, in batches of LOOSE.

    Input:
        columns: standard name -> column of the file, for every standard name.
    """
    row = 0
    try:
        for batch in _batches(file, columns):
            yield _loose(batch, path=path, first_row=row + 1, columns=columns)
            row += batch.num_rows
    except DamageError as damage:
        yield damaged(path, str(damage))


def _batches(file: pa.NativeFile, columns: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    source = open_parquet(file)
    names = source.schema_arrow.names
    if reserved := [name for name in names if name.startswith(INTERNAL_PREFIX)]:
        raise DamageError(f"column {reserved[0]} begins with {INTERNAL_PREFIX}, which is reserved")
    for standard in _NEEDED:
        if columns[standard] not in names:
            raise DamageError(f"no column {columns[standard]!r} for {standard}; found {names}")
    wanted = sorted(set(columns.values()) & set(names))
    if doubled := [name for name in wanted if names.count(name) > 1]:
        raise DamageError(f"it has not one column {doubled[0]!r}, but {names.count(doubled[0])}")
    for group in range(source.num_row_groups):
        yield from row_group(source, group, columns=wanted, file=file)


def _loose(
    batch: pa.RecordBatch, *, path: str, first_row: int, columns: Mapping[str, str]
) -> pa.RecordBatch:
    rows = batch.num_rows
    made: dict[str, pa.Array] = {
        "file": pa.repeat(pa.scalar(path, pa.string()), rows),
        "line": pa.array(range(first_row, first_row + rows), pa.int64()),
    }
    for standard, name in columns.items():
        if name in batch.schema.names and standard != PARENT_IDS:
            made |= _standard(standard, batch.column(name))
    if columns.get(PARENT_IDS) in batch.schema.names:
        made |= _with_parents(made, batch.column(columns[PARENT_IDS]))
    arrays = [made.get(field.name, pa.nulls(rows, field.type)) for field in LOOSE]
    return pa.RecordBatch.from_arrays(arrays, schema=LOOSE)


def _standard(standard: str, column: pa.Array) -> dict[str, pa.Array]:
    """The columns of LOOSE that one column of the file becomes."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return {}
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_text = is_text or pa.types.is_string_view(kind) or pa.types.is_binary(kind)
    if standard in TIMES:
        return (
            {f"{standard}_text": column.cast(pa.string())} if is_text else _time(standard, column)
        )
    if standard == "attributes":
        return _attributes_of(column.cast(pa.string())) if is_text else _attributes(column)
    is_number = pa.types.is_integer(kind) or (
        pa.types.is_floating(kind) and standard == "sample_rate"
    )
    if is_text or (is_number and standard != "sequence_number"):
        return {standard: column.cast(pa.string())}
    raise _wrong_type(standard, kind, "text")


def _time(standard: str, column: pa.Array) -> dict[str, pa.Array]:
    """A time column as microseconds; a timestamp without a zone is taken as UTC."""
    if pa.types.is_timestamp(column.type):
        precise = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
        return {f"{standard}_us": precise.cast(pa.int64())}
    if pa.types.is_integer(column.type):
        ms = column.cast(pa.int64(), safe=False)
        possible = pc.and_(pc.less_equal(ms, MAX_MS), pc.greater_equal(ms, 0))
        return {f"{standard}_us": pc.multiply(pc.if_else(possible, ms, 0), 1000)}
    raise _wrong_type(standard, column.type, "a timestamp, ISO 8601 text or epoch milliseconds")


def _attributes_of(texts: pa.Array) -> dict[str, pa.Array]:
    """The attributes where each row holds them as a text."""
    read = [(None, None) if text is None else attributes_in(text) for text in texts.to_pylist()]
    faults = pa.array([fault for _, fault in read], pa.string())
    return {"attributes": attribute_maps([each for each, _ in read]), "attributes_fault": faults}


def _attributes(column: pa.Array) -> dict[str, pa.Array]:
    try:
        if pa.types.is_struct(column.type):
            column = _struct_as_map(column)
        return {"attributes": _with_single_keys(column.cast(ATTRIBUTES))}
    except pa.ArrowException as error:
        raise _wrong_type("attributes", column.type, "a map of texts") from error


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def _with_parents(made: Mapping[str, pa.Array], parents: pa.Array) -> dict[str, pa.Array]:
    """The attributes of each row with what it was made from."""
    try:
        is_list = any(is_kind(parents.type) for is_kind in _LISTS)
        parents = parents.cast(pa.list_(pa.string()) if is_list else pa.string())
    except pa.ArrowException as error:
        raise _wrong_type(PARENT_IDS, parents.type, "a text, or a list of texts") from error
    nothing = [None] * len(parents)
    ids, locations, attributes, faults = (
        made[name].to_pylist() if name in made else nothing
        for name in ("message_id", "location", "attributes", "attributes_fault")
    )
    rows = zip(ids, locations, attributes, parents.to_pylist(), strict=True)
    read = [
        with_parents(None if held is None else dict(held), of, message_id=one, location=at)
        for one, at, held, of in rows
    ]
    said = [fault or found for fault, (_, found) in zip(faults, read, strict=True)]
    texts = attribute_maps([each for each, _ in read])
    return {"attributes": texts, "attributes_fault": pa.array(said, pa.string())}


def _with_single_keys(maps: pa.MapArray) -> pa.Array:
    """The maps; of a key that is in one twice, the last value, as in JSON. No engine takes both."""
    lists = pa.ListArray.from_arrays(maps.offsets, maps.keys)
    keys = pa.table({"row": pc.list_parent_indices(lists), "key": pc.list_flatten(lists)})
    if keys.group_by(["row", "key"]).aggregate([]).num_rows == keys.num_rows:
        return maps
    return attribute_maps([None if each is None else dict(each) for each in maps.to_pylist()])


def _struct_as_map(column: pa.Array) -> pa.Array:
    """One entry per field and row, in the fields' order."""
    rows, names = len(column), [field.name for field in column.type]
    texts = pa.concat_arrays([column.field(name).cast(pa.string()) for name in names])
    by_row = pa.array([f * rows + row for row in range(rows) for f in range(len(names))])
    offsets = pa.array(range(0, rows * len(names) + 1, max(1, len(names))), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(names * rows, pa.string()), texts.take(by_row))


def _wrong_type(standard: str, found: pa.DataType, wanted: str) -> DamageError:
    return DamageError(f"the column for {standard} has type {found}; wanted {wanted}")


def kept_files(
    footers: Mapping[SourceFile, Footer], columns: Mapping[str, str], folder: str
) -> KeptFiles | None:
    """How the files are read as they are; None when one of them cannot be.

    Input:
        footers: by the files' paths below `folder`, in which they are or will be.
        columns: standard name -> column in the files, for every standard name.
    """
    read: dict[str, tuple[str, str]] = {}
    spans = []
    for footer in footers.values():
        found = _plain_columns(footer, columns)
        span = found["sent_at"].span if found else None
        if span is None:
            return None
        spans.append(span)
        for standard, column in found.items():
            if read.setdefault(standard, (column.name, column.kind)) != (column.name, column.kind):
                return None
    kept = KeptFiles(read, tuple(footers), tuple(spans))
    ready = map(ready_file, readable(kept, folder), footers.values())
    return kept if all(each.is_plain for each in ready) else None


def readable(kept: KeptFiles, folder: str) -> list[SinkFile]:
    """The files as the reader of files takes them; folder: the one that they are below."""
    wanted = {standard: WantedColumn(name, kind) for standard, (name, kind) in kept.columns.items()}
    files = (replace(file, path=f"{folder}/{file.path}") for file in kept.files)
    return [SinkFile(file, file.path, folder, wanted) for file in files]


def _plain_columns(footer: Footer, columns: Mapping[str, str]) -> dict[str, Column]:
    """The columns that are read, by their standard names; none when the file is not plain."""
    in_file = {column.name: column for column in footer.columns}
    given = {std: in_file[name] for std, name in columns.items() if name in in_file}
    is_plain = (
        footer.fault is None
        and all(standard in given for standard in _NEEDED)
        and not any(name.startswith(INTERNAL_PREFIX) for name in in_file)
        and all(column.kind in _KINDS.get(standard, ()) for standard, column in given.items())
    )
    return given if is_plain else {}
