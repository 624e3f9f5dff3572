"""Files of which the process dies that reads them, found by children that read them one by one.

What a reader raises sets one file aside by its name. What kills the process (a signal, the memory)
names no file, and comes again each night: so where a run died, its files are first read by a child,
by the readers that may have died. The file of which two children die is the cause: one may have
died of a machine that was short of memory. A storage that is slow, or silent, is no fault of a
file's.
"""

import logging
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.embedded import engine_memory, is_embedded, sibling_session
from shardaudit.adapters.files.files import S3Access, StorageError, open_file
from shardaudit.adapters.files.sources import TraceReading
from shardaudit.adapters.lake.parquet_file import read_footer
from shardaudit.adapters.lake.sink_batches import sink_batches
from shardaudit.adapters.lake.sink_file import SinkFile
from shardaudit.adapters.lake.sink_rows import SinkReader
from shardaudit.model.source import DEADLY, SourceFile

log = logging.getLogger(__name__)

_START_S, _END_S = 300.0, 15.0
_LEAST_S, _BYTES_A_SECOND = 300.0, 2**20  # of a file; the slowest disk gives more
_MOST_S = 1800.0  # of all files: what is left then is read untried
_RESERVED = 2**31
_STATM = Path("/proc/self/statm")
_FROM_OUTSIDE = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
_NO_MEMORY = 75  # how such a child ends


class FileTrial(Protocol):
    """The reading of one file, as the run that died may have read it."""

    @property
    def file(self) -> SourceFile:
        """The file, by the path that opens it."""

    def read(self, spark: SparkSession | None) -> None:
        """Reads it; what it raises is for the run itself to meet."""


@dataclass(frozen=True, slots=True)
class FooterTrial:
    """Its footer alone."""

    file: SourceFile
    access: S3Access

    def read(self, _spark: SparkSession | None) -> None:
        """By Arrow."""
        with open_file(self.file.path, self.access) as opened:
            read_footer(opened)


@dataclass(frozen=True, slots=True)
class TraceTrial:
    """All lines or rows of a trace file."""

    file: SourceFile
    access: S3Access
    kind: TraceReading

    def read(self, _spark: SparkSession | None) -> None:
        """By the reader of traces; before, the footer, as of one that may be kept as it came."""
        with open_file(self.file.path, self.access) as opened:
            if self.kind.is_parquet:
                read_footer(opened)
                opened.seek(0)
            for _ in self.kind.batches(opened, self.file.path):
                pass


@dataclass(frozen=True, slots=True)
class SinkTrial:
    """All rows of a sink's file: by Arrow, then by the engine where it is one in the process."""

    sink_file: SinkFile
    access: S3Access

    @property
    def file(self) -> SourceFile:
        """The file, by the path that opens it."""
        return self.sink_file.source

    def read(self, spark: SparkSession | None) -> None:
        """Both; what the one raises keeps nobody from the other."""
        with ExitStack() as stack:
            if spark is not None:
                stack.callback(self._read_by_engine, spark)
            opened = stack.enter_context(open_file(self.file.path, self.access))
            for _ in sink_batches(opened, self.sink_file, self.access):
                pass

    def _read_by_engine(self, spark: SparkSession) -> None:
        for rows in SinkReader(spark, self.access).frames([self.sink_file]):
            rows.localCheckpoint()


@dataclass(frozen=True, slots=True)
class DeadlySinkFiles:
    """`Wary` after a death. `known`: those of earlier runs, by the file as the sink's log has it.

    `is_whole`: all of a file is tried, not its footer alone.
    """

    spark: SparkSession
    access: S3Access
    known: Mapping[SourceFile, str]
    is_tried: bool
    is_whole: bool

    def __call__(self, files: Sequence[SourceFile | SinkFile]) -> dict[str, str]:
        """Path -> reason, for those of the files that are not to be opened."""
        pairs = [(f, f) if isinstance(f, SourceFile) else (f.known, f.source) for f in files]
        found = {at.path: self.known[known] for known, at in pairs if known in self.known}
        if not self.is_tried:
            return found
        trials: list[FileTrial] = []
        for file, (_, at) in zip(files, pairs, strict=True):
            if at.path in found:
                continue
            if isinstance(file, SourceFile):
                trials.append(FooterTrial(file, self.access))
            elif self.is_whole:
                trials.append(SinkTrial(file, self.access))
        return found | deadly_among(trials, with_engine=is_embedded(self.spark))


