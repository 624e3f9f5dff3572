"""New trace files → traces and their fingerprints, each batch exactly once."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.collected import collected
from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.files import list_files
from shardaudit.adapters.sources import read_traces, storage_errors
from shardaudit.ingest.damage import damaged_span
from shardaudit.ingest.fingerprint import trace_fingerprints
from shardaudit.ingest.inputs import DamagedFile, TraceInputs
from shardaudit.ingest.traces import TraceRules, judged_traces, new_traces, repeated_ids, sampled
from shardaudit.jobs.batches import Batch, Batches, Result, cell_shape, quarantine
from shardaudit.model.config import Stream
from shardaudit.model.inputs import TRACE_COLUMNS
from shardaudit.model.tables import FINGERPRINTS, TRACES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """One batch that was written."""

    batch_id: str
    files: int
    rows: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """What is in the files of a batch. `damaged`: path -> reason; `kept_from`: path -> time."""

    good: int
    bad: int
    damaged: Mapping[str, str]
    kept_from: Mapping[str, datetime]
    buckets: tuple[datetime, datetime] | None
    days: frozenset[date]


class TraceSide:
    """The traces of one stream on their way into the warehouse."""

    def __init__(self, warehouse: Warehouse, name: str, stream: Stream) -> None:
        self._warehouse, self._name, self._stream = warehouse, name, stream
        self._access = warehouse.access
        self._batches = Batches(warehouse, name, "traces", parse=TraceInputs.from_json)
        self._known = {file for inputs in self._batches.done for file in inputs.files}
        self._shape = cell_shape(name, stream, self._batches.shape)

    def ingest(self, *, now: datetime) -> list[TraceBatch]:
        """Reads what is new since the last time, after what a crash left undone."""
        written = []
        if self._batches.unfinished:
            batch, inputs = self._batches.unfinished
            written.append(self._write(batch, inputs, now=now))
            self._known |= set(inputs.files)
        fresh = self._new_inputs()
        if fresh.files:
            batch = self._batches.plan(fresh, at=now)
            written.append(self._write(batch, fresh, now=now))
        return written

    def _new_inputs(self) -> TraceInputs:
        traces = self._stream.traces
        listed = list_files(traces.path, self._access)
        return TraceInputs(
            columns={name: traces.columns.get(name, name) for name in TRACE_COLUMNS},
            shape=self._shape,
            format=str(traces.format),
            files=tuple(file for file in listed if file not in self._known),
        )

    def _write(self, batch: Batch, inputs: TraceInputs, *, now: datetime) -> TraceBatch:
        """Writes the tables of a planned batch, in an order that any crash may interrupt."""
        loose = read_traces(
            self._warehouse.spark,
            inputs.files,
            self._access,
            columns=inputs.columns,
            is_parquet=inputs.format == "parquet",
        )
        judged = sampled(judged_traces(loose, self._rules(batch, inputs)), inputs.shape.sample_rate)
        with storage_errors():
            # Read once, for what is counted, refused and kept: a file may change in between.
            judged = judged.localCheckpoint()
        tally = _tally(judged)
        if tally.bad:
            quarantine(self._warehouse, judged.where(F.col("reason").isNotNull()), batch)
        counted = 0
        if tally.buckets is not None:
            counted = self._append(judged, batch, days=tally.days, buckets=tally.buckets)
        result = self._result(tally, inputs, counted=counted)
        damaged = [
            DamagedFile(file, tally.damaged[file.path])
            for file in inputs.files
            if file.path in tally.damaged
        ]
        self._batches.finish(batch, inputs.with_damage(damaged), result=result, at=now)
        log.info(
            "%s: %d files, %d traces, %d quarantined",
            *(batch.batch_id, len(inputs.files), result.rows, result.quarantined),
        )
        return TraceBatch(batch.batch_id, len(inputs.files), result.rows, result.quarantined)

    def _rules(self, batch: Batch, inputs: TraceInputs) -> TraceRules:
        return TraceRules(
            stream_names=sorted({self._stream.stream_name, self._name}),
            bucket=inputs.shape.bucket,
            now=batch.planned_at,
        )

    def _append(
        self,
        judged: DataFrame,
        batch: Batch,
        *,
        days: Iterable[date],
        buckets: tuple[datetime, datetime],
    ) -> int:
        """Writes the new traces and their fingerprints; gives how many of them count."""
        of_days = (F.col("stream") == self._name) & F.col("sent_day").isin(sorted(days))
        is_own = F.col("batch_id") == batch.batch_id
        stored = self._warehouse.read(TRACES).where(of_days)
        known = stored.where(~is_own & F.col("bucket_start").between(*map(F.lit, buckets)))
        traces = (
            new_traces(judged, known, repeated_ids(judged, known).localCheckpoint())
            .withColumn("batch_id", F.lit(batch.batch_id))
            .withColumn("stream", F.lit(self._name))
            .withColumn("sent_day", F.to_date("bucket_start"))
        )
        self._warehouse.append(traces, TRACES, retried=batch.retried)
        # From what is stored, not from what was read: after a crash both are the same.
        own = self._warehouse.read(TRACES).where(of_days & is_own)
        fingerprints = (
            trace_fingerprints(own)
            .withColumn("batch_id", F.lit(batch.batch_id))
            .withColumn("stream", F.lit(self._name))
            .withColumn("side", F.lit(batch.side))
        )
        self._warehouse.append(fingerprints, FINGERPRINTS, retried=batch.retried)
        return own.where(F.col("counted")).count()

    def _result(self, tally: _Tally, inputs: TraceInputs, *, counted: int) -> Result:
        span = damaged_span(
            [file for file in inputs.files if file.path in tally.damaged],
            kept_from=tally.kept_from,
            batch_from=min(tally.kept_from.values(), default=None),
            audit_window=self._stream.audit_window,
        )
        damage = span.aligned(inputs.shape.bucket) if span else None
        return Result(tally.good, counted, tally.bad, damage)


def _tally(judged: DataFrame) -> _Tally:
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
    return _Tally(
        good=sum(row.good for row in rows),
        bad=sum(row.bad for row in rows),
        damaged={row.file: row.damage for row in rows if row.damage is not None},
        kept_from={row.file: row.kept_from for row in kept},
        buckets=(starts[0], starts[-1]) if starts else None,
        days=frozenset(day for row in rows for day in row.days),
    )
