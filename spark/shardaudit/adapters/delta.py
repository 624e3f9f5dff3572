"""The warehouse: the only writer of our own tables.

Every write selects a table's columns in order and casts them to its types. One driver writes a
warehouse at a time (`adapters/claim.py`); each write asks the claim first.
"""

from collections.abc import Callable

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.model.errors import WarehouseVersionError
from shardaudit.model.table import WAREHOUSE_VERSION, Table

_VERSION_PROPERTY = "shardaudit.warehouseVersion"


class Warehouse:
    """Our tables under one path. `check` is called before each write: it raises without a claim."""

    def __init__(
        self, spark: SparkSession, path: str, *, check: Callable[[], None] = lambda: None
    ) -> None:
        self.spark, self._path, self._check = spark, path.rstrip("/"), check
        self._opened: set[str] = set()

    def read(self, table: Table) -> DataFrame:
        """The rows of a table, as they are now; none when it was never written."""
        return self.spark.read.format("delta").load(self._open(table)).select(table.names)

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
        literal = value.replace("\\", "\\\\").replace("'", "\\'")
        (
            _shaped(rows, table)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"`{column}` = '{literal}'")
            .save(self._open(table))
        )

    def _open(self, table: Table) -> str:
        path = f"{self._path}/{table.name}"
        if table.name not in self._opened:
            self._create(table, path)
            self._opened.add(table.name)
        return path

    def _create(self, table: Table, path: str) -> None:
        if not DeltaTable.isDeltaTable(self.spark, path):
            builder = (
                DeltaTable.createIfNotExists(self.spark)
                .location(path)
                .property(_VERSION_PROPERTY, str(WAREHOUSE_VERSION))
                .partitionedBy(*table.partitions)
            )
            for name, kind, meaning in table.columns:
                builder = builder.addColumn(name, kind, comment=meaning or None)
            builder.execute()
            return
        properties = DeltaTable.forPath(self.spark, path).detail().select("properties").first()
        found = (properties[0] if properties else {}).get(_VERSION_PROPERTY, "none")
        if found != str(WAREHOUSE_VERSION):
            raise WarehouseVersionError(table=path, found=found, wanted=str(WAREHOUSE_VERSION))


def _shaped(rows: DataFrame, table: Table) -> DataFrame:
    return rows.select(*(F.col(name).cast(kind).alias(name) for name, kind, _ in table.columns))
