"""The shape in which every format gives its traces: texts, for the ingest to judge."""

from collections.abc import Sequence
from itertools import accumulate, chain
from types import NoneType

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.model.trace_line import NUMBERS, PASSED_OVER, TEXTS, TIMES, Json, as_text

ATTRIBUTES = pa.map_(pa.string(), pa.string())

# `raw`: the line, where there is one. A time is a text or microseconds since the epoch.
LOOSE = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("raw", pa.string()), ("fault", pa.string())]
    + [(name, pa.string()) for name in TEXTS + NUMBERS]
    + [(f"{name}_text", pa.string()) for name in TIMES]
    + [(f"{name}_us", pa.int64()) for name in TIMES]
    + [("attributes", ATTRIBUTES), ("attributes_fault", pa.string())]
)


def damaged(
    path: str, reason: str, *, line: int | None = None, raw: str | None = None
) -> pa.RecordBatch:
    """The one row that says why a line, or without one the rest of a file, cannot be used."""
    values = dict.fromkeys(LOOSE.names) | {"file": path, "line": line, "raw": raw, "fault": reason}
    return pa.RecordBatch.from_pylist([values], schema=LOOSE)


def without_passed_over(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of LOOSE but for those that are left out like a blank line."""
    is_passed_over = pc.equal(batch["fault"], PASSED_OVER).fill_null(fill_value=False)
    return batch.filter(pc.invert(is_passed_over)) if is_passed_over.true_count else batch


def attribute_maps(attributes: Sequence[dict[str, Json] | None]) -> pa.Array:
    """The attributes of each row as a map, in the order in which they stand."""
    if attributes.count(None) == len(attributes):
        return pa.nulls(len(attributes), ATTRIBUTES)
    given = [each or {} for each in attributes]
    return pa.MapArray.from_arrays(
        pa.array(list(accumulate(map(len, given), initial=0)), pa.int32()),
        pa.array(list(chain.from_iterable(given)), pa.string()),
        text_array(list(chain.from_iterable(map(dict.values, given)))),
        mask=pa.array([each is None for each in attributes]) if None in attributes else None,
    )


def text_array(values: Sequence[Json]) -> pa.Array:
    """The values as texts; what is none, as compact JSON."""
    try:
        return pa.array(values, pa.string())
    except pa.ArrowTypeError:  # not all are texts
        kinds = set(map(type, values))
    if kinds <= {int, NoneType}:
        try:
            return pa.array(values, pa.int64()).cast(pa.string())
        except OverflowError:  # a whole number past 64 bits
            pass
    return pa.array([as_text(value) for value in values], pa.string())