def deadly_traces(
    files: Mapping[str, SourceFile], access: S3Access, kind: TraceReading
) -> dict[str, str]:
    """Path -> reason, for the trace files that are not to be opened.

    Input:
        files: the path that rows are said to be of -> the file, or a copy of it.
    """
    by_path = {file.path: name for name, file in files.items()}
    trials = [TraceTrial(file, access, kind) for file in files.values()]
    found = deadly_among(trials, with_engine=False)
    return {by_path[path]: why for path, why in found.items()}


def is_engine_killed(spark: SparkSession, files: Sequence[SinkFile], access: S3Access) -> bool:
    """Whether an engine in the process dies of any of the files."""
    trials = [SinkTrial(file, access) for file in files]
    return is_embedded(spark) and bool(deadly_among(trials, with_engine=True))


def deadly_among(trials: Sequence[FileTrial], *, with_engine: bool) -> dict[str, str]:
    """Path -> reason, for the files of which two children died.

    Raises:
        StorageError: a file had no end, or its storage no answer, for minutes.
    """
    found: dict[str, str] = {}
    left, until = list(trials), time.monotonic() + _MOST_S
    while left:
        at, why = _tried(left, with_engine=with_engine, until=until)
        if why is None:
            break
        one = left[at]
        _, again = _tried([one], with_engine=with_engine, until=until)
        log.warning("%s: %s%s", one.file.path, why, "" if again else ", but not again")
        if again is not None:
            found[one.file.path] = f"{DEADLY}{again}"
        left = left[at + 1 :]
    return found


def _tried(
    trials: Sequence[FileTrial], *, with_engine: bool, until: float
) -> tuple[int, str | None]:
    """The file of which a child died, and how; None where it read all of them, in the time."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe(duplex=False)
    arguments = (there, tuple(trials), with_engine, engine_memory())
    child = spawning.Process(target=_read_all, args=arguments, daemon=True)
    child.start()
    there.close()
    at, patience = -1, _START_S
    why = None
    try:
        while at < len(trials) and here.poll(min(patience, max(0, until - time.monotonic()))):
            at = here.recv()
            if at < len(trials):
                patience = _LEAST_S + trials[at].file.size_bytes / _BYTES_A_SECOND
        if 0 <= at < len(trials) and time.monotonic() < until:
            slow = f"it is not read to its end within {patience / 60:.0f} minutes"
            raise StorageError(trials[at].file.path, slow)
    except EOFError:
        child.join()
        why = _cause(child.exitcode or 0)
    finally:
        if at == len(trials):
            child.join(_END_S)
        child.kill()
        child.join()
    if at < len(trials) and why is None:
        log.warning("not all files could be tried one by one (%s)", child.exitcode)
    return (at, why) if 0 <= at < len(trials) else (0, None)


def _cause(exit_code: int) -> str | None:
    """Why the file ended a child; None where it was no fault of the file's."""
    if exit_code == _NO_MEMORY:
        return f"it takes more memory than there is ({engine_memory() / 2**30:.1f} GiB)"
    if exit_code >= 0 or -exit_code in _FROM_OUTSIDE:
        return None
    return f"whoever reads it dies of {signal.Signals(-exit_code).name}"


def _read_all(
    parent: Connection, trials: Sequence[FileTrial], with_engine: bool, memory: int
) -> None:
    """What the child does: says the number of the file that it is about to read."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with ExitStack() as stack:
        spark = stack.enter_context(sibling_session()) if with_engine else None
        _limit_memory(memory)
        for number, trial in enumerate(trials):
            parent.send(number)
            try:
                trial.read(spark)
            except (MemoryError, pa.ArrowMemoryError):
                os._exit(_NO_MEMORY)
            except Exception as error:  # noqa: BLE001 - the run itself meets it, and tells it
                log.debug("%s: %s", trial.file.path, error)
        parent.send(len(trials))


def _limit_memory(memory: int) -> None:
    """So much may come to what is there, and some that libraries reserve and never use."""
    if not _STATM.is_file():  # macOS
        return
    pages = int(_STATM.read_text().split()[0])
    limit = pages * resource.getpagesize() + _RESERVED + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
