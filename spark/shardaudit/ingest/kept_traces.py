"""Files of traces that are kept as they came: copied, and read in place."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.embedded import is_embedded
from shardaudit.adapters.files.access_refused import AccessRefusedError
from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.files.parquet_traces import kept_files, readable
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.ingest.rules.refused_traces import (
    TraceRules,
    judged_traces,
    kept_traces,
    loose_traces,
    sampled,
)
from shardaudit.ingest.sink_reading import Scan
from shardaudit.ingest.trace_tally import TraceTally, tallied
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_BYTES = 5 * 2**30  # S3 copies no more in one request
_MIB = 2**20
_FEW = 16
_FEW_AHEAD = 1_000_000  # of more the rows are read one by one


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a batch's kept files; all of them are good.

    `traces`: GIVEN, not read yet; `ids`: what tells them apart, read: `reason` (NULL), `id_hash`,
    `bucket_start`. `ahead`: `id_hash`, unique, of those that arrive after the ingest by the clock
    of their producer.
    """

    traces: DataFrame
    ids: DataFrame
    ahead: DataFrame
    tally: TraceTally


def kept_copies(warehouse: Warehouse, batch: Batch, inputs: TraceInputs) -> KeptFiles | None:
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
    except (StorageError, AccessRefusedError) as error:
        log.warning("the files are read row by row: %s", error)
        return None
    footers = {SourceFile(to, 0, 0): footer for to, footer in zip(targets, found, strict=True)}
    if kept_files(footers, inputs.columns, warehouse.kept_folder) is None:
        return None
    try:
        copies = warehouse.keep(inputs.files, targets)
    except (FileNotFoundError, StorageError, AccessRefusedError) as error:
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
    except (FileNotFoundError, StorageError, AccessRefusedError) as error:
        log.warning("%s: its copies stay in the warehouse: %s", batch.batch_id, error)


def _folder(batch: Batch) -> str:
    return f"stream={batch.batch_id}"  # a stream's name may be two dots


def kept_rows(warehouse: Warehouse, inputs: TraceInputs, rules: TraceRules) -> KeptRows | None:
    """The rows of the kept files; None when one of them cannot be used, or is no producer's.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.kept is None or not inputs.kept.columns:
        return None
    reader = SinkReader(warehouse.spark, warehouse.access)
    files = readable(inputs.kept, warehouse.kept_folder)
    try:
        rows = reduce(DataFrame.unionByName, reader.frames(files))
        # What is kept is read as the producer's, whatever is in it.
        alone = replace(rules, places=())
        loose = loose_traces(rows, may_be_torn=not is_embedded(warehouse.spark))
        judged = sampled(judged_traces(loose, alone), inputs.shape)
        is_ahead = F.greatest("sent_at", "acked_at") > F.lit(rules.now)
        ids = judged.select(
            *("file", "line", "reason", "id_hash", "sent_at", "bucket_start"),
            is_ahead.alias("is_ahead"),
        )
        ids = Scan(rows, files, reader).materialized(ids)
    except UnsoundFilesError as error:
        log.info("the files are read row by row: %s", error)
        return None
    tally = tallied(ids)
    if tally.bad:
        return None
    ahead = ids.where(F.col("is_ahead")).select("id_hash").distinct()
    if ahead.count() > _FEW_AHEAD:
        return None
    return KeptRows(kept_traces(rows, shape=inputs.shape), ids, ahead, tally)
