"""A sink in one of its formats, as the ingest sees it, and its rows as they were ingested."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import held_rows
from shardaudit.adapters.files.files import S3Access, StorageError
from shardaudit.adapters.files.sources import storage_errors
from shardaudit.adapters.lake.delta_log import CommitGoneError, TimeSpan
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink, DeltaVersion
from shardaudit.adapters.lake.sink_file import SinkFile, parquet_file
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.ingest.rules.batch_inputs import (
    MOST_LANDINGS,
    PLACES,
    DeltaInputs,
    ParquetInputs,
    SinkInputs,
    files_then,
    sink_inputs,
)
from shardaudit.ingest.rules.commits import UnknownFileError, net_change, rearranged_files
from shardaudit.ingest.rules.deliveries import (
    DELIVERY_DDL,
    JUDGED_DDL,
    good_deliveries,
    judged_sink_rows,
    refused_rows,
    unplaced_deliveries,
)
from shardaudit.model.config.eras import Eras
from shardaudit.model.errors import ConfigError
from shardaudit.model.source import FileGroup, SourceFile


@dataclass(frozen=True)
class Reading:
    """The files that came and that went since the last batch."""

    reader: SinkReader
    inputs: SinkInputs
    came: Sequence[SinkFile]
    went: Sequence[SinkFile]

    def added(self, spark: SparkSession) -> DataFrame:
        """The rows that came, judged, not read yet.

        Raises:
            UnsoundFilesError: a file is not there or cannot be opened.
        """
        rows = judged_frames(self.reader.frames(self.came), self.inputs)
        if rows is None:
            return spark.createDataFrame([], JUDGED_DDL).drop("file", "line")
        return rows

    def removed(self) -> DataFrame | None:
        """The rows that went; None when there are none."""
        return judged_frames(self.reader.frames(self.went), self.inputs)

    def refused(self) -> DataFrame | None:
        """The rows that came and cannot be used, with their places, for the quarantine."""
        rows = judged_frames(self.reader.placed(self.came), self.inputs)
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
    def reader(self) -> SinkReader:
        """What reads its files."""

    @property
    def inputs(self) -> SinkInputs:
        """What is stored of it."""

    @property
    def own(self) -> Sequence[SinkFile]:
        """The files that backfills of ours added since the last batch, be they there or not."""

    def knowing(self, landings: Iterable[int]) -> "SinkPlan":
        """The same, with more times at which backfills landed rows."""

    def reading(self) -> Reading:
        """The files, none of them opened yet."""

    def recovered(self) -> "SinkPlan | None":
        """What to read instead after a file could not be read; None when nothing else is left."""


@dataclass(frozen=True)
class Scan:
    """Rows of a sink: DELIVERY. Those of `files` are not read yet.

    `has_left`: files or rows that were there at an earlier batch are gone. `beside`: files that are
    left out by their footers: of one that was put anew since its ingest, that is another's.
    """

    rows: DataFrame
    files: Sequence[SinkFile] = ()
    reader: SinkReader | None = None
    has_left: bool = False
    beside: Sequence[SinkFile] = ()

    def materialized(self, made_of_rows: DataFrame) -> DataFrame:
        """What was made of the rows, read, and sure to be made of all of them.

        Raises:
            UnsoundFilesError: a file is broken, or changed meanwhile.
        """
        try:
            with storage_errors():
                read = held_rows(made_of_rows)
        except PySparkException as error:
            faults = self.reader.damaged(self.files) if self.reader else {}
            if not faults:
                raise
            raise UnsoundFilesError(faults) from error
        if self.reader is not None:
            self.reader.check_unchanged([*self.files, *self.beside])
        return read


class SinkRows:
    """The good rows of a sink as the batch with these inputs left it.

    Input:
        shape: how those that say their time are put into cells; None: as by that batch.
    """

    def __init__(
        self, spark: SparkSession, access: S3Access, inputs_json: str, *, shape: Eras | None = None
    ) -> None:
        self._spark, self._access = spark, access
        self._inputs = sink_inputs(inputs_json)
        self._shape = shape or self._inputs.shape
        self._reader = SinkReader(spark, access)
        self._version: DeltaVersion | None = None

    @property
    def has_places(self) -> bool:
        """Whether there is a column for each row's shard and one for its time."""
        return self._inputs.has_places

    def says(self, name: str) -> bool:
        """Whether its rows have that standard column besides their shard and their time."""
        return self.has_places and name in self._inputs.columns

    def scan(self, *, within: tuple[str, Sequence[TimeSpan]] | None = None) -> Scan:
        """The rows that say their shard and time.

        Files of which the log or the footer says that they have none of the wanted are left out.

        Input:
            within: a standard column and spans of time: the caller keeps no row outside of them.

        Raises:
            StorageError: a file is not there, or not as it was ingested.
        """
        if not self.has_places:
            return self._scan([], unplaced_deliveries, self._shape)
        found = self._files(within)
        files = self._reader.having(found, PLACES, within=within)
        scan = self._scan(files, partial(good_deliveries, shape=self._shape), self._shape)
        read = {file.path for file in files}
        beside = [file for file in found if file.path not in read]
        return replace(scan, beside=beside, reader=self._reader)

    def unplaced(self, *, landed: TimeSpan, before: Sequence[str]) -> Scan:
        """The rows that lack their shard or time, as they are: a NULL `sent_at` or `shard_id`.

        Only files that may have such a row are read; the log, footers or columns tell.

        Input:
            landed: when: the caller keeps no row that is known to have landed outside of it.
            before: the inputs of an earlier batch, and of all before it, oldest first.
        Output:
            also `is_new` (boolean): the row is in no file that was there at that batch. A file that
            OPTIMIZE wrote since is none of those where the log tells that no row of it came since:
            not by its landing time, for what a consumer commits late bears an early one.

        Raises:
            StorageError: a file is not there, or not as it was ingested.
        """
        if isinstance(self._inputs, ParquetInputs):
            files = _with_gaps(self._inputs)
        else:
            files = self._delta_files(self._inputs, ("landed_at", [landed]), with_gaps=True)
        lacking = self._reader.lacking(files, PLACES)
        there = {file.known for file in self._files(None)}
        known, has_left = self._since(there, before) if before else (set(), False)
        old, new = (
            self._scan(
                [file for file in lacking if (file.known in known) is not is_new],
                unplaced_deliveries,
                self._inputs.shape,  # of which sample each is its trace tells
            ).rows.withColumn("is_new", F.lit(is_new))
            for is_new in (False, True)
        )
        return Scan(old.unionByName(new), lacking, self._reader, has_left=has_left)

    def _since(self, there: set[SourceFile], before: Sequence[str]) -> tuple[set[SourceFile], bool]:
        """The files without a row that came since a batch, and whether rows went since."""
        inputs = sink_inputs(before[-1])
        known, own = self._then(there, inputs, before), self._inputs
        if isinstance(inputs, DeltaInputs) and isinstance(own, DeltaInputs) and known:
            with suppress(CommitGoneError, UnknownFileError):
                commits = self._now(own).commits_since(inputs.to_version)
                change = net_change(commits, excluded=inputs.unread | own.unread)
                kept = rearranged_files(commits, unread=inputs.unread)
                return known | {f for f in there if f.path in kept}, bool(change.removed)
        return known, not known <= there

    def _then(
        self, there: set[SourceFile], inputs: SinkInputs, before: Sequence[str]
    ) -> set[SourceFile]:
        """The files of a batch; none where nobody knows them any more.

        Not those that it, or the newest one, could not read: no row of them counts.
        """
        if inputs == self._inputs:
            return there
        unread = inputs.unread | self._inputs.unread
        files: Iterable[SourceFile] = ()
        if isinstance(inputs, ParquetInputs):
            files = files_then(map(sink_inputs, reversed(before)))
        else:
            with suppress(ConfigError, StorageError):  # cleaned up, or made anew
                version = DeltaSink(inputs.path, self._access).at(inputs.to_version)
                if inputs.commit in {"", version.commit_mark(inputs.to_version)}:
                    files = [
                        SourceFile(f.path, f.size_bytes, f.modified_ms) for f in version.files()
                    ]
        return {f for f in files if not {f, f.path} & unread}

    def _now(self, inputs: DeltaInputs) -> DeltaVersion:
        """The version that was ingested."""
        if self._version is None:
            self._version = DeltaSink(inputs.path, self._access).at(inputs.to_version)
        return self._version

    def _scan(
        self, files: list[SinkFile], kept: Callable[[DataFrame], DataFrame], shape: Eras
    ) -> Scan:
        rows = judged_frames(self._reader.frames(files), self._inputs, shape=shape)
        if rows is None:
            return Scan(self._spark.createDataFrame([], DELIVERY_DDL))
        return Scan(kept(rows), files, self._reader)

    def _files(self, within: tuple[str, Sequence[TimeSpan]] | None) -> list[SinkFile]:
        if within is not None and not within[1]:
            return []
        if isinstance(self._inputs, ParquetInputs):
            return parquet_files(self._inputs.path, self._inputs.groups)
        return self._delta_files(self._inputs, within)

    def _delta_files(
        self,
        inputs: DeltaInputs,
        within: tuple[str, Sequence[TimeSpan]] | None,
        *,
        with_gaps: bool = False,
    ) -> list[SinkFile]:
        version, columns, unread = self._now(inputs), inputs.columns, inputs.unread
        of_column = None
        if within is not None and within[0] in columns:
            of_column = (columns[within[0]], within[1])
        # A column that partitions has no statistics: its value decides, and not here.
        lacking = [columns[name] for name in PLACES] if with_gaps and self.has_places else []
        found = version.files(within=of_column, lacking=lacking)
        return [version.sink_file(f, columns) for f in found if f.path not in unread]


