"""A batch of trace files: what is in them, and those that are kept as they came."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.files.kept_traces import kept_files, readable
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.ingest.rules.judged_traces import (
    TraceRules,
    judged_traces,
    kept_traces,
    loose_traces,
    sampled,
)
from shardaudit.ingest.sink_reading import Scan
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_BYTES = 5 * 2**30  # S3 copies no more in one request
_MIB = 2**20
_FEW = 16


@dataclass(frozen=True, slots=True)
class TraceTally:
    """What is in the files of a batch. `damaged`: path -> reason; `kept_from`: path -> time.

    `first`: the least `sent_at` that was kept.
    """

    good: int
    bad: int
    damaged: Mapping[str, str]
    kept_from: Mapping[str, datetime]
    first: datetime | None
    buckets: tuple[datetime, datetime] | None
    days: frozenset[date]


def tallied(judged: DataFrame) -> TraceTally:
    """The tally of a batch.

    Input:
        judged: of `judged_traces`.
    """
    is_good = F.col("reason").isNull()
    rows = collected(
        judged.groupBy("file").agg(
            F.count_if(is_good).alias("good"),
            F.count_if(~is_good).alias("bad"),
            F.max(F.when(F.col("line").isNull(), F.col("reason"))).alias("damage"),
            F.min(F.when(is_good, F.col("sent_at"))).alias("kept_from"),
            F.min("bucket_start").alias("first"),
            F.max("bucket_start").alias("last"),
            F.collect_set(F.to_date("bucket_start")).alias("days"),
        )
    )
    kept = [row for row in rows if row.good]
    starts = sorted(start for row in kept for start in (row["first"], row["last"]))
    return TraceTally(
        good=sum(row.good for row in rows),
        bad=sum(row.bad for row in rows),
        damaged={row.file: row.damage for row in rows if row.damage is not None},
        kept_from={row.file: row.kept_from for row in kept},
        first=min((row.kept_from for row in kept), default=None),
        buckets=(starts[0], starts[-1]) if starts else None,
        days=frozenset(day for row in rows for day in row.days),
    )


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a batch's kept files; all of them are good.

    `traces`: GIVEN, not read yet; `ids`: what tells them apart, read: `reason` (NULL), `id_hash`,
    `bucket_start`.
    """

    traces: DataFrame
    ids: DataFrame
    tally: TraceTally


def kept_copies(warehouse: Warehouse, batch: Batch, inputs: TraceInputs) -> KeptFiles | None:
    """Copies the batch's files into the warehouse; None when they are not all plain.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.format != "parquet" or not _is_worth_it(inputs.files):
        return None
    reader, folder = SinkReader(warehouse.spark, warehouse.access), _folder(batch)
    targets = [f"{folder}/{n:05}.parquet" for n in range(len(inputs.files))]
    found = reader.footers(inputs.files).values()
    footers = {SourceFile(to, 0, 0): footer for to, footer in zip(targets, found, strict=True)}
    if kept_files(footers, inputs.columns, warehouse.kept_folder) is None:
        return None
    try:
        copies = warehouse.keep(inputs.files, targets)
    except (FileNotFoundError, StorageError) as error:
        # Whether a file is gone, or the storage makes no copies, is found when its rows are read.
        log.warning("the files are read row by row: no copies: %s", error)
        discarded(warehouse, batch)
        return None
    # What was copied counts: a file may have changed since it was listed.
    found = reader.footers(copies).values()
    below = (replace(c, path=to) for c, to in zip(copies, targets, strict=True))
    footers = dict(zip(below, found, strict=True))
    kept = kept_files(footers, inputs.columns, warehouse.kept_folder)
    return kept or KeptFiles({}, tuple(footers), ())


def _is_worth_it(files: Sequence[SourceFile]) -> bool:
    """Whether the files are few and large enough to be opened by every audit of their time."""
    sizes = [file.size_bytes for file in files]
    return max(sizes) <= _MOST_BYTES and (len(sizes) <= _FEW or sum(sizes) >= _MIB * len(sizes))


def discarded(warehouse: Warehouse, batch: Batch) -> None:
    """Deletes the copies of a batch, if it can: nothing reads them any more."""
    try:
        warehouse.discard(_folder(batch))
    except (FileNotFoundError, StorageError) as error:
        log.warning("%s: its copies stay in the warehouse: %s", batch.batch_id, error)


def _folder(batch: Batch) -> str:
    return f"stream={batch.batch_id}"  # a stream's name may be two dots


def kept_rows(warehouse: Warehouse, inputs: TraceInputs, rules: TraceRules) -> KeptRows | None:
    """The rows of the kept files; None when one of them cannot be used.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.kept is None or not inputs.kept.columns:
        return None
    reader, shape = SinkReader(warehouse.spark, warehouse.access), inputs.shape
    files = readable(inputs.kept, warehouse.kept_folder)
    try:
        rows = reduce(DataFrame.unionByName, reader.frames(files))
        judged = sampled(judged_traces(loose_traces(rows), rules), shape.sample_rate)
        ids = judged.select("file", "line", "reason", "id_hash", "sent_at", "bucket_start")
        ids = Scan(rows, files, reader).materialized(ids)
    except UnsoundFilesError as error:
        log.info("the files are read row by row: %s", error)
        return None
    tally = tallied(ids)
    if tally.bad:
        return None
    traces = kept_traces(rows, bucket=shape.bucket, sample_rate=shape.sample_rate)
    return KeptRows(traces, ids, tally)
