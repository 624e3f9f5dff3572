"""Files of traces that are kept as they came: copied, and read in place."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.embedded import is_embedded
from shardaudit.adapters.files.access_refused import LastingError
from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.files.parquet_traces import kept_files, readable
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.columns.faults import MAX_AHEAD
from shardaudit.columns.instants import any_of, cell_start
from shardaudit.columns.ledger_sums import id_hash
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.ingest.rules.fingerprint import trace_sums
from shardaudit.ingest.rules.refused_traces import (
    TraceRules,
    judged_traces,
    kept_traces,
    loose_traces,
    sampled,
)
from shardaudit.ingest.sink_reading import Scan
from shardaudit.ingest.trace_tally import TraceTally
from shardaudit.model.config.eras import Eras
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.model.trace_line import TIMES
from shardaudit.model.window import EARLIEST, EPOCH, Window, unix_micros
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_BYTES = 5 * 2**30  # S3 copies no more in one request
_MIB = 2**20
_FEW = 16
_US = timedelta(microseconds=1)
_MOST_AHEAD = 1_000_000  # of more the rows are read one by one


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a batch's kept files.

    `traces`: GIVEN, not read yet; `ids`: what tells them apart, read: `id_hash`, `reason` (NULL:
    whether they are good `single_sums` says). `ahead`: `id_hash`, unique, of those that arrive
    after the ingest by the clock of their producer. `buckets`: the first and the last of all.
    """

    traces: DataFrame
    ids: DataFrame
    ahead: DataFrame
    buckets: tuple[datetime, datetime]
    _judged: DataFrame
    _scan: Scan

    def single_sums(self, *, but: DataFrame) -> tuple[DataFrame, TraceTally] | None:
        """`trace_sums` of all rows but those of some ids; the tally of all; None: one is not good.

        Input:
            but: `id_hash`, unique.
        """
        apart = but.select("id_hash", F.lit(True).alias("is_apart"))
        # Unique on the right.
        rows = self._judged.join(F.broadcast(apart), ["id_hash"], how="left")
        alike = {"counted": F.lit(True), "ingested_at": F.lit(None).cast("timestamp")}
        counts = F.count("*").alias("rows"), F.count("reason").alias("bad")
        try:
            sums = self._scan.materialized(
                trace_sums(rows.withColumns(alike), *counts, by=["is_apart"])
            )
        except UnsoundFilesError as error:
            log.info("the files are read row by row: %s", error)
            return None
        start = F.col("bucket_start")
        [row] = collected(
            sums.agg(
                F.coalesce(F.sum("rows"), F.lit(0)).alias("good"),
                F.coalesce(F.sum("bad"), F.lit(0)).alias("bad"),
                F.min(start).alias("first"),
                F.max(start).alias("last"),
                F.collect_set(F.to_date(start)).alias("days"),
            )
        )
        if row.bad:
            return None
        tally = TraceTally(
            good=row.good,
            bad=0,
            damaged={},
            kept_from={},
            first=None,
            buckets=(row["first"], row["last"]) if row.good else None,
            days=frozenset(row.days),
        )
        return sums.where(F.col("is_apart").isNull()).drop("is_apart", "rows", "bad"), tally


def keep_copies(warehouse: Warehouse, batch: Batch, inputs: TraceInputs) -> KeptFiles | None:
    """Copies the batch's files into the warehouse; None when they are not all plain.

    Raises:
        StorageError: the storage did not answer behind the copies.
    """
    if inputs.format != "parquet" or not _is_worth_it(inputs.files):
        return None
    reader, folder = SinkReader(warehouse.spark, warehouse.access), _folder(batch)
    targets = [f"{folder}/{n:05}.parquet" for n in range(len(inputs.files))]
    try:
        found = reader.footers(inputs.files).values()
    except (StorageError, LastingError) as error:
        log.warning("the files are read row by row: %s", error)
        return None
    footers = {SourceFile(to, 0, 0): footer for to, footer in zip(targets, found, strict=True)}
    if kept_files(footers, inputs.columns, warehouse.kept_folder) is None:
        return None
    try:
        copies = warehouse.keep(inputs.files, targets)
    except (FileNotFoundError, StorageError, LastingError) as error:
        # Whether a file is gone, or the storage makes no copies, is found when its rows are read.
        log.warning("the files are read row by row: no copies: %s", error)
        discard_copies(warehouse, batch)
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


def discard_copies(warehouse: Warehouse, batch: Batch) -> None:
    """Deletes the copies of a batch, if it can: nothing reads them any more."""
    try:
        warehouse.discard(_folder(batch))
    except (FileNotFoundError, StorageError, LastingError) as error:
        log.warning("%s: its copies stay in the warehouse: %s", batch.batch_id, error)


def _folder(batch: Batch) -> str:
    return f"stream={batch.batch_id}"  # a stream's name may be two dots


def kept_rows(warehouse: Warehouse, inputs: TraceInputs, rules: TraceRules) -> KeptRows | None:
    """The rows of the kept files; None when one of them cannot be used as it is.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.kept is None or not inputs.kept.columns:
        return None
    latest, shape = rules.now + MAX_AHEAD, inputs.shape
    if (buckets := _buckets(inputs.kept, shape, Window(EARLIEST, latest))) is None:
        log.info("the files are read row by row: one has times that no clock shows")
        return None
    reader = SinkReader(warehouse.spark, warehouse.access)
    files = readable(inputs.kept, warehouse.kept_folder)
    try:
        rows = reduce(DataFrame.unionByName, reader.frames(files))
        scan = Scan(rows, files, reader)
        traces = kept_traces(rows, shape=shape)
        no_reason = F.lit(None).cast("string").alias("reason")
        ids = scan.materialized(traces.select(id_hash(), no_reason))
        # Not by their greatest: so the engine opens no file of which the footer says that none is.
        is_ahead = [
            F.col(name).cast("timestamp") > F.lit(rules.now)
            for name in TIMES
            if name in rows.columns
        ]
        late = kept_traces(rows.where(any_of(is_ahead)), shape=shape)
        ahead = scan.materialized(late.select(id_hash()).distinct())
    except UnsoundFilesError as error:
        log.info("the files are read row by row: %s", error)
        return None
    if ahead.count() > _MOST_AHEAD:
        return None
    # What is kept is read as the producer's, whatever is in it.
    alone = replace(rules, places=())
    loose = loose_traces(rows, may_be_torn=not is_embedded(warehouse.spark))
    judged = sampled(judged_traces(loose, alone), shape)
    # The bucket anew: that of `judged` hangs on the reason, which would be found out twice.
    judged = judged.withColumn("bucket_start", cell_start(F.col("sent_at"), shape))
    return KeptRows(traces, ids, ahead, buckets, judged, scan)


def _buckets(kept: KeptFiles, shape: Eras, within: Window) -> tuple[datetime, datetime] | None:
    """The first and the last bucket of the files' rows; None where one is not sent within.

    The span of a file without rows is of nothing, and no time of another one's.
    """
    times = [*chain.from_iterable(span for span in kept.spans if any(span))]
    first, last = (of(times, default=unix_micros(within.end)) for of in (min, max))
    if first < unix_micros(within.start) or unix_micros(within.end) < last:
        return None
    sent = shape.aligned(Window(EPOCH + first * _US, EPOCH + (last + 1) * _US))
    return sent.start, shape.last_start(sent.end)
