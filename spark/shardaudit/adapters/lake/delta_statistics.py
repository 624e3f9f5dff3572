"""Which files of a Delta table may hold a time, by the statistics that its log keeps of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

Span = tuple[datetime, datetime]

_CUT = timedelta(milliseconds=1)  # Spark cuts the statistics of times to it
_INSTANT = pa.timestamp("us", "UTC")


def may_hold(actions: pa.Table, column: str, spans: Sequence[Span]) -> pa.Array:
    """Whether a file may hold a value of a column in a span, for each file.

    Input:
        actions: the files as `DeltaTable.get_add_actions` gives them; column: its physical name;
        spans: half-open. Where the log says nothing of a column, every file may hold it.
    """
    least, most = (_edges(actions, name, column) for name in ("min", "max"))
    if least is None or most is None:
        return pa.repeat(pa.scalar(True), actions.num_rows)
    inside = [
        pc.and_(
            pc.less(least, pa.scalar(end, _INSTANT)),
            pc.greater(most, pa.scalar(start - _CUT, _INSTANT)),
        )
        for start, end in spans
    ]
    found = reduce(pc.or_, inside, pa.repeat(pa.scalar(False), actions.num_rows))
    return pc.fill_null(found, True)


def may_lack(actions: pa.Table, column: str) -> pa.Array:
    """Whether a row of a file may have NULL in a column, for each file.

    Input:
        actions: as for `may_hold`; column: its physical name. Where the log says nothing, it may.
    """
    found = actions.column("null_count").combine_chunks() if _has_nulls(actions) else None
    if found is None or found.type.get_field_index(column) < 0:
        return pa.repeat(pa.scalar(True), actions.num_rows)
    nulls = pc.struct_field(found, [found.type.get_field_index(column)])
    return pc.fill_null(pc.not_equal(nulls, 0), True)


def _has_nulls(actions: pa.Table) -> bool:
    return "null_count" in actions.column_names


def _edges(actions: pa.Table, name: str, column: str) -> pa.Array | None:
    """The least or greatest times of the files; a time without a zone is one in UTC."""
    if name not in actions.column_names:
        return None
    found = actions.column(name).combine_chunks()
    index = found.type.get_field_index(column)
    if index < 0 or not pa.types.is_timestamp(found.type.field(index).type):
        return None
    zone = found.type.field(index).type.tz
    times = pc.struct_field(found, [index]).cast(pa.timestamp("us", zone))
    return times.cast(pa.int64()).cast(_INSTANT)
