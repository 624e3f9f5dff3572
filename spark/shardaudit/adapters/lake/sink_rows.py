"""The rows of chosen files of a sink as DataFrames: its columns under their standard names.

Which files there are is known before, and looked at again afterwards: an engine may read nothing
where a file is gone. Ordinary files are read by the engine itself, those alike in one frame (the
embedded one refuses files that differ in the type of any column); the others by `sink_batches`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from shardaudit.adapters.files.files import FileStore, S3Access, StorageError, at_once
from shardaudit.adapters.files.sources import find_damaged, read_footers, read_sink_files
from shardaudit.adapters.lake.delta_log import TimeSpan
from shardaudit.adapters.lake.parquet_file import (
    Footer,
    ReadyFile,
    footer_fault,
    may_be_within,
    may_lack,
    must_lack,
    ready_file,
)
from shardaudit.adapters.lake.sink_file import Kinds, SinkFile
from shardaudit.columns.sql_name import quoted
from shardaudit.model.source import SourceFile

# Which of some files are not to be opened, and why: a SinkFile, or only a SourceFile's footer.
Wary = Callable[[Sequence[SourceFile | SinkFile]], Mapping[str, str]]

_FRAMES = 16  # that an engine reads for one; Apache Spark takes 0.2 s to plan each


class UnsoundFilesError(StorageError):
    """Files of a sink are gone or broken. `faults`: path -> reason."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        path, reason = next(iter(faults.items()))
        others = f" (and {len(faults) - 1} more files)" if len(faults) > 1 else ""
        super().__init__(path, f"{reason}{others}")
        self.faults = faults


