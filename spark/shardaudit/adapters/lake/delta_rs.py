"""The door to the warehouse without Spark: delta-rs, for the rows that one process can hold.

A Spark job takes a second to write one row, delta-rs takes milliseconds.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from shardaudit.adapters.aws.s3 import delta_rs_options
from shardaudit.adapters.files.files import s3_access
from shardaudit.adapters.lake.broken_tables import warehouse_errors
from shardaudit.adapters.lake.delta_log import log_start
from shardaudit.adapters.lake.delta_merge import merge_rows, same_key, since
from shardaudit.adapters.lake.delta_schema import (
    CONFIGURATION,
    add_columns,
    check_version,
    counts_by_value,
    crowded,
    delta_schema,
    fence,
    fenced_at,
    files_among,
    fitted,
    in_utc,
    is_within,
    known_version,
    near,
    repartition_by_day,
    seen_once,
    stamp,
    with_all_columns,
)
from shardaudit.adapters.pulse import call_ended
from shardaudit.model.config.parts import Aws
from shardaudit.model.tables.table import Table

Row = dict[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says

# In flight while a big table is read in batches: more would be faster, and fill the memory.
_BATCH_ROWS, _BATCHES_AHEAD, _FILES_AHEAD = 65_536, 2, 1
_FEW_FILES = 100


@dataclass(frozen=True, slots=True)
class DeltaRs:
    """The tables under one path, `s3a://…` or a folder, all of this version.

    `is_migrating`: or of an earlier one. A table that was opened stays open: from then on only what
    is new in its log is read, which on S3 is one request and not one per commit.
    `check` is called before a commit, behind the reading of what that is based on: it raises when
    the lock is lost. Whoever takes it after that fences the table, and the commit fails.
    """

    path: str
    aws: Aws
    is_migrating: bool = False
    check: Callable[[], None] = lambda: None
    _tables: dict[str, DeltaTable] = field(default_factory=dict, repr=False, compare=False)
    _read: dict[str, tuple[int, pa.Table]] = field(default_factory=dict, repr=False, compare=False)

    def dataset(self, table: Table) -> ds.Dataset | None:
        """What a table holds, to be filtered; None when it was never written."""
        return seen_once(self._address(table), table, lambda: self._found(table))

    def rows(self, table: Table, *, where: pc.Expression) -> list[Row]:
        """The rows that meet a condition, in no order; none when the table was never written.

        Times are in UTC, as Python itself writes it.
        """
        found = self.columns(table, names=table.names, where=where)
        return [] if found is None else [in_utc(row) for row in found.to_pylist()]

    def few(self, table: Table, *, most: int) -> pa.Table | None:
        """All rows of a table that has at most so many, in few files; None of another one."""
        if (found := self._found(table)) is None:
            return None
        with self.answering(table):
            if not is_within(found, rows=most, files=_FEW_FILES):
                return None
            version = found.version()
            if self._read.get(table.name, (None,))[0] != version:  # each file costs milliseconds
                rows = with_all_columns(found.to_pyarrow_dataset(), table).to_table()
                self._read[table.name] = version, rows
            return self._read[table.name][1]

    def is_within(self, table: Table, *, rows: int) -> bool:
        """Whether a table, which there is, has at most so many rows, as its log says."""
        with self.answering(table):
            return is_within(self._table(table), rows=rows)

    def size_bytes(self, table: Table) -> int:
        """The size of a table's files, as its log says; 0 when it was never written."""
        return sum(file["size_bytes"] for file in self.files(table))

    def files(self, table: Table, *, bounds: Collection[str] = ()) -> list[Row]:
        """Of each file of a table, as its log says, `path`, `size_bytes` and its `partition.…`.

        `bounds`: columns of which it says `min.…` and `max.…`, too, where it knows them.
        """
        if (found := self._found(table)) is None:
            return []
        wanted = {"path", "size_bytes", *(f"partition.{name}" for name in table.partitions)}
        wanted |= {f"{of}.{name}" for name in bounds for of in ("min", "max")}
        with self.answering(table):
            told = pa.table(found.get_add_actions(flatten=True))
            return [*told.select([n for n in told.column_names if n in wanted]).to_pylist()]

    def columns(
        self, table: Table, *, names: Sequence[str], where: pc.Expression
    ) -> pa.Table | None:
        """Some columns of the rows that meet a condition, those that it is about among them."""
        if (found := self.dataset(table)) is None:
            return None
        with self.answering(table):
            return near(found, where).to_table(columns=list(names)).filter(where)

    def counts(
        self, table: Table, *, by: Sequence[str], having: Mapping[str, str]
    ) -> Counter[tuple[Any, ...]]:
        """How many rows have which values of some columns, of those whose others have these."""
        if (found := self.dataset(table)) is None:
            return Counter()
        with self.answering(table):
            return counts_by_value(found, by=by, having=having)

    def batches(
        self,
        table: Table,
        *,
        columns: Sequence[str],
        where: pc.Expression,
        dictionaries: Collection[str] = (),
        among: Mapping[str, Collection[str]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows that meet a condition, a part at a time; some texts as dictionaries.

        `among`: by partition column the values that it asks for; files of others cost nothing.
        Only of tables into which nothing is merged: see `near` for why.
        """
        if (found := self._found(table)) is None:
            return
        with self.answering(table):
            rows = files_among(found, table, among or {}, dictionaries=dictionaries)
        yield from self._parts(rows, table, columns=columns, where=where)

    def found(self, table: Table, *, where: pc.Expression) -> Iterator[Row]:
        """`rows` of a table that is too big to be read whole."""
        if (found := self.dataset(table)) is None:
            return
        with self.answering(table):
            files = near(found, where)
        for batch in self._parts(files, table, columns=table.names):
            yield from map(in_utc, batch.filter(where).to_pylist())

    def _parts(
        self,
        rows: ds.Dataset,
        table: Table,
        *,
        columns: Sequence[str],
        where: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of what is read, few files at a time."""
        try:
            with self.answering(table):
                yield from rows.to_batches(
                    columns=list(columns),
                    filter=where,
                    batch_size=_BATCH_ROWS,
                    batch_readahead=_BATCHES_AHEAD,
                    fragment_readahead=_FILES_AHEAD,
                )
        finally:
            pa.default_memory_pool().release_unused()  # a server would keep it all

    def upsert(self, rows: Sequence[Mapping[str, object]], table: Table) -> None:
        """Updates the rows whose key is there, inserts the others. What a row lacks is NULL."""
        values = [{name: row.get(name) for name in table.names} for row in rows]
        with self._committing(table) as target:
            fresh = pa.Table.from_pylist(values, pa.schema(target.schema().to_arrow()))
            same = [*same_key(table), *since(values, table)]
            merge_rows(fresh, target, same, check=self.check)

    def merge(self, rows: pa.Table, table: Table) -> None:
        """`upsert` of rows that are columns already."""
        with self._committing(table) as target:
            merge_rows(fitted(rows, target), target, same_key(table), check=self.check)

    def append(self, rows: pa.Table, table: Table) -> None:
        """Adds rows; no commit where there is none."""
        with self._committing(table) as target:
            if rows.num_rows:
                write_deltalake(target, fitted(rows, target), mode="append")

    def replace(self, rows: pa.Table, table: Table, *, where: str) -> None:
        """Puts rows in the place of all that meet a condition (of delta-rs' SQL), in one commit."""
        with self._committing(table) as target:
            write_deltalake(target, fitted(rows, target), mode="overwrite", predicate=where)

    def add(self, files: Sequence[AddAction], table: Table) -> None:
        """Takes files that lie in the table's folder into the table, in one commit."""
        with self._committing(table) as found:
            found.create_write_transaction([*files], "append", found.schema(), [*table.partitions])

    def delete(self, table: Table, *, where: str) -> int:
        """Deletes the rows that meet a condition (of delta-rs' SQL); says how many."""
        if self._found(table) is None:
            self.check()
            return 0
        with self._committing(table) as found:
            return int(found.delete(where)["num_deleted_rows"])

    def create(self, table: Table) -> None:
        """Makes the table, empty, when there is none; one that lacks columns gets them.

        Raises:
            WarehouseVersionError: it is there, of another version.
        """
        found = self._found(table)
        with self.answering(table):
            if found is not None:
                known_version(found, table)
                add_columns(found, table)
                return
            DeltaTable.create(
                self._address(table),
                delta_schema(table),
                mode="ignore",
                partition_by=list(table.partitions),
                configuration=CONFIGURATION,
                storage_options=delta_rs_options(self.aws),
                raise_if_key_not_exists=False,
            )

    def version(self, table: Table) -> int | None:
        """The version of the table; None when it was never written.

        Raises:
            WarehouseVersionError: it is not one of those that are read here.
        """
        return None if (found := self._found(table)) is None else known_version(found, table)

    def add_columns(self, table: Table) -> list[str]:
        """Adds the columns that the table lacks, whatever its version; returns their names."""
        with self.answering(table):
            return add_columns(self._table(table), table)

    def repartition_by_day(self, table: Table, *, day: str, of: str) -> None:
        """As `delta_schema.repartition_by_day`."""
        with self.answering(table):
            repartition_by_day(self._table(table), table, day=day, of=of)

    def stamp(self, table: Table, version: int) -> None:
        """Says of the table which version it is of."""
        with self.answering(table):
            stamp(self._table(table), version)

    def fence(self, table: Table, generation: int) -> None:
        """Makes every commit fail that was begun before: of who lost the lock; no row changes."""
        with suppress(TableNotFoundError), self.answering(table):
            found = self._table(table)
            # A machine that died may have left an empty commit, which delta-rs reads as nothing.
            log_start(self._place(table), found.version(), s3_access(self.aws))
            fence(found, generation)

    def fenced_at(self, table: Table) -> datetime | None:
        """When a lock of it was taken over from a run that had died; None: never."""
        return fenced_at(self._found(table))

    def compact(self, table: Table, *, above: int, size: int | None = None) -> tuple[int, int]:
        """Rewrites partitions of more than `above` files, but for large ones (`size` bytes)."""
        removed = added = 0
        for partition in crowded(self.files(table), table, above=above):
            with self._committing(table) as found:
                only = [(name, "=", value) for name, value in partition.items()] or None
                if table.clustered:
                    done = found.optimize.z_order([*table.clustered], partition_filters=only)
                else:
                    done = found.optimize.compact(partition_filters=only, target_size=size)
            removed, added = removed + done["numFilesRemoved"], added + done["numFilesAdded"]
        return removed, added

    def vacuum(self, table: Table) -> int:
        """Deletes the files that have not been part of the table for a week; says how many."""
        found = self._found(table)
        with self.answering(table):
            return 0 if found is None else len(found.vacuum(dry_run=False))

    def _found(self, table: Table) -> DeltaTable | None:
        try:
            with self.answering(table):
                found = self._table(table)
        except TableNotFoundError:
            return None
        (known_version if self.is_migrating else check_version)(found, table)
        return found

    def _table(self, table: Table) -> DeltaTable:
        """The table as it is now."""
        if (known := self._tables.get(table.name)) is not None:
            known.update_incremental()
            return known
        found = DeltaTable(self._address(table), storage_options=delta_rs_options(self.aws))
        return self._tables.setdefault(table.name, found)

    @contextmanager
    def _committing(self, table: Table) -> Iterator[DeltaTable]:
        """The table as it is now, to be changed in one commit.

        Raises:
            LockLostError: `check` raised it, before the commit or for the reason that it failed.
        """
        with self.answering(table):
            target = self._table(table)
            self.check()
            try:
                yield target
            except DeltaError:
                self.check()
                raise

    def _place(self, table: Table) -> str:
        return f"{self.path.rstrip('/')}/{table.name}"

    def _address(self, table: Table) -> str:
        return self._place(table).replace("s3a://", "s3://", 1)

    @contextmanager
    def answering(self, table: Table) -> Iterator[None]:
        """Turns what is said against a table's reading, or writing, into our errors.

        Raises:
            WarehouseUnreadableError: a later try may work.
            BrokenTableError, LastingError: none will.
        """
        with warehouse_errors(self._place(table), self.aws):
            yield
            call_ended()
