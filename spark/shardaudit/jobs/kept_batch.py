"""A batch of trace files that are kept as they came: copied into the warehouse, read, judged."""

import logging
from dataclasses import dataclass
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.kept_traces import kept_files, readable
from shardaudit.adapters.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.ingest.inputs import TraceInputs
from shardaudit.ingest.kept import kept_traces, loose_traces
from shardaudit.ingest.traces import TraceRules, judged_traces, sampled
from shardaudit.jobs.batches import Batch
from shardaudit.jobs.trace_tally import TraceTally, tallied
from shardaudit.model.source import KeptFiles

log = logging.getLogger(__name__)

_MOST_BYTES = 5 * 2**30  # S3 copies no more in one request


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
    if inputs.format != "parquet" or any(f.size_bytes > _MOST_BYTES for f in inputs.files):
        return None
    reader = SinkReader(warehouse.spark, warehouse.access)
    if not kept_files(reader.footers(inputs.files), inputs.columns):
        return None
    try:
        copies = warehouse.keep(inputs.files, batch.batch_id)
    except OSError as error:
        # Whether a file is gone, or the storage makes no copies, is found when its rows are read.
        log.warning("the files are read row by row: no copies: %s", error)
        return None
    # What was copied counts: a file may have changed since it was listed.
    return kept_files(reader.footers(copies), inputs.columns)


def kept_rows(warehouse: Warehouse, inputs: TraceInputs, rules: TraceRules) -> KeptRows | None:
    """The rows of the kept files; None when one of them cannot be used.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.kept is None:
        return None
    reader, shape = SinkReader(warehouse.spark, warehouse.access), inputs.shape
    try:
        rows = reduce(DataFrame.unionByName, reader.frames(readable(inputs.kept)))
        judged = sampled(judged_traces(loose_traces(rows), rules), shape.sample_rate)
        ids = judged.select("file", "line", "reason", "id_hash", "sent_at", "bucket_start")
        ids = ids.localCheckpoint()
    except (Py4JError, PySparkException, UnsoundFilesError) as error:
        log.info("the files are read row by row: %s", str(error).partition("\n")[0])
        return None
    tally = tallied(ids)
    if tally.bad:
        return None
    traces = kept_traces(rows, bucket=shape.bucket, sample_rate=shape.sample_rate)
    return KeptRows(traces, ids, tally)
