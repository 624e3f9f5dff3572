"""The ingest of one stream: new trace files and what is new in the sink → the ledger."""

from datetime import datetime

from shardaudit.ingest.ask_kinesis import record_shards
from shardaudit.ingest.ingest_sink import SinkBatch, SinkSide
from shardaudit.ingest.ingest_traces import TraceBatch, TraceSide
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import IngestReport
from shardaudit.store.warehouse import Warehouse

INGEST_STAGES = 3  # of `ingest_stream`


def ingest_stream(
    warehouse: Warehouse, settings: Settings, name: str, *, now: datetime, progress: Progress
) -> IngestReport:
    """Takes in the stream's shards, then its traces and its sink."""
    with progress.stage("ask Kinesis for shards"):
        record_shards(warehouse, settings, name, now=now)
    return ingest(warehouse, name, settings.stream(name), now=now, progress=progress)


def ingest(
    warehouse: Warehouse,
    name: str,
    stream: Stream,
    *,
    now: datetime,
    progress: Progress = NO_PROGRESS,
) -> IngestReport:
    """Takes in everything that is new on both sides, exactly once.

    What a crash left unfinished is finished first, from what it had planned to read.

    Input:
        now: no time in the inputs may be over a day later.

    Raises:
        ConfigError: the configuration does not fit the sink or the warehouse.
        SinkSchemaError: a column of the sink that is needed is gone.
        StorageError: an input could not be reached; what was planned is done by the next run.
    """
    with progress.stage("ingest traces"):
        traces = TraceSide(warehouse, name, stream).ingest(now=now)
    with progress.stage("ingest sink"):
        sink = SinkSide(warehouse, name, stream).ingest(now=now)
    return _report(name, traces, sink)


def _report(name: str, traces: list[TraceBatch], sink: list[SinkBatch]) -> IngestReport:
    return IngestReport(
        stream=name,
        trace_files=sum(batch.files for batch in traces),
        trace_rows=sum(batch.rows for batch in traces),
        sink_from_version=sink[0].from_version if sink else None,
        sink_to_version=sink[-1].to_version if sink else None,
        sink_files_added=sum(batch.files_added for batch in sink),
        sink_files_removed=sum(batch.files_removed for batch in sink),
        sink_rows=sum(batch.rows for batch in sink),
        quarantined=sum(b.quarantined for b in traces) + sum(b.quarantined for b in sink),
        batches=(*(b.batch_id for b in traces), *(b.batch_id for b in sink)),
    )
