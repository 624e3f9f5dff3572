"""What is new in the sink → fingerprints, each batch exactly once."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.files.sources import storage_errors
from shardaudit.adapters.lake.deadly_files import DeadlySinkFiles
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.ingest.batches import Batch, Batches, BatchResult
from shardaudit.ingest.delta_plan import plan_delta, reread_delta, resumed_delta
from shardaudit.ingest.parquet_plan import ParquetPlan, plan_parquet, reread_parquet
from shardaudit.ingest.quarantine import quarantine
from shardaudit.ingest.rules.batch_inputs import DeltaInputs, SinkInputs, sink_inputs
from shardaudit.ingest.rules.batch_summary import damaged_span
from shardaudit.ingest.rules.coarse_times import is_between_hours, landed_by, with_sound_times
from shardaudit.ingest.rules.deliveries import REFUSED_DDL, UNPLACED
from shardaudit.ingest.rules.fingerprint import less_the_ledger, seen_by, sink_fingerprints
from shardaudit.ingest.sink_reading import Reading, SinkPlan, landings
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Stream
from shardaudit.model.errors import SinkSchemaError
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """One batch that was written. Versions are NULL where the sink has none."""

    batch_id: str
    from_version: int | None
    to_version: int | None
    files_added: int
    files_removed: int
    rows: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """What came: good rows, bad ones.

    `unplaced`, `counted`: the rows without and with a place, less those that went; `first`: the
    least bucket in which there are more rows than before, or less; `cells`: how many it has.
    `coarse`: the shards of which all landing times are whole half hours, as those are that are cut
    to hours or days.
    """

    good: int
    unplaced: int
    counted: int
    bad: int
    first: datetime | None
    cells: int
    coarse: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A batch of which everything that has to be read was read once."""

    plan: SinkPlan
    reading: Reading
    cells: DataFrame
    tally: _Tally


class SinkSide:
    """The sink of one stream on its way into the ledger."""

    def __init__(self, warehouse: Warehouse, name: str, stream: Stream, shape: Eras) -> None:
        self._warehouse, self._name, self._stream = warehouse, name, stream
        self._batches = Batches[SinkInputs](warehouse, name, "sink", parse=sink_inputs)
        self._shape = shape

    def ingest(self, *, now: datetime) -> list[SinkBatch]:
        """Reads what is new since the last time, after what a crash left undone."""
        written = []
        if self._batches.unfinished:
            batch, inputs = self._batches.unfinished
            written.append(self._write(batch, self._resume(batch, inputs), now=now))
        done = self._batches.done
        plan = self._new_plan(self._reader(), done[-1] if done else None)
        if plan is not None:
            batch = self._batches.plan(plan.inputs, at=now)
            written.append(self._write(batch, plan, now=now))
        return written

    def ingest_without(self, faults: Mapping[str, str], *, now: datetime) -> SinkBatch | None:
        """Reads what was ingested anew, but for files that cannot be read any more.

        Input:
            faults: path -> reason; of a Delta sink also none.
        Output:
            None when nothing was written: the sink has changed, or a batch was left unfinished; an
            `ingest` sees to both. Or it would find what the last batch did, which read all.
        """
        if self._batches.unfinished:
            return None
        reader, inputs = self._reader(), self._batches.done[-1]
        plan: SinkPlan | None
        if isinstance(inputs, DeltaInputs):
            plan = reread_delta(reader, inputs, faults)
        else:
            plan = reread_parquet(reader, inputs, faults)
        if plan is None:
            return None
        return self._write(self._batches.plan(plan.inputs, at=now), plan, now=now)

    def _reader(self, unfinished: Batch | None = None) -> SinkReader:
        """What reads the files: never one again of which a process died, if it is the same still.

        Where a run died over a batch they are tried first; since the last one, their footers.
        """
        since = unfinished.planned_at if unfinished else self._batches.last_done
        spark, access = self._warehouse.spark, self._warehouse.access
        damaged = [damage for inputs in self._batches.done for damage in inputs.damaged]
        wary = DeadlySinkFiles(
            spark,
            access,
            known={damage.file: damage.reason for damage in damaged if damage.is_deadly},
            is_tried=self._warehouse.died_since(since),
            is_whole=unfinished is not None,
        )
        return SinkReader(spark, access, wary=wary)

    def _new_plan(self, reader: SinkReader, previous: SinkInputs | None) -> SinkPlan | None:
        sink = self._stream.sink
        new_plan = plan_delta if sink.format == "delta" else plan_parquet
        try:
            return new_plan(reader, sink, previous, shape=self._shape)
        except SinkSchemaError as error:
            raise error.of_stream(self._name) from error

    def _resume(self, batch: Batch, inputs: SinkInputs) -> SinkPlan:
        reader = self._reader(batch)
        if not isinstance(inputs, DeltaInputs):
            return ParquetPlan(reader, inputs)
        plan = resumed_delta(reader, inputs)
        if plan is not None:
            return plan
        anew = self._new_plan(reader, replace(inputs, path=""))
        return self._plan_again(batch, cast(SinkPlan, anew))  # of no place before, all is new

    def _plan_again(self, batch: Batch, plan: SinkPlan) -> SinkPlan:
        """Stores the plan in the place of one that cannot be carried out; returns it."""
        if batch.is_resumed:  # an earlier try may have counted what cannot be read any more
            self._warehouse.take_back(FINGERPRINTS, batch_id=batch.batch_id)
        self._batches.plan_again(batch, plan.inputs)
        return plan

    def _write(self, batch: Batch, plan: SinkPlan, *, now: datetime) -> SinkBatch:
        """Writes the tables of a planned batch, in an order that any crash may interrupt."""
        measured = self._measured(batch, plan)
        inputs, tally = measured.plan.inputs, measured.tally
        self._quarantine(batch, measured)
        fingerprints = (
            # The rows without a place are put into one by each audit, by what traces there are.
            measured.cells.where(F.col("bucket_start") != F.lit(UNPLACED))
            .withColumn("batch_id", F.lit(batch.batch_id))
            .withColumn("stream", F.lit(self._name))
            .withColumn("side", F.lit(batch.side))
        )
        self._warehouse.append(fingerprints, FINGERPRINTS, most=tally.cells, retried=batch.retried)
        span = damaged_span(
            [damage.file for damage in inputs.damaged],
            kept_from={},
            batch_from=tally.first,
            audit_window=self._stream.audit_window,
        )
        damage = inputs.shape.aligned(span) if span else None
        quarantined = tally.bad + len(inputs.damaged)
        # What is read anew stands for what all batches before counted.
        counted_before = self._batches.unplaced if inputs.is_full else 0
        unplaced = tally.unplaced - counted_before
        result = BatchResult(tally.good, tally.counted, quarantined, damage, unplaced=unplaced)
        self._batches.finish(batch, inputs, result=result, at=now)
        return _summary(batch, measured, result)

    def _measured(self, batch: Batch, plan: SinkPlan) -> _Measured:
        """The cells of the batch, read; where files are broken, of what else there is to read."""
        if plan.own:
            plan = plan.knowing(landings(plan.reader, plan.own, plan.inputs))
        reading = plan.reading()
        try:
            with storage_errors():
                cells = self._cells(batch, plan.inputs, reading).localCheckpoint()
            reading.check_unchanged()
            tally = _tally(cells, now=batch.planned_at)
            if tally.coarse:
                found = len(tally.coarse)
                log.info("%s: on %d shards all landed at whole half hours", batch.batch_id, found)
                cells = landed_by(cells, tally.coarse, now=batch.planned_at)
            return _Measured(plan, reading, cells, tally)
        except (PySparkException, UnsoundFilesError):
            another = plan.recovered()
            if another is None:
                raise
            log.warning("%s: a file could not be read; reading otherwise", batch.batch_id)
        return self._measured(batch, self._plan_again(batch, another))

    def _cells(self, batch: Batch, inputs: SinkInputs, reading: Reading) -> DataFrame:
        added, gone = with_sound_times(reading.added(self._warehouse.spark)), reading.removed()
        removed = None if gone is None else with_sound_times(gone)
        cells = sink_fingerprints(added, removed, now=batch.planned_at)
        if not inputs.is_full or batch.number == 1:
            return seen_by(cells, now=batch.planned_at)
        ledger = self._warehouse.read(FINGERPRINTS).where(
            (F.col("stream") == self._name)
            & (F.col("side") == batch.side)
            & (F.col("batch_id") != batch.batch_id)
        )
        return seen_by(less_the_ledger(cells, ledger), now=batch.planned_at)

    def _quarantine(self, batch: Batch, measured: _Measured) -> None:
        spark, damaged = self._warehouse.spark, measured.plan.inputs.damaged
        lost = [(damage.file.path, None, None, damage.reason) for damage in damaged]
        refused = spark.createDataFrame(lost, REFUSED_DDL)
        rows = measured.reading.refused() if measured.tally.bad else None
        if rows is not None:
            refused = refused.unionByName(rows)
        if damaged or measured.tally.bad:
            with storage_errors():
                most = measured.tally.bad + len(damaged)
                quarantine(self._warehouse, refused, batch, most=most)


