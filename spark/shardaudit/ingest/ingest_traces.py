"""New trace files → traces and their fingerprints, each batch exactly once."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import held_rows
from shardaudit.adapters.files.access_refused import LastingError
from shardaudit.adapters.files.files import FileStore, StorageError, at_once, list_files
from shardaudit.adapters.files.parquet_traces import readable
from shardaudit.adapters.files.sources import TraceReading, read_traces, storage_errors
from shardaudit.adapters.lake.deadly_files import deadly_traces, is_engine_killed
from shardaudit.ingest.batches import Batch, Batches, BatchResult
from shardaudit.ingest.kept_back import given_again, gives_any, going_on, still_kept_back
from shardaudit.ingest.kept_traces import discard_copies, keep_copies, kept_rows
from shardaudit.ingest.quarantine import quarantine, quarantined
from shardaudit.ingest.rules.batch_inputs import DamagedFile, TraceInputs
from shardaudit.ingest.rules.batch_summary import damaged_span
from shardaudit.ingest.rules.refused_traces import (
    TraceRules,
    is_producers,
    judged_traces,
    sampled,
    tells_numbers,
)
from shardaudit.ingest.sightings import (
    append_all_handed_over,
    append_handed_over,
    append_sightings,
    stored_sightings,
)
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.ingest.trace_sessions import append_kept_sessions, append_trace_sessions
from shardaudit.ingest.trace_tally import TraceTally, tallied
from shardaudit.ingest.trace_writing import TraceWriting
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Stream, read_columns
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.model.tables.audit_tables import FINGERPRINTS, TRACES
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS, SIGHTINGS, handed_over
from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """One batch that was written."""

    batch_id: str
    files: int
    rows: int
    quarantined: int


class TraceSide:
    """The traces of one stream on their way into the warehouse."""

    def __init__(self, warehouse: Warehouse, name: str, stream: Stream, shape: Eras) -> None:
        self._warehouse, self._name, self._stream = warehouse, name, stream
        self._access = warehouse.access
        self._batches = Batches(warehouse, name, "traces", parse=TraceInputs.from_json)
        self._shape = shape
        self._deadly: dict[str, str] = {}  # files of an unfinished batch that are not opened -> why
        self._has_died = False  # a run over that batch: children would take memory of their own

    def ingest(self, *, now: datetime) -> list[TraceBatch]:
        """Reads what is new since the last time, after what a crash left undone."""
        written = []
        if place := self._stream.sink.place:
            append_all_handed_over(self._warehouse, self._name, place)
        if self._batches.unfinished:
            batch, inputs = self._batches.unfinished
            written.append(self._write_rest(batch, inputs, now=now))
        for fresh in self._new_inputs():
            batch = self._batches.plan(fresh, at=now)
            written.append(self._write(batch, fresh, now=now, is_begun=False))
        return written

    def _new_inputs(self) -> list[TraceInputs]:
        """What is to be read: first what is read again, which a gate must see by itself."""
        traces = self._stream.traces
        places = tuple(self._stream.locations)
        inputs = TraceInputs(
            columns=read_columns(self._stream),
            shape=self._shape,
            format=str(traces.format),
            streams=tuple(self._names),
            locations=places,
        )
        listed, seen = list_files(traces.path, self._access), self._seen(inputs)
        wanted = [file for file in listed if file not in seen]
        known = {file for one in self._batches.done for file in one.files}
        again = tuple(file for file in wanted if file in known)
        new = tuple(file for file in wanted if file not in known)
        return [replace(inputs, files=files) for files in (again, new) if files]

    def _seen(self, as_now: TraceInputs) -> set[SourceFile]:
        """The files that are not read again: but for those that nobody can have meant to read so.

        Where nothing could be used, and the configuration has been mended since.
        """
        done = self._batches.done
        as_meant = [*self._batches.used, *(one for one in done if one.reads_like(as_now))]
        seen = {file for inputs in as_meant for file in inputs.files}
        return seen - given_again(still_kept_back(done), self._access)

    @property
    def _ends(self) -> tuple[Table, ...]:
        """What the place hands over at which the stream ends; of others nothing."""
        place = self._stream.sink.place
        return (handed_over(self._name, place),) if place else ()

    @property
    def _names(self) -> list[str]:
        return sorted({self._stream.stream_name, self._name})

    def _write_rest(self, batch: Batch, inputs: TraceInputs, *, now: datetime) -> TraceBatch:
        """Finishes what a crash left: its files may have been rotated away since.

        Where its traces were written, what could not be used is in the quarantine already. Where
        none were, it begins anew, over the copies that nobody planned yet.
        """
        stored = None if inputs.kept else self._stored(batch)
        if stored is None or self._are_there(inputs.files):
            return self._write(batch, inputs, now=now, is_begun=bool(inputs.kept or stored))
        counted = self._writing(batch).append_fingerprints(stored)
        return self._finish(batch, inputs, stored, counted=counted, now=now)

    def _are_there(self, files: Collection[SourceFile]) -> bool:
        try:
            found = at_once(FileStore(self._access).found, [file.path for file in files])
        except (StorageError, LastingError):
            return False
        return set(found) == set(files)

    def _stored(self, batch: Batch) -> TraceTally | None:
        """What an earlier try wrote of a batch, its traces each once; None when none of them."""
        own = self._writing(batch).own()
        first, days = F.min("sent_at").alias("first"), F.collect_set("sent_day").alias("days")
        [row] = collected(own.agg(F.count("*").alias("traces"), first, days))
        if not row.traces:
            return None
        refused = quarantined(self._warehouse, batch)
        damaged = collected(refused.where(F.col("line").isNull()).select("file", "reason"))
        return TraceTally(
            good=row.traces,
            bad=refused.count(),
            damaged={bad.file: bad.reason for bad in damaged},
            kept_from={},
            first=row.first,
            buckets=None,
            days=frozenset(row.days),
            sighted=stored_sightings(self._warehouse, batch).count(),
        )

    def _write(
        self, batch: Batch, inputs: TraceInputs, *, now: datetime, is_begun: bool
    ) -> TraceBatch:
        """Writes the tables of a planned batch, in an order that any crash may interrupt."""
        self._has_died = batch.is_resumed and self._warehouse.died_since(batch.planned_at)
        is_safe = not self._has_died or self._tried(inputs)
        if is_safe and not is_begun:
            inputs = self._plan_again(batch, inputs, keep_copies(self._warehouse, batch, inputs))
        rules = self._rules(batch, inputs)
        rows = kept_rows(self._warehouse, inputs, rules) if is_safe else None
        if rows is not None:
            written = self._writing(batch).append_kept(rows, read_at=self._batches.clock(now))
            if written is not None:
                tally, counted = written
                append_kept_sessions(self._warehouse, inputs.kept, batch)
                return self._finish(batch, inputs, tally, counted=counted, now=now)
        if inputs.kept and inputs.kept.columns:
            # The rows of the copies are judged one by one.
            kept = replace(inputs.kept, columns={}, spans=())
            inputs = self._plan_again(batch, inputs, kept)
        return self._write_judged(batch, inputs, now=now)

    def _tried(self, inputs: TraceInputs) -> bool:
        """Whether no process dies of the files of a batch over which one may have died.

        Those of which it does are not opened any more. What kills the engine alone is read by Arrow
        as well, row by row.
        """
        self._deadly = deadly_traces(self._files(inputs), self._access, _reading(inputs))
        if self._deadly or not (inputs.kept and inputs.kept.columns):
            return not self._deadly
        copies = readable(inputs.kept, self._warehouse.kept_folder)
        return not is_engine_killed(self._warehouse.spark, copies, self._access)

    def _plan_again(self, batch: Batch, inputs: TraceInputs, kept: KeptFiles | None) -> TraceInputs:
        """Stores the plan with these kept files: a crash is repaired by reading the same copies."""
        if kept != inputs.kept:
            inputs = replace(inputs, kept=kept)
            self._batches.plan_again(batch, inputs)
        return inputs

    def _write_judged(self, batch: Batch, inputs: TraceInputs, *, now: datetime) -> TraceBatch:
        """Puts every row into a table: the good ones into TRACES, the others into QUARANTINE.

        What an earlier try wrote is taken back: the storage may give now what it refused then.
        """
        kept_back = set(still_kept_back(self._batches.done))
        read = going_on(
            partial(self._judged, batch, inputs),
            is_tried_before=batch.is_resumed or not kept_back.isdisjoint(inputs.files),
            gives_others=lambda: gives_any(self._stream.traces.path, self._access),
        )
        judged = read.where(~tells_numbers())
        own = judged.where(is_producers()) if inputs.locations else judged
        tally = tallied(own)
        if batch.is_resumed:
            of_places = (SIGHTINGS, SIGHTING_COUNTS) if inputs.locations else ()
            for table in (TRACE_SESSIONS, *self._ends, *of_places, TRACES, FINGERPRINTS):
                self._warehouse.take_back(table, batch_id=batch.batch_id)
        if tally.bad:
            refused = own.where(F.col("reason").isNotNull())
            quarantine(self._warehouse, refused, batch, most=tally.bad)
        # Before the traces: where those are written, nothing is read again.
        append_trace_sessions(self._warehouse, read.where(tells_numbers()), batch)
        if inputs.locations:
            places = judged.where(~is_producers())
            seen = tallied(places)
            append_sightings(self._warehouse, places, batch, seen)
            if place := self._stream.sink.place:
                append_handed_over(self._warehouse, batch, place, seen)
            both = (seen.kept_from, tally.kept_from)
            first = {file: min(of[file] for of in both if file in of) for of in both for file in of}
            tally = replace(tally, sighted=seen.good, kept_from=first)
        counted = self._writing(batch).append_judged(own, tally, read_at=self._batches.clock(now))
        done = self._finish(batch, replace(inputs, kept=None), tally, counted=counted, now=now)
        if inputs.kept:
            discard_copies(self._warehouse, batch)
        return done

    def _judged(self, batch: Batch, inputs: TraceInputs, goes_on: bool) -> DataFrame:
        """The rows of the files, read once for all: a file may change in between.

        `goes_on`: without the files that the storage does not give.
        """
        spark, files = self._warehouse.spark, self._files(inputs)
        kind = replace(_reading(inputs), given_up=self._deadly, by_children=not self._has_died)
        loose = read_traces(spark, files, self._access, kind=kind, goes_on=goes_on)
        judged = sampled(judged_traces(loose, self._rules(batch, inputs)), inputs.shape)
        with storage_errors():
            return held_rows(judged)

    def _files(self, inputs: TraceInputs) -> dict[str, SourceFile]:
        """The files by their paths, or the copies that were made of them."""
        files, folder = inputs.files, self._warehouse.kept_folder
        if inputs.kept:
            files = tuple(replace(f, path=f"{folder}/{f.path}") for f in inputs.kept.files)
        return {file.path: at for file, at in zip(inputs.files, files, strict=True)}

    def _writing(self, batch: Batch) -> TraceWriting:
        earlier = StreamTraces(self._warehouse, self._name, self._batches.done)
        return TraceWriting(self._warehouse, batch, earlier, self._shape)

    def _finish(
        self, batch: Batch, inputs: TraceInputs, tally: TraceTally, *, counted: int, now: datetime
    ) -> TraceBatch:
        damaged = [
            DamagedFile(file, tally.damaged[file.path])
            for file in inputs.files
            if file.path in tally.damaged
        ]
        result = self._result(tally, inputs, counted=counted)
        self._batches.finish(batch, inputs.with_damage(damaged), result=result, at=now)
        log.info(
            "%s: %d files, %d traces, %d quarantined",
            *(batch.batch_id, len(inputs.files), result.rows, result.quarantined),
        )
        return TraceBatch(batch.batch_id, len(inputs.files), result.rows, result.quarantined)

    def _rules(self, batch: Batch, inputs: TraceInputs) -> TraceRules:
        return TraceRules(
            stream_names=list(inputs.streams) or self._names,
            shape=inputs.shape,
            now=self._batches.clock(batch.planned_at),
            places=inputs.locations,
        )

    def _result(self, tally: TraceTally, inputs: TraceInputs, *, counted: int) -> BatchResult:
        span = damaged_span(
            [file for file in inputs.files if file.path in tally.damaged],
            kept_from=tally.kept_from,
            # What a file of the end's place held may be older than all else of the batch.
            batch_from=None if self._stream.sink.place else tally.first,
            audit_window=self._stream.audit_window,
        )
        damage = inputs.shape.aligned(span) if span else None
        return BatchResult(tally.good + tally.sighted, counted, tally.bad, damage)


def _reading(inputs: TraceInputs) -> TraceReading:
    return TraceReading(inputs.columns, inputs.format == "parquet", with_numbers=True)