def judged_frames(
    frames: Sequence[DataFrame], inputs: SinkInputs, *, shape: Eras | None = None
) -> DataFrame | None:
    """The rows of all frames, each judged by its own types.

    Input:
        shape: how they are put into cells; None: as the inputs say.
    """
    if not frames:
        return None
    shape, own = shape or inputs.shape, inputs.own_landings
    each = [judged_sink_rows(rows, shape=shape, own_landings=own) for rows in frames]
    return reduce(DataFrame.unionByName, each)


def landings(reader: SinkReader, files: Sequence[SinkFile], inputs: SinkInputs) -> set[int]:
    """When the rows of files landed that backfills added, in µs since 1970.

    A file that is gone by now, or broken, tells nothing.
    """
    damaged = reader.damaged(files)
    sound = [file for file in files if file.path not in damaged]
    rows = judged_frames(reader.frames(sound), inputs)
    if rows is None:
        return set()
    landed = rows.where(F.col("reason").isNull() & F.col("landed_at").isNotNull())
    times = landed.select(F.unix_micros("landed_at").alias("micros")).distinct()
    newest = times.orderBy(F.desc("micros")).limit(MOST_LANDINGS)
    return {row.micros for row in collected(newest)}


def _with_gaps(inputs: ParquetInputs) -> list[SinkFile]:
    """The files of which some rows may lack their shard or time."""
    gaps = set(inputs.gaps)
    return [
        file
        for file in parquet_files(inputs.path, inputs.groups)
        if file.path in gaps or not set(PLACES) <= {*file.columns, *file.constants}
    ]


def parquet_files(folder: str, groups: Sequence[FileGroup]) -> list[SinkFile]:
    """The files of all groups, each as it is read."""
    return [parquet_file(folder, file, group.columns) for group in groups for file in group.files]
