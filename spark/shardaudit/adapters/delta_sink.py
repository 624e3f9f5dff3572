"""The door to a user's Delta table: its versions, its log, and the rows of chosen data files.

Spark's reader knows versions, not files, so this reaches into Delta's own classes (4.4), the way
its streaming source does: deletion vectors, column mapping and partitions are honoured by them.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from shardaudit.adapters.delta_merge import sink_fields
from shardaudit.adapters.files import S3Access, read_text
from shardaudit.model.errors import ConfigError
from shardaudit.model.sink_field import SinkField
from shardaudit.model.source import SourceFile


@dataclass(frozen=True)
class TableState:
    """A version of a table: its identity and the (physical name, type) of each column."""

    table_id: str
    version: int
    columns: Mapping[str, tuple[str, str]]
    partitions: Sequence[str]


class CommitGoneError(LookupError):
    """A commit file was cleaned up. Never leaves the ingest: it then reads all anew."""


class DeltaSink:
    """One Delta table, read only."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._path = spark, path
        session = spark._jsparkSession  # noqa: SLF001 - Delta's classes want Scala's session
        # Any: Scala objects behind py4j
        self._log: Any = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, path)

    def state(self) -> TableState:
        """The table as it is now.

        Raises:
            ConfigError: there is no Delta table.
        """
        snapshot = self._log.update(False, self._none, self._none)
        if snapshot.version() < 0:
            raise ConfigError("sink.path", self._path, 'a Delta table, or format = "parquet"')
        metadata = snapshot.metadata()
        fields = json.loads(metadata.schemaString())["fields"]
        return TableState(
            table_id=metadata.id(),
            version=snapshot.version(),
            columns={
                field["name"]: (_physical(field), json.dumps(field["type"])) for field in fields
            },
            partitions=json.loads(metadata.partitionColumns().mkString('["', '","', '"]')),
        )

    def fields(self) -> list[SinkField]:
        """The columns as the table declares them now."""
        metadata = self._log.update(False, self._none, self._none).metadata()
        return sink_fields(metadata.schemaString(), self.state().partitions)

    def commits(self, after: int, upto: int, *, access: S3Access) -> list[str]:
        """The texts of the commits after a version up to another, in order.

        Raises:
            CommitGoneError: not all of them are there any more.
        """
        names = [f"{self._path}/_delta_log/{v:020d}.json" for v in range(after + 1, upto + 1)]
        try:
            return [read_text(name, access) for name in names]
        except FileNotFoundError as error:
            raise CommitGoneError(str(error)) from error

    def rows(self, version: int, *, without: Collection[str] = ()) -> DataFrame:
        """All rows of a version, but for those in the files named (paths as in the log)."""
        if not without:
            reader = self._spark.read.format("delta").option("versionAsOf", version)
            return reader.load(self._path)
        kept = [file for file in self._files(version) if file.path() not in without]
        return self._frame(self._snapshot(version), kept)

    def rows_of(self, layers: Sequence[Sequence[str]], *, version: int) -> list[DataFrame]:
        """The rows of the files that `add` lines describe, read as the version's schema says.

        Input:
            layers: no path twice in one of them; each becomes a DataFrame.
        """
        snapshot = self._snapshot(version)
        from_json: Callable[[str], Any] = (  # Any: Scala's AddFile
            self._jvm.org.apache.spark.sql.delta.actions.Action.fromJson
        )
        return [self._frame(snapshot, [from_json(line) for line in layer]) for layer in layers]

    def file_count(self, version: int) -> int:
        """How many data files a version has."""
        return int(self._snapshot(version).numOfFiles())

    def listed(self, version: int) -> list[SourceFile]:
        """The data files of a version, with paths as in the log."""
        return [
            SourceFile(file.path(), file.size(), file.modificationTime())
            for file in self._files(version)
        ]

    def located(self, file: SourceFile) -> SourceFile:
        """The file with the path that opens it."""
        path = unquote(file.path)
        is_absolute = "://" in path or path.startswith(("/", "file:/"))
        place = path if is_absolute else f"{self._path}/{path}"
        return SourceFile(place.replace("file:/", "/", 1), file.size_bytes, file.modified_ms)

    @property
    def _jvm(self) -> Any:  # Any: py4j has no types
        return self._spark._jvm  # noqa: SLF001 - the way to Delta's classes

    @property
    def _none(self) -> Any:  # Any: Scala's None
        return self._jvm.scala.Option.empty()

    def _snapshot(self, version: int) -> Any:  # Any: Scala's Snapshot
        return self._log.getSnapshotAt(version, self._none, self._none, False)

    def _files(self, version: int) -> list[Any]:  # Any: Scala's AddFile
        return list(self._snapshot(version).allFiles().collectAsList())

    def _frame(self, snapshot: Any, files: Sequence[Any]) -> DataFrame:  # Any: Scala's objects
        gathered = self._jvm.java.util.ArrayList()
        for file in files:
            gathered.add(file)
        converters = self._jvm.scala.jdk.javaapi.CollectionConverters
        sequence = converters.asScala(gathered).toSeq()
        rows = self._log.createDataFrame(snapshot, sequence, False, self._none)
        return DataFrame(rows, self._spark)


def _physical(field: Mapping[str, Any]) -> str:  # Any: JSON
    """The name inside the files: it stays when a column is renamed."""
    return str(field["metadata"].get("delta.columnMapping.physicalName", field["name"]))