def _tally(cells: DataFrame, *, now: datetime) -> _Tally:
    is_bad = F.col("bucket_start").isNull()
    is_unplaced = F.col("bucket_start") == F.lit(UNPLACED)
    # A file that was ingested before it broke is told by the cells from which its rows went.
    is_changed = ~is_bad & (F.col("n") != 0)
    is_fine = is_between_hours(now=now)
    [row] = collected(
        cells.agg(
            F.coalesce(F.sum(F.when(~is_bad, F.col("added"))), F.lit(0)).alias("good"),
            F.coalesce(F.sum(F.when(is_unplaced, F.col("n"))), F.lit(0)).alias("unplaced"),
            F.coalesce(F.sum(F.when(~is_bad & ~is_unplaced, F.col("n"))), F.lit(0)).alias(
                "counted"
            ),
            F.coalesce(F.sum(F.when(is_bad, F.col("n"))), F.lit(0)).alias("bad"),
            F.min(F.when(is_changed & ~is_unplaced, F.col("bucket_start"))).alias("first"),
            F.count("*").alias("cells"),
            F.collect_set(F.when(is_fine, F.col("shard_id"))).alias("fine"),
            F.collect_set(F.when(~is_fine, F.col("shard_id"))).alias("whole"),
        )
    )
    return _Tally(
        good=row.good,
        unplaced=row.unplaced,
        counted=row.counted,
        bad=row.bad,
        first=row["first"],
        cells=row.cells,
        coarse=frozenset(row.whole) - frozenset(row.fine),
    )


def _summary(batch: Batch, measured: _Measured, result: BatchResult) -> SinkBatch:
    inputs, reading = measured.plan.inputs, measured.reading
    summary = SinkBatch(
        batch_id=batch.batch_id,
        from_version=inputs.from_version if isinstance(inputs, DeltaInputs) else None,
        to_version=inputs.to_version if isinstance(inputs, DeltaInputs) else None,
        files_added=len(reading.came),
        files_removed=len(reading.went),
        rows=result.rows,
        quarantined=result.quarantined,
    )
    log.info("%s: %d rows, %d quarantined", batch.batch_id, result.rows, result.quarantined)
    return summary
