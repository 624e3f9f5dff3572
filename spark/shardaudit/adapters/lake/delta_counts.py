"""Rows of a table counted by their values while they are read: the table may be of any size."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds


def counted(
    rows: ds.Dataset, *, by: Sequence[str], having: Mapping[str, str]
) -> Counter[tuple[Any, ...]]:  # Any: a column's type is what model/tables/audit_tables.py says
    """How many rows have which values of the columns `by`: those that have the texts `having`."""
    where = pc.scalar(True)
    for name, text in having.items():
        where = where & (pc.field(name) == text)
    # The condition chooses files, then rows that were read: see `DeltaRs.columns`.
    files = list(rows.get_fragments(filter=where))
    near = ds.FileSystemDataset(files, rows.schema, rows.format, rows.filesystem)
    found: Counter[tuple[Any, ...]] = Counter()
    for batch in near.to_batches(columns=list({*by, *having}), batch_readahead=2):
        chosen = pa.Table.from_batches([batch]).filter(where)
        groups = chosen.group_by(list(by)).aggregate([([], "count_all")])
        for row in map(in_utc, groups.to_pylist()):
            found[tuple(row[name] for name in by)] += row["count_all"]
    return found


def in_utc(row: dict[str, Any]) -> dict[str, Any]:
    """The row, its times in UTC as Python itself writes it."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
