"""Traces in a file of JSON lines, as `LOOSE` says; runs in a Python worker, no Spark.

What a line means, `model/trace_line.py` says. The lines are read piece by piece: where the fields
are of the kinds that producers write, the columns are made at once; else each line is asked.
"""

import gc
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, repeat
from types import NoneType

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.files.lines import RAW_BYTES, Readable, line_groups
from shardaudit.adapters.files.loose_traces import (
    LOOSE,
    attribute_maps,
    damaged,
    text_array,
    without_passed_over,
)
from shardaudit.model.input_columns import MAX_MS, PARENT_IDS
from shardaudit.model.trace_line import (
    GAP,
    HEALTH,
    NO_OBJECT,
    NOT_JSON,
    NUMBERS,
    TEXTS,
    TIMES,
    Json,
    is_id,
    key_fault,
    may_be_rounded,
    read_object,
    trace_fields,
)

# So few that their objects stay in the processor's cache: with 10,000 it takes twice the time.
_PIECE_LINES = 500
_MOST_PIECES = 200  # of a batch: 4 MiB may be two million lines
# Of these kinds `text_array` makes what `trace_fields` makes, and nothing is refused.
_TEXT: frozenset[type] = frozenset({NoneType, str})
_WHOLE: frozenset[type] = _TEXT | {int}
_USUAL = dict.fromkeys(TEXTS + NUMBERS + TIMES, _WHOLE) | {
    "sequence_number": _TEXT,
    "sample_rate": _WHOLE | {float},
    "attributes": frozenset({NoneType, dict}),
}

_NO_LINES = "no line of the file is a JSON object; wanted JSON Lines in UTF-8"
_ONE_ARRAY = "the file is one JSON array; wanted JSON Lines, an object in each line"

_Objects = Sequence[dict[str, Json]]
_Shapes = set[tuple[str, ...]]  # the keys of objects, in their order
_Values = dict[str, Sequence[Json]]  # standard name -> one value per line


def all_json_batches(
    file: Readable, path: str, columns: Mapping[str, str], *, piece_lines: int = _PIECE_LINES
) -> Iterator[pa.RecordBatch]:
    """The lines of an open file that are not blank, numbered from 1, in batches of LOOSE.

    One more row says of a file of which no line is an object that it is damaged as a whole: it is
    text of another encoding, or of another program; but for a single line that broke off. An array
    with an element in each line has that row alone: its last element, which no comma follows, would
    look like the only trace.

    Input:
        columns: standard name -> key in a line's object, for every standard name.
        piece_lines: so many are read together.
    """
    is_begun, has_objects, is_torn = False, False, False
    for batch in _line_batches(file, path, columns, piece_lines):
        is_no_object = pc.starts_with(batch["fault"], NO_OBJECT).fill_null(fill_value=False)
        if not is_begun and _begins_array(batch["raw"][:2].to_pylist(), is_no_object[:2]):
            yield damaged(path, _ONE_ARRAY)
            return
        is_torn = not is_begun and _is_torn(batch)
        is_begun, has_objects = True, has_objects or is_no_object.false_count > 0
        yield batch
    if is_begun and not has_objects and not is_torn:
        yield damaged(path, _NO_LINES)


def _is_torn(batch: pa.RecordBatch) -> bool:
    """Whether it is one line alone that begins an object, and does not end it."""
    [raw, *others], [fault, *_] = (batch[name].to_pylist() for name in ("raw", "fault"))
    if others or fault != NOT_JSON or not str(raw).startswith('{"'):
        return False
    try:
        json.JSONDecoder().raw_decode(raw)  # and others behind it, without a line end between them
    except ValueError:
        return not str(raw).rstrip().endswith("}")
    return False


def _begins_array(first_two: Sequence[str | None], is_no_object: pa.Array) -> bool:
    """Whether the first lines are a bracket, and an element that goes on: by a comma, or lines."""
    bracket, *element = ((line or "").strip() for line in first_two)
    is_list = bracket == "[" and any(line.startswith("{") for line in element)
    return is_list and is_no_object.false_count == 0


def _line_batches(
    file: Readable, path: str, columns: Mapping[str, str], piece_lines: int
) -> Iterator[pa.RecordBatch]:
    for numbers, lines, fault in line_groups(file, path):
        if fault is not None:
            begin = lines[0][:RAW_BYTES].decode(errors="replace")
            yield damaged(path, fault, line=numbers[0], raw=begin or None)
        elif lines:
            parts = [slice(at, at + piece_lines) for at in range(0, len(lines), piece_lines)]
            for at in range(0, len(parts), _MOST_PIECES):
                some = parts[at : at + _MOST_PIECES]
                with _collector_paused():
                    pieces = [_batch(lines[part], numbers[part], path, columns) for part in some]
                yield pa.concat_batches(pieces)


