"""The warehouse: the only writer of our own tables.

Frames go through the engine, few rows through the driver and delta-rs: a job of Spark's that writes
one row takes half a second, delta-rs takes milliseconds. Every write selects a table's columns in
order, casts them to its types, and is compared with the table first. One driver writes a warehouse
at a time (`store/lock.py`); each write asks the lock first, and whoever took that over meanwhile
has seen to it that the write fails.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from shardaudit.adapters.engine.held import FEW_ROWS, gathered, given_rows
from shardaudit.adapters.engine.written import write_table_files
from shardaudit.adapters.files.files import FileStore, S3Access, at_once, delete_folder, s3_access
from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import has_values
from shardaudit.columns.sql_name import Having, has_one_of, quoted
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import FinalError
from shardaudit.model.source import SourceFile
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.model.tables.table import Table

_SOURCE = "_sa_merged"
# What the driver writes: Spark's first append takes it ten seconds, whatever it is. No row of such
# tables is longer than some kB.
_BY_DRIVER, _MERGED_INTO = 50_000, 200_000


class TableSchemaError(FinalError, TypeError):
    """Rows do not have the columns and types of the table that they are for."""

    def __init__(self, table: Table, found: str) -> None:
        super().__init__(f"rows for table {table.name}: found {found}, wanted struct<{table.ddl}>")


class Warehouse:
    """Our tables under one path. `check` is called before each write: it raises without a lock.

    `engine`: the name and version of what runs the session.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        *,
        aws: Aws | None = None,
        check: Callable[[], None] = lambda: None,
        engine: str = "unknown",
    ) -> None:
        self.spark, self._path, self.check = spark, path.rstrip("/"), check
        self.engine = engine
        self._small = DeltaRs(self._path, aws or Aws(), check=check)
        self._created: set[str] = set()

    @property
    def access(self) -> S3Access:
        """How the files of inputs are reached where they lie in S3."""
        return s3_access(self._small.aws)

    @property
    def reader(self) -> DeltaRs:
        """The same tables, to be read without an engine."""
        return self._small

    def locked_by(self, check: Callable[[], None]) -> "Warehouse":
        """The same warehouse, whose writes ask another lock."""
        return Warehouse(
            self.spark, self._path, aws=self._small.aws, check=check, engine=self.engine
        )

    def read(self, table: Table) -> DataFrame:
        """The rows of a table, as they are now; none when it was never written."""
        self._open(table)
        few = self._small.few(table, most=FEW_ROWS)
        return self._loaded(table) if few is None else given_rows(self.spark, few, table.ddl)

    def rows(self, table: Table, *, where: pc.Expression) -> list[Row]:
        """Those few rows of a table that meet a condition, in no order."""
        self._open(table)
        return self._small.rows(table, where=where)

    def counts(
        self, table: Table, *, by: Sequence[str], having: Mapping[str, str]
    ) -> Counter[tuple[Any, ...]]:
        """How many rows have which values of some columns, of those whose others have these."""
        self._open(table)
        return self._small.counts(table, by=by, having=having)

    def columns(
        self, table: Table, *, names: Sequence[str], where: pc.Expression
    ) -> pa.Table | None:
        """Some columns of such rows, those that the condition is about among them; None: no row."""
        self._open(table)
        return self._small.columns(table, names=names, where=where)

    def files(self, table: Table, *, bounds: Collection[str] = ()) -> list[Row]:
        """As `DeltaRs.files`."""
        return self._small.files(table, bounds=bounds)

    def upsert(self, rows: Sequence[Mapping[str, object]], table: Table) -> None:
        """`merge` for a few rows that the driver holds; a column that a row lacks is NULL."""
        self._open(table)
        self._small.upsert(rows, table)

    def append(
        self, rows: DataFrame, table: Table, *, most: int | None = None, retried: str | None = None
    ) -> None:
        """Adds rows, unless those of the batch that is `retried` (its id) are there.

        A write that was never answered may have landed.

        Input:
            most: how many rows there are at most, where that is known.
        """
        place, shaped = self._open(table), _shaped(rows, table)
        if retried and self._has_rows_of(retried, table):
            self.check()
            return
        if _are_few(most):
            self._small.append(_gathered(shaped, table), table)
            return
        _check_schema(shaped.schema, table)
        files = write_table_files(shaped, place, partitions=table.partitions, access=self.access)
        if files is None:
            with self._committing():
                shaped.write.format("delta").mode("append").save(place)
        elif files:  # the lock is asked behind the writing: files alone are no rows
            self._small.add(files, table)
        else:
            self.check()

    def take_back(self, table: Table, *, batch_id: str) -> None:
        """Deletes the rows of a batch."""
        self.delete(table, where=has_values({"batch_id": [batch_id]}))

    def delete(self, table: Table, *, where: str) -> int:
        """Deletes the rows that meet a condition (of delta-rs' SQL); says how many."""
        return self._small.delete(table, where=where)

    @property
    def kept_folder(self) -> str:
        """Where copies of inputs are."""
        return f"{self._path}/kept_files"

    def keep(self, files: Sequence[SourceFile], targets: Sequence[str]) -> list[SourceFile]:
        """Copies files to paths below `kept_folder`: what an input is, even when it goes.

        Raises:
            FileNotFoundError: one is not there (any more).
        """
        self.check()
        store, folder = FileStore(self.access), self.kept_folder
        pairs = [(file.path, f"{folder}/{to}") for file, to in zip(files, targets, strict=True)]
        return at_once(lambda pair: store.copy(*pair), pairs)

    def discard(self, folder: str) -> None:
        """Deletes a folder of copies, by its path below `kept_folder`."""
        self.check()
        delete_folder(f"{self.kept_folder}/{folder}", self.access)

    def merge(self, rows: DataFrame, table: Table, *, most: int | None = None) -> None:
        """Updates the rows whose key is there, inserts the others. `rows` is unique on the key.

        Input:
            most: how many rows there are at most, where that is known.
        """
        place, shaped = self._open(table), _shaped(rows, table)
        # delta-rs holds what is merged into, too.
        if _are_few(most) and self._small.is_within(table, rows=_MERGED_INTO):
            self._small.merge(_gathered(shaped, table), table)
            return
        _check_schema(shaped.schema, table)
        same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in table.key)
        shaped.createOrReplaceTempView(_SOURCE)
        with self._committing():
            self.spark.sql(
                f"MERGE INTO delta.{quoted(place)} AS t USING {_SOURCE} AS s ON {same} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()

    def replace(
        self, rows: DataFrame, table: Table, *, having: Having, most: int | None = None
    ) -> None:
        """Puts rows in the place of all those whose columns have one of these values each.

        In one commit.

        Input:
            most: how many rows there are at most, where that is known.
        """
        place, shaped = self._open(table), _shaped(rows, table)
        if _are_few(most):
            self._small.replace(_gathered(shaped, table), table, where=has_values(having))
            return
        _check_schema(shaped.schema, table)
        # Behind none of the table's own rows: pysail 0.7.2 keeps the others by a union, and its
        # arrays have the names of the first side.
        rest = self._loaded(table).where(F.lit(False)).unionByName(shaped)
        with self._committing():
            rest.write.format("delta").mode("overwrite").option(
                "replaceWhere", has_one_of(having)
            ).save(place)

    def replace_by_few(self, rows: DataFrame, table: Table, *, where: str) -> None:
        """Puts few rows in the place of all that meet a condition (of delta-rs' SQL).

        In one commit.
        """
        self._small.replace(_gathered(_shaped(rows, table), table), table, where=where)

    def compact(self, table: Table, *, above: int, size: int | None = None) -> tuple[int, int]:
        """Rewrites each partition of more than `above` files into few: (files removed, added).

        Input:
            size: in bytes, from which on a file is left as it is; None: Delta's own.
        """
        return self._small.compact(table, above=above, size=size)

    def vacuum(self, table: Table) -> int:
        """Deletes the files that have not been part of the table for a week; says how many."""
        self.check()
        return self._small.vacuum(table)

    def died_since(self, then: datetime) -> bool:
        """Whether a run died since that wrote the ledger, by the clocks of those who found it."""
        at = self._small.fenced_at(BATCHES)
        return at is not None and at >= then

    def _has_rows_of(self, batch_id: str, table: Table) -> bool:
        """Whether any row is of a batch; no other column is read."""
        where = pc.field("batch_id") == batch_id
        found = self._small.columns(table, names=["batch_id"], where=where)
        return found is not None and found.num_rows > 0

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """One statement of the engine, which commits at its end what it may have made for minutes.

        Raises:
            LockLostError: the lock was taken over before it, or during it: nothing was committed.
        """
        self.check()
        try:
            yield
        except PySparkException:
            self.check()
            raise

    def _loaded(self, table: Table) -> DataFrame:
        return self.spark.read.format("delta").load(self._open(table)).select(table.names)

    def _open(self, table: Table) -> str:
        if table.name not in self._created:
            self._small.create(table)
            self._created.add(table.name)
        return f"{self._path}/{table.name}"


def _are_few(most: int | None) -> bool:
    return most is not None and most <= _BY_DRIVER


def _shaped(rows: DataFrame, table: Table) -> DataFrame:
    """The rows in the table's columns and types."""
    return rows.select(*(F.col(name).cast(kind).alias(name) for name, kind, _ in table.columns))


def _gathered(shaped: DataFrame, table: Table) -> pa.Table:
    rows, schema = gathered(shaped)
    _check_schema(schema, table)
    return rows


def _check_schema(schema: StructType, table: Table) -> None:
    """Returns when rows of that schema are the table's.

    Raises:
        TableSchemaError: they are not; Delta would store NULL where a value does not fit.
    """
    found = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema)
    if found != table.ddl:
        raise TableSchemaError(table, found)
