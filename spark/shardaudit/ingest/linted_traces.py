"""Trace files as the ingest would judge them, without a warehouse: what it would refuse, why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.files.files import FileStore, S3Access, is_hidden
from shardaudit.adapters.files.sources import TraceReading, read_traces, storage_errors
from shardaudit.columns.faults import is_gap
from shardaudit.ingest.rules.refused_traces import TraceRules, judged_traces
from shardaudit.model.config.choices import TraceFormat
from shardaudit.model.config.eras import always
from shardaudit.model.config.settings import Stream, read_columns
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import trace_columns
from shardaudit.model.source import SourceFile

MOST_FAULTS = 10_000  # that are shown: who has more learns no more from them
_ANY = "any"
_HIDDEN = "no ingest reads it: its name begins with . or _"
_SHAPE = always(timedelta(minutes=1))  # any: no fault depends on it


@dataclass(frozen=True, slots=True)
class LintFault:
    """Why a line, or without one the rest of a file, cannot be used."""

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
        judged = _judged(spark, files, access, stream=stream, now=now).localCheckpoint()
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
    faults = [LintFault(path, None, _HIDDEN) for path in files if is_hidden(Path(path).name)]
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
    )
    loose = read_traces(spark, files, access, kind=kind)
    names = sorted({stream[0], stream[1].stream_name}) if stream else [_ANY]
    if stream is None:  # whichever a line names, it is right
        loose = loose.withColumn("stream", F.lit(_ANY))
    rules = TraceRules(stream_names=names, shape=_SHAPE, now=now, places=places)
    return judged_traces(loose, rules).select("file", "line", "reason")


def _found(path: str, access: S3Access) -> SourceFile:
    found = FileStore(access).found(path)
    if found is None:
        raise ConfigError("FILE", path, "a file that is there")
    return found
