"""The files of a table of our own, one by one: what was read of one is true for ever.

Delta never changes a file. Of a big one a row group is read at a time, which has at most some
million rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.tables.table import Table

_BATCH_ROWS, _BATCHES_AHEAD = 65_536, 2


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table, or a part of one; `path` as the table's log has it."""

    path: str
    tables: DeltaRs
    table: Table
    whole: ds.Dataset
    fragment: Any  # of pyarrow, which has no types

    @property
    def num_rows(self) -> int:
        """How many rows it has, as its footer says."""
        with self.tables.answering(self.table):
            return int(self.fragment.count_rows())

    def row_groups(self, *, where: pc.Expression | None = None) -> list["TableFile"]:
        """Its parts, but for those of which the file's statistics say that no row meets `where`.

        Input:
            where: about times alone: texts that delta-rs merged are compared with no text.
        """
        with self.tables.answering(self.table):
            parts = self.fragment.split_by_row_group(filter=where, schema=self.whole.schema)
            return [replace(self, fragment=part) for part in parts]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of its rows, a part at a time."""
        whole = self.whole
        rows = ds.FileSystemDataset([self.fragment], whole.schema, whole.format, whole.filesystem)
        try:
            with self.tables.answering(self.table):
                yield from rows.to_batches(
                    columns=list(columns),
                    batch_size=_BATCH_ROWS,
                    batch_readahead=_BATCHES_AHEAD,
                )
        finally:
            pa.default_memory_pool().release_unused()  # a server would keep it all


def table_files(
    tables: DeltaRs, table: Table, *, where: pc.Expression | None = None
) -> list[TableFile]:
    """The files of a table as it is now, in no order; none when it was never written.

    Input:
        where: what is in none of a file's rows, as the table's log says: it is left out.
    """
    found = tables.dataset(table)
    if found is None:
        return []
    with tables.answering(table):
        parts = found.get_fragments(filter=where)
        return [TableFile(part.path, tables, table, found, part) for part in parts]
