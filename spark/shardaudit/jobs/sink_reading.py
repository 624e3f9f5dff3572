"""A sink in one of its formats, as the ingest sees it, and its rows as they were ingested."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from shardaudit.adapters.delta_sink import DeltaSink, DeltaVersion
from shardaudit.adapters.delta_statistics import Span
from shardaudit.adapters.files import S3Access
from shardaudit.adapters.parquet_sink import parquet_file
from shardaudit.adapters.sink_file import SinkFile
from shardaudit.adapters.sink_rows import SinkReader
from shardaudit.adapters.sources import storage_errors
from shardaudit.ingest.inputs import (
    CellShape,
    DeltaInputs,
    FileGroup,
    ParquetInputs,
    SinkInputs,
    sink_inputs,
)
from shardaudit.ingest.sink import (
    DELIVERY_DDL,
    JUDGED_DDL,
    good_deliveries,
    judged_sink_rows,
    refused_rows,
)


@dataclass(frozen=True)
class Reading:
    """The files that came and that went since the last batch."""

    reader: SinkReader
    shape: CellShape
    came: Sequence[SinkFile]
    went: Sequence[SinkFile]

    def added(self, spark: SparkSession) -> DataFrame:
        """The rows that came, judged, not read yet.

        Raises:
            UnsoundFilesError: a file is not there or cannot be opened.
        """
        rows = judged(self.reader.frames(self.came), self.shape)
        if rows is None:
            return spark.createDataFrame([], JUDGED_DDL).drop("file", "line")
        return rows

    def removed(self) -> DataFrame | None:
        """The rows that went; None when there are none."""
        return judged(self.reader.frames(self.went), self.shape)

    def refused(self) -> DataFrame | None:
        """The rows that came and cannot be used, with their places, for the quarantine."""
        rows = judged(self.reader.placed(self.came), self.shape)
        return None if rows is None else refused_rows(rows)

    def check_unchanged(self) -> None:
        """Returns when the files are what they were before they were read.

        Raises:
            UnsoundFilesError: one is gone, or another one by now.
        """
        self.reader.check_unchanged([*self.came, *self.went])


class SinkPlan(Protocol):
    """What a batch reads of a sink, and what to do when that fails."""

    @property
    def inputs(self) -> SinkInputs:
        """What is stored of it."""

    def reading(self) -> Reading:
        """The files, none of them opened yet."""

    def recovered(self) -> "SinkPlan | None":
        """What to read instead after a file could not be read; None when nothing else is left."""


@dataclass(frozen=True)
class Scan:
    """Rows of a sink: DELIVERY. Those of `files` are not read yet."""

    rows: DataFrame
    files: Sequence[SinkFile] = ()
    reader: SinkReader | None = None

    def materialized(self, made_of_rows: DataFrame) -> DataFrame:
        """What was made of the rows, read, and sure to be made of all of them.

        Raises:
            StorageError: a file could not be read, or changed meanwhile.
        """
        with storage_errors():
            read = made_of_rows.localCheckpoint()
        if self.reader is not None:
            self.reader.check_unchanged(self.files)
        return read


class SinkRows:
    """The good rows of a sink as the batch with these inputs left it."""

    def __init__(self, spark: SparkSession, access: S3Access, inputs_json: str) -> None:
        self._spark, self._access = spark, access
        self._inputs = sink_inputs(inputs_json)
        self._reader = SinkReader(spark, access)
        self._version: DeltaVersion | None = None

    @property
    def is_placed(self) -> bool:
        """Whether each row says its shard and its time."""
        return self._inputs.is_placed

    def says(self, name: str) -> bool:
        """Whether its rows have that standard column besides their shard and their time."""
        return self.is_placed and name in self._inputs.columns

    def scan(self, *, within: tuple[str, Sequence[Span]] | None = None) -> Scan:
        """The rows; where the log says enough, files that have none of the wanted are left out.

        Input:
            within: a standard column and spans of time: the caller keeps no row outside of them.

        Raises:
            StorageError: a file is not there, or not as it was ingested.
        """
        files = self._files(within)
        shape = self._inputs.shape
        rows = judged(self._reader.frames(files), shape)
        if rows is None:
            return Scan(self._spark.createDataFrame([], DELIVERY_DDL))
        return Scan(good_deliveries(rows, bucket=shape.bucket), files, self._reader)

    def _files(self, within: tuple[str, Sequence[Span]] | None) -> list[SinkFile]:
        if within is not None and not within[1]:
            return []
        if isinstance(self._inputs, ParquetInputs):
            return parquet_files(self._inputs.path, self._inputs.groups)
        return self._delta_files(self._inputs, within)

    def _delta_files(
        self, inputs: DeltaInputs, within: tuple[str, Sequence[Span]] | None
    ) -> list[SinkFile]:
        if self._version is None:
            self._version = DeltaSink(inputs.path, self._access).at(inputs.to_version)
        columns, unread = inputs.columns, inputs.unread
        of_column = None
        if within is not None and within[0] in columns:
            of_column = (columns[within[0]], within[1])
        found = self._version.files(within=of_column)
        return [self._version.sink_file(f, columns) for f in found if f.path not in unread]


def judged(frames: Sequence[DataFrame], shape: CellShape) -> DataFrame | None:
    """The rows of all frames, each judged by its own types."""
    if not frames:
        return None
    each = [judged_sink_rows(f, bucket=shape.bucket, sample_rate=shape.sample_rate) for f in frames]
    return reduce(DataFrame.unionByName, each)


def parquet_files(folder: str, groups: Sequence[FileGroup]) -> list[SinkFile]:
    """The files of all groups, each as it is read."""
    return [parquet_file(folder, file, group.columns) for group in groups for file in group.files]
