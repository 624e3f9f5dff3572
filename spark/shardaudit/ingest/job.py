"""The ingest of one stream: new trace files and what is new in the sink → the ledger."""

import logging
from datetime import datetime, timedelta

from shardaudit.columns.faults import MAX_AHEAD
from shardaudit.ingest.ask_kinesis import record_shards
from shardaudit.ingest.ingest_sink import SinkBatch, SinkSide
from shardaudit.ingest.ingest_traces import TraceBatch, TraceSide
from shardaudit.model.config.eras import Eras, first_free_day, midnight
from shardaudit.model.config.settings import DAY, Settings, Stream
from shardaudit.model.errors import ConfigError
from shardaudit.model.route.filters import filter_places
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import IngestReport
from shardaudit.store.ledger_days import day_digests, ledger_eras, stored_eras
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

FURTHEST = timedelta(days=7)  # ahead another shape of the cells may begin
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
    eras = eras_to_be(warehouse, name, stream, now=now)
    with progress.stage("ingest traces"):
        traces = TraceSide(warehouse, name, stream, eras).ingest(now=now)
    with progress.stage("ingest sink"):
        sink = SinkSide(warehouse, name, stream, eras).ingest(now=now)
    # As it is stored: where nothing was read no day is noted, and it will be a later one.
    if note := ledger_eras(warehouse, name, stream).note(now):
        log.warning("%s: %s", name, note)
    return _report(name, traces, sink, note)


def eras_to_be(warehouse: Warehouse, name: str, stream: Stream, *, now: datetime) -> Eras:
    """How the stream's ids are put into cells from now on.

    As so far, until the first UTC day of which no message can have been read: what is of another
    shape in the configuration holds from then on, instead of what was to. A message may say that it
    was sent a day ahead, and one that is not in the sample leaves nothing in the ledger.

    Raises:
        ConfigError: that day is far away, as there are messages of later days already; or a place
        decides what is to land, and its traces on both sides of the day are of two samples.
    """
    wanted, known = stream.cell_shape, stored_eras(warehouse, name)
    if known is None or known.newest == wanted:
        return known or Eras(wanted)
    day = first_free_day(now, day_digests(warehouse, name), ahead=MAX_AHEAD)
    fixed = known.until(day)
    if fixed.newest == wanted:
        return fixed.said_after(known)
    is_by_place = stream.sink.place or filter_places(stream.route)
    if is_by_place and wanted.sample_rate != fixed.newest.sample_rate:
        raise ConfigError(
            f"streams.{name}: sample_rate",
            f"{wanted.sample_rate:g}",
            f"{fixed.newest.sample_rate:g}, as before: a place says what is to land, and of a "
            "message near midnight its traces might be of another sample, so that a lost one "
            "looked left out; another share needs a new warehouse folder",
        )
    if midnight(day) - now > FURTHEST:
        raise ConfigError(
            f"streams.{name}: bucket and sample_rate",
            str(wanted),
            f"{known.newest}, as before: messages that say they were sent on {day - DAY} are in "
            f"the ledger, and others can hold from {day} on at the earliest: change them within "
            f"{FURTHEST.days} days before, or begin a new warehouse folder",
        )
    return fixed.since(day, wanted).said_after(known)


def _report(
    name: str, traces: list[TraceBatch], sink: list[SinkBatch], note: str | None
) -> IngestReport:
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
        notes=(note,) if note else (),
    )
