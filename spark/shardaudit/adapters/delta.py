"""The warehouse: the only writer of our own tables.

Frames go through Spark, the few rows that a driver holds through delta-rs. Every write selects a
table's columns in order and casts them to its types. One driver writes a warehouse at a time
(`adapters/claim.py`); each write asks the claim first.
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from shardaudit.adapters.delta_rs import DeltaRs, Row
from shardaudit.model.config import Aws
from shardaudit.model.sql_name import literal, quoted
from shardaudit.model.table import Table


class Warehouse:
    """Our tables under one path. `check` is called before each write: it raises without a claim."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        *,
        aws: Aws | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.spark, self._path, self._check = spark, path.rstrip("/"), check
        self._small = DeltaRs(self._path, aws or Aws())
        self._opened: set[str] = set()

    def claimed_by(self, check: Callable[[], None]) -> "Warehouse":
        """The same warehouse, whose writes ask another claim."""
        return Warehouse(self.spark, self._path, aws=self._small.aws, check=check)

    def read(self, table: Table) -> DataFrame:
        """The rows of a table, as they are now; none when it was never written."""
        return self.spark.read.format("delta").load(self._open(table)).select(table.names)

    def rows(self, table: Table, *, where: pc.Expression) -> list[Row]:
        """Those few rows of a table that meet a condition, in no order."""
        self._open(table)
        return self._small.rows(table, where=where)

    def upsert(self, rows: Sequence[Mapping[str, object]], table: Table) -> None:
        """`merge` for a few rows that the driver holds; a column that a row lacks is NULL."""
        self._check()
        self._open(table)
        self._small.upsert(rows, table)

    def append(self, rows: DataFrame, table: Table, *, batch: tuple[str, int]) -> None:
        """Adds rows once per batch (application id, number): a repeated number changes nothing."""
        self._check()
        application, number = batch
        (
            _shaped(rows, table)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", application)
            .option("txnVersion", str(number))
            .save(self._open(table))
        )

    def merge(self, rows: DataFrame, table: Table) -> None:
        """Updates the rows whose key is there, inserts the others. `rows` is unique on the key."""
        self._check()
        target = DeltaTable.forPath(self.spark, self._open(table))
        same = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in table.key)
        (
            target.alias("t")
            .merge(_shaped(rows, table).alias("s"), same)
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        )

    def replace(self, rows: DataFrame, table: Table, *, column: str, value: str) -> None:
        """Puts rows in the place of all those whose `column` has `value`, in one commit."""
        self._check()
        (
            _shaped(rows, table)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"{quoted(column)} = {literal(value)}")
            .save(self._open(table))
        )

    def compact(self, table: Table, *, above: int) -> tuple[int, int]:
        """Rewrites each partition of more than `above` files into few: (files removed, added).

        The rows stay the same, and so does what an append has marked as done.
        """
        self._check()
        removed = added = 0
        for partition in self._small.crowded(table, above=above):
            rewrite = DeltaTable.forPath(self.spark, self._open(table)).optimize()
            if partition:
                rewrite = rewrite.where(
                    " AND ".join(f"{quoted(name)} = {literal(v)}" for name, v in partition.items())
                )
            order = table.clustered
            done = rewrite.executeZOrderBy(*order) if order else rewrite.executeCompaction()
            [row] = done.select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()
            removed, added = removed + row[0], added + row[1]
        return removed, added

    def vacuum(self, table: Table) -> int:
        """Deletes the files that have not been part of the table for a week; says how many."""
        self._check()
        return self._small.vacuum(table)

    def _open(self, table: Table) -> str:
        if table.name not in self._opened:
            self._small.create(table, _schema_json(table))
            self._opened.add(table.name)
        return f"{self._path}/{table.name}"


def _shaped(rows: DataFrame, table: Table) -> DataFrame:
    return rows.select(*(F.col(name).cast(kind).alias(name) for name, kind, _ in table.columns))


def _schema_json(table: Table) -> str:
    quoted = [(name, kind, meaning.replace("'", "\\'")) for name, kind, meaning in table.columns]
    return StructType.fromDDL(
        ", ".join(f"`{name}` {kind} COMMENT '{meaning}'" for name, kind, meaning in quoted)
    ).json()