def json_batches(
    file: Readable, path: str, columns: Mapping[str, str], *, piece_lines: int = _PIECE_LINES
) -> Iterator[pa.RecordBatch]:
    """The same without the lines in which a log tells of itself alone."""
    batches = all_json_batches(file, path, columns, piece_lines=piece_lines)
    return map(without_passed_over, batches)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Objects by the million, none of them in a cycle: looking for one took a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _batch(
    lines: Sequence[bytes], numbers: Sequence[int | None], path: str, columns: Mapping[str, str]
) -> pa.RecordBatch:
    values = _values(lines, columns)
    made = {
        "file": pa.repeat(pa.scalar(path, pa.string()), len(lines)),
        "line": _numbers(numbers),
        "raw": _raw(lines),
        "attributes": attribute_maps(values["attributes"]),
    }
    for name in (*TEXTS, *NUMBERS, "fault", "attributes_fault"):
        made[name] = text_array(values[name])
    for name in TIMES:
        made |= _times(name, values[name])
    return pa.RecordBatch.from_arrays([made[name] for name in LOOSE.names], schema=LOOSE)


def _values(lines: Sequence[bytes], columns: Mapping[str, str]) -> _Values:
    """For each line what `trace_fields` says, or what `text_array` makes the same of."""
    objects, shapes, faults = _objects(lines)
    values = _by_name(objects, shapes, columns)
    if _are_usual(values) and all({GAP, HEALTH}.isdisjoint(keys) for keys in shapes):
        return values | {"fault": faults, "attributes_fault": [None] * len(lines)}
    each = [trace_fields(o, line, columns) for o, line in zip(objects, lines, strict=True)]
    return {name: [fields.values[name] for fields in each] for name in TEXTS + NUMBERS + TIMES} | {
        "fault": [fault or fields.fault for fault, fields in zip(faults, each, strict=True)],
        "attributes": [fields.attributes for fields in each],
        "attributes_fault": [fields.attributes_fault for fields in each],
    }


def _objects(lines: Sequence[bytes]) -> tuple[_Objects, _Shapes, Sequence[str | None]]:
    """`read_object` of each line, and which shapes the objects have."""
    faults: list[str | None] = [None] * len(lines)
    try:
        objects = list(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        objects = list(map(_loaded, lines))
    if set(map(type, objects)) != {dict}:
        for at, value in enumerate(objects):
            if type(value) is not dict:
                objects[at], faults[at] = read_object(lines[at])
    shapes = set(map(tuple, objects))
    if reserved := {keys for keys in shapes if key_fault(keys)}:
        for at, value in enumerate(objects):
            if tuple(value) in reserved:
                objects[at], faults[at] = read_object(lines[at])
        shapes.add(())
    return objects, shapes, faults


def _loaded(line: bytes) -> Json:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _by_name(objects: _Objects, shapes: _Shapes, columns: Mapping[str, str]) -> _Values:
    if len(shapes) > 1:
        return {name: list(map(dict.get, objects, repeat(key))) for name, key in columns.items()}
    [keys] = shapes
    by_key = dict(zip(keys, zip(*map(dict.values, objects), strict=True), strict=True))
    return {name: by_key.get(key, [None] * len(objects)) for name, key in columns.items()}


def _are_usual(values: _Values) -> bool:
    if any(parents is not None for parents in values.get(PARENT_IDS, ())):
        return False
    if not all(kinds.issuperset(map(type, values[name])) for name, kinds in _USUAL.items()):
        return False
    ids = values["message_id"]
    if not (_TEXT.issuperset(map(type, ids)) or all(map(is_id, ids))):
        return False
    within = list(chain.from_iterable(map(dict.values, filter(None, values["attributes"]))))
    return _WHOLE.issuperset(map(type, within)) or not any(map(may_be_rounded, within))


def _times(name: str, values: Sequence[str | int | None]) -> dict[str, pa.Array]:
    if int not in set(map(type, values)):
        nothing = pa.nulls(len(values), pa.int64())
        return {f"{name}_text": pa.array(values, pa.string()), f"{name}_us": nothing}
    texts = [value if isinstance(value, str) else None for value in values]
    # What no calendar needs must not overflow; it is refused as it is.
    us = [min(max(ms, 0), MAX_MS) * 1000 if isinstance(ms, int) else None for ms in values]
    return {f"{name}_text": pa.array(texts, pa.string()), f"{name}_us": pa.array(us, pa.int64())}


def _numbers(numbers: Sequence[int | None]) -> pa.Array:
    if isinstance(numbers, range):
        return pa.arange(numbers.start, numbers.stop)
    return pa.array(numbers, pa.int64())


def _raw(lines: Sequence[bytes]) -> pa.Array:
    ends = array("i", accumulate(map(len, lines), initial=0))
    texts = pa.StringArray.from_buffers(
        len(lines), pa.py_buffer(ends), pa.py_buffer(b"".join(lines))
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:  # bytes that are not UTF-8
        return pa.array([line.decode(errors="replace") for line in lines], pa.string())
    return texts