class SinkReader:
    """Reads files of one sink; the footer of each is read once.

    `wary`: asked before files are opened; path -> reason for those that are taken for broken.
    """

    def __init__(self, spark: SparkSession, access: S3Access, *, wary: Wary = lambda _: {}) -> None:
        self.spark, self.access = spark, access
        self._footers: dict[str, Footer] = {}
        self._wary, self._asked = wary, set[SourceFile | str]()

    def footers(self, files: Sequence[SourceFile]) -> dict[SourceFile, Footer]:
        """What the footer of each file says.

        Raises:
            StorageError: the storage did not answer.
        """
        self._give_up([file for file in files if file.path not in self._footers])
        unknown = [file for file in files if file.path not in self._footers]
        self._footers |= read_footers(self.spark, unknown, self.access)
        return {file: self._footers[file.path] for file in files}

    def frames(self, files: Sequence[SinkFile]) -> list[DataFrame]:
        """The rows that count, not read yet: one DataFrame for all files with the same types.

        Raises:
            UnsoundFilesError: a file is not there, not as it was, or is no Parquet file.
            StorageError: the storage did not answer.
        """
        by_kinds: dict[Kinds, list[ReadyFile]] = {}
        for ready in self._ready(files):
            by_kinds.setdefault(ready.file.kinds, []).append(ready)
        return [self._frame(alike) for _, alike in sorted(by_kinds.items())]

    def placed(self, files: Sequence[SinkFile]) -> list[DataFrame]:
        """The same with `file` and `line` (the row's number, from 1)."""
        by_kinds: dict[Kinds, list[SinkFile]] = {}
        for ready in self._ready(files):
            by_kinds.setdefault(ready.file.kinds, []).append(ready.file)
        return [
            read_sink_files(self.spark, alike, self.access) for _, alike in sorted(by_kinds.items())
        ]

    def check_unchanged(self, files: Iterable[SinkFile]) -> None:
        """Returns when the files are what they were before they were read.

        Raises:
            UnsoundFilesError: one is gone, or another one by now.
            StorageError: the storage did not answer.
        """
        before = {file.path: file for file in files}
        now = at_once(FileStore(self.access).found, before)
        faults = {
            path: "it changed while it was read"
            for (path, file), found in zip(before.items(), now, strict=True)
            if found is None or not file.is_still(found)
        }
        if faults:
            raise UnsoundFilesError(faults)

    def faults(self, files: Sequence[SinkFile]) -> dict[str, str]:
        """Path -> reason, for the files that are gone, or broken by what their footers tell."""
        self._give_up(files)
        self.footers(list({file.path: file.source for file in files}.values()))
        found = ((file, self._footers[file.path]) for file in files)
        faults = {file.path: footer_fault(file, footer) for file, footer in found}
        return {path: fault for path, fault in faults.items() if fault is not None}

    def lacking(self, files: Sequence[SinkFile], names: Sequence[str]) -> list[SinkFile]:
        """The files of which some row may have NULL in one of these standard columns."""
        self.footers([file.source for file in files])
        return [f for f in files if may_lack(f, self._footers[f.path], names)]

    def having(
        self,
        files: Sequence[SinkFile],
        names: Sequence[str],
        *,
        within: tuple[str, Sequence[TimeSpan]] | None = None,
    ) -> list[SinkFile]:
        """The files of which some row may have all of these standard columns.

        Input:
            within: a standard column and spans: and in it a time in one of them.
        """
        self.footers([file.source for file in files])
        found = [f for f in files if not must_lack(f, self._footers[f.path], names)]
        if within is None:
            return found
        return [f for f in found if may_be_within(f, self._footers[f.path], *within)]

    def damaged(self, files: Sequence[SinkFile]) -> dict[str, str]:
        """Path -> reason, for the files of which not all rows can be read; decodes all of them."""
        faults = self.faults(files)
        if faults:
            return faults  # whatever else there is, is met when the rest is read
        return find_damaged(self.spark, [ready.file for ready in self._ready(files)], self.access)

    def _give_up(self, files: Sequence[SourceFile | SinkFile]) -> None:
        """Asks of each file once, and once more before all of it is read."""
        asked = {file if isinstance(file, SourceFile) else file.path: file for file in files}
        found = self._wary([file for key, file in asked.items() if key not in self._asked])
        self._asked |= asked.keys()
        self._footers |= {path: Footer(fault=why) for path, why in found.items()}

    def _ready(self, files: Sequence[SinkFile]) -> list[ReadyFile]:
        faults = self.faults(files)
        if faults:
            raise UnsoundFilesError(faults)
        return [ready_file(file, self._footers[file.path]) for file in files]

    def _frame(self, alike: Sequence[ReadyFile]) -> DataFrame:
        groups: dict[Hashable, list[SinkFile]] = {}
        for ready in alike:
            if ready.is_plain:
                groups.setdefault(ready.group, []).append(ready.file)
        largest = sorted(groups.values(), key=_size, reverse=True)[:_FRAMES]
        frames = [_by_engine(self.spark, group) for group in largest]
        read = {file.path for group in largest for file in group}
        others = [r.file for r in alike if not r.is_plain or r.file.path not in read]
        if others:
            rows = read_sink_files(self.spark, others, self.access)
            frames.append(rows.select(*frames[0].columns) if frames else rows.drop("file", "line"))
        return reduce(DataFrame.unionByName, frames)


def _by_engine(spark: SparkSession, files: Sequence[SinkFile]) -> DataFrame:
    """The rows of plain files that are alike in all but their rows."""
    columns, constants = files[0].columns, files[0].constants
    in_files = {wanted.name: wanted.kind for wanted in columns.values()}
    # With its scheme, or Apache Spark would look for a folder's file in a cluster's HDFS.
    paths = (path if "://" in path else f"file://{path}" for path in (file.path for file in files))
    rows = spark.read.schema(_schema(in_files)).parquet(*paths)
    kinds = _schema({name: constant.kind for name, constant in constants.items()})
    return rows.select(
        *(F.col(quoted(wanted.name)).alias(name) for name, wanted in sorted(columns.items())),
        *(
            F.lit(constants[field.name].value).cast(field.dataType).alias(field.name)
            for field in kinds
        ),
    )


def _schema(columns: Mapping[str, str]) -> StructType:
    """The schema with these names and types."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in sorted(columns.items())
    ]
    return StructType.fromJson({"fields": fields})


def _size(files: Sequence[SinkFile]) -> int:
    return sum(file.known.size_bytes for file in files)
