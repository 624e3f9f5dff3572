"""Trace files as the ingest would judge them, without a warehouse: what it would refuse, why.

And what it takes, though no log should have it: numbers that lack, a share that is none.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.files.files import FileStore, S3Access, is_hidden
from shardaudit.adapters.files.sources import TraceReading, read_traces, storage_errors
from shardaudit.columns.faults import is_gap
from shardaudit.ingest.rules.refused_traces import (
    TraceRules,
    judged_traces,
    share_fault,
    tells_numbers,
)
from shardaudit.ingest.trace_sessions import spans_told
from shardaudit.model.config.choices import TraceFormat
from shardaudit.model.config.eras import always
from shardaudit.model.config.settings import Stream, read_columns
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import trace_columns
from shardaudit.model.number_spans import Told, number_holes
from shardaudit.model.source import SourceFile

MOST_FAULTS = 10_000  # that are shown: who has more learns no more from them
_ANY = "any"
_HIDDEN = "no ingest reads it: its name, or that of a folder, begins with . or _"
_SHAPE = always(timedelta(minutes=1))  # any: no fault depends on it


@dataclass(frozen=True, slots=True)
class LintFault:
    """Why a line, or without one a file or the rest of it, is not as it should be."""

    file: str
    line: int | None
    fault: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.fault}"


@dataclass(frozen=True, slots=True)
class LintReport:
    """What is in trace files. `gaps`: lines that tell of dropped traces; they are no faults."""

    files: int
    traces: int
    gaps: int
    faulty: int
    faults: tuple[LintFault, ...]


def linted_traces(
    spark: SparkSession,
    paths: Sequence[str],
    access: S3Access,
    *,
    stream: tuple[str, Stream] | None,
    now: datetime,
) -> LintReport:
    """What the ingest would make of files, in their order.

    Input:
        stream: its name and configuration; None: any stream, standard names, JSON Lines, also
            `event` and `parent_ids`, which the ingest reads of few streams.

    Raises:
        ConfigError: there is no such file.
        StorageError: one could not be reached.
    """
    files = {path: _found(path, access) for path in dict.fromkeys(paths)}
    reason, is_told = F.col("reason"), F.coalesce(is_gap(F.col("reason")), F.lit(False))
    with storage_errors():
        # Read once, for what is counted and shown.
        read = _judged(spark, files, access, stream=stream, now=now).localCheckpoint()
        told = collected(read.where(tells_numbers()).select("file", "raw"))
        judged = read.where(~tells_numbers())
        [counts] = collected(
            judged.agg(
                F.count_if(reason.isNull()).alias("traces"),
                F.count_if(is_told).alias("gaps"),
                F.count_if(reason.isNotNull() & ~is_told).alias("faulty"),
            )
        )
        shown = collected(
            judged.where(reason.isNotNull() & ~is_told)
            .orderBy("file", F.col("line").asc_nulls_last())
            .limit(MOST_FAULTS)
        )
    folder = stream[1].traces.path if stream else None
    faults = [LintFault(path, None, _HIDDEN) for path in files if is_hidden(_below(path, folder))]
    faults += _lacking({row.file: row.raw for row in told})
    faulty = counts.faulty + len(faults)
    faults += [LintFault(row.file, row.line, row.reason) for row in shown]
    order = {path: at for at, path in enumerate(files)}
    faults.sort(key=lambda fault: order[fault.file])
    return LintReport(len(files), counts.traces, counts.gaps, faulty, tuple(faults))


def _judged(
    spark: SparkSession,
    files: Mapping[str, SourceFile],
    access: S3Access,
    *,
    stream: tuple[str, Stream] | None,
    now: datetime,
) -> DataFrame:
    columns = (
        read_columns(stream[1]) if stream else trace_columns({}, with_event=True, with_parents=True)
    )
    places = tuple(stream[1].locations) if stream else None
    kind = TraceReading(
        columns,
        stream is not None and stream[1].traces.format is TraceFormat.PARQUET,
        with_numbers=True,
    )
    loose = read_traces(spark, files, access, kind=kind)
    names = sorted({stream[0], stream[1].stream_name}) if stream else [_ANY]
    if stream is None:  # whichever a line names, it is right
        loose = loose.withColumn("stream", F.lit(_ANY))
    rules = TraceRules(stream_names=names, shape=_SHAPE, now=now, places=places)
    loose = loose.withColumn("fault", F.coalesce("fault", share_fault()))
    return judged_traces(loose, rules).select("file", "line", "raw", "reason")


def _lacking(told: Mapping[str, str]) -> Iterator[LintFault]:
    """The numbers between those of a session in a file that none of the files has.

    Input:
        told: of each file the text of `ToldNumbers.as_text`.
    """
    known = spans_told(told.values())
    for file, text in told.items():
        for (who, kind), spans in spans_told([text]).items():
            session = f"session {who.session or 'of many'}: "
            if kind is Told.SPARSE:
                yield LintFault(file, None, f"{session}session_seq does not count one by one")
            if kind is not Told.LINES:
                continue
            begin, end = (of(span.first for span in spans) for of in (min, max))
            for hole in number_holes(known[who, kind], begin=begin, known=None):
                if hole.first < end:
                    numbers = f"{hole.first} to {hole.last}"
                    why = f"no line of the given files has session_seq {numbers}, nor tells a gap"
                    yield LintFault(file, None, session + why)


def _below(path: str, folder: str | None) -> str:
    """The path within the folder of a log, by which an ingest goes; elsewhere the name alone."""
    if folder is not None and "://" not in path:
        path, folder = os.path.abspath(path), os.path.abspath(folder)  # noqa: PTH100 - without links
    root = None if folder is None else f"{folder.rstrip('/')}/"
    return path.removeprefix(root) if root and path.startswith(root) else Path(path).name


def _found(path: str, access: S3Access) -> SourceFile:
    found = FileStore(access).found(path)
    if found is None:
        raise ConfigError("FILE", path, "a file that is there")
    return found
