"""Reads what the comparison has to see: the ledger, and the ids of the cells that need a look."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import Canary, beside
from shardaudit.audit.placing import Placed, Placing
from shardaudit.audit.route.left_out import without_told
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.drill_down import (
    cell_ids,
    rows_of,
    seen,
    traces_of,
    unsent,
    with_hash,
    without_trace,
)
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL, id_hash
from shardaudit.ingest.rules.batch_inputs import sink_inputs
from shardaudit.ingest.rules.deliveries import DELIVERY_DDL
from shardaudit.ingest.rules.fingerprint import placed_ledger
from shardaudit.ingest.sightings import sightings_for_filters
from shardaudit.ingest.sink_reading import Scan, SinkRows
from shardaudit.ingest.stream_traces import (
    APART,
    BROUGHT_DDL,
    TRACED,
    StreamTraces,
)
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.config.settings import Stream
from shardaudit.model.tables.audit_tables import BATCHES, FINGERPRINTS
from shardaudit.model.window import Window
from shardaudit.store.audits import done_batches
from shardaudit.store.ledger_days import ledger_eras
from shardaudit.store.warehouse import Warehouse

_ID_DDL = "message_id string, bucket_start timestamp"
_SHOWN_OF_GAP = ("message_id", "shard_id", "sequence_number", "sent_at", "acked_at")


@dataclass(frozen=True, slots=True)
class Ingested:
    """What of a stream has been read so far: the newest batch of each side, and its damage.

    `may_lack_places`: rows of the sink may lack their shard or time (batches of before warehouse
    version 4 do not say so); `unplaced`: how many do, of those that were ingested; `came_unplaced`:
    by which time how many more of them had landed, batch by batch.
    `has_places`: whether it has a column for each row's shard and one for its time.
    `counted`: by side what its batches added to the ledger, as they said when they were done. Those
    of before warehouse version 4 do not say so: of them, what it holds.
    """

    sink_inputs: str | None
    damage: Damage
    numbers: dict[str, int]
    may_lack_places: bool
    unplaced: int
    came_unplaced: tuple[tuple[datetime, int], ...]
    has_places: bool
    counted: dict[str, int]

    def as_json(self, *, shape: CellShape, late_of: str | None) -> str:
        """The batches that an audit stands on, its cells, and the audit that it goes with."""
        also = {"late_of": late_of} if late_of else {}
        said = {"batches": self.numbers, "shape": Eras(shape).as_values()}
        return json.dumps(said | also, sort_keys=True)


def ingested(warehouse: Warehouse, name: str) -> Ingested:
    """What the stream's finished batches say."""
    batches = warehouse.rows(BATCHES, where=done_batches(name))
    done = sorted(batches, key=lambda row: int(row["number"]))
    spans: dict[str, list[tuple[datetime, datetime]]] = {"traces": [], "sink": []}
    for row in done:
        if row["damaged_from"] is not None:
            spans[row["side"]].append((row["damaged_from"], row["damaged_to"]))
    sink = [row["inputs"] for row in done if row["side"] == "sink"]
    return Ingested(
        sink_inputs=sink[-1] if sink else None,
        damage=Damage(traces=tuple(spans["traces"]), sink=tuple(spans["sink"])),
        numbers={row["side"]: row["number"] for row in done},
        may_lack_places=any(row["unplaced"] != 0 for row in done if row["side"] == "sink"),
        # Rows may go of which a batch of before version 4 did not say that they came.
        unplaced=max(0, sum(row["unplaced"] or 0 for row in done if row["side"] == "sink")),
        came_unplaced=tuple(
            (row["done_at"], row["unplaced"])
            for row in done
            if row["side"] == "sink" and (row["unplaced"] or 0) > 0
        ),
        has_places=not (sink and sink[-1]) or sink_inputs(sink[-1]).has_places,
        counted=_counted(warehouse, name, done),
    )


def _counted(warehouse: Warehouse, name: str, done: Sequence[Row]) -> dict[str, int]:
    counted = {
        side: sum(row["counted"] or 0 for row in done if row["side"] == side)
        for side in ("traces", "sink")
    }
    silent = [row["batch_id"] for row in done if row["counted"] is None]
    if silent:
        of_them = (F.col("stream") == name) & F.col("batch_id").isin(silent)
        ledger = warehouse.read(FINGERPRINTS).where(of_them)
        for row in collected(ledger.groupBy("side").agg(F.sum("n").alias("n"))):
            counted[row.side] += row.n
    return counted


@dataclass(frozen=True, slots=True)
class Near:
    """Both sides, reduced to what some buckets' files may hold."""

    traces: DataFrame
    landed: Scan

    def seen(self, cells: DataFrame, *, but: DataFrame | None) -> DataFrame:
        """What stands in the cells on both sides, in the columns that tell ids apart; read.

        Input:
            but: rows of these ids are left out: of `WindowLedger`; None: all are wanted.
        """
        return self.landed.materialized(seen(self.traces, self._rows(but), cells))

    def unsent(self, cells: DataFrame) -> DataFrame:
        """Of `drill_down.unsent`; read."""
        return self.landed.materialized(unsent(self.traces, self.landed.rows, cells))

    def without_trace(self, cells: DataFrame) -> DataFrame:
        """Of `drill_down.without_trace`, of what stands in the cells; read."""
        found = without_trace(seen(self.traces, self.landed.rows, cells))
        return self.landed.materialized(found)

    def parts(self, number: int) -> list["Near"]:
        """The same by ids, in so many parts."""
        of_part = (F.pmod(id_hash(), F.lit(number)) == part for part in range(number))
        return [
            Near(self.traces.where(of), replace(self.landed, rows=self.landed.rows.where(of)))
            for of in of_part
        ]

    def of_ids(self, ids: DataFrame) -> "Near":
        """The same of few ids alone: `id_hash`, unique."""
        traces, rows = (
            with_hash(side).join(F.broadcast(ids), ["id_hash"], how="left_semi")
            for side in (self.traces, self.landed.rows)
        )
        return Near(traces, replace(self.landed, rows=rows))

    def landed_ids(self, cells: DataFrame, *, but: DataFrame | None) -> DataFrame:
        """The ids of the rows in the cells: unique (`message_id`, `bucket_start`); read.

        Input:
            but: as of `seen`.
        """
        rows = self._rows(but).join(F.broadcast(cells), list(CELL), how="left_semi")
        return self.landed.materialized(rows.select("message_id", "bucket_start").distinct())

    def landed_among(self, hashes: DataFrame) -> DataFrame:
        """Those of some ids that landed: `id_hash`, unique; read.

        Input:
            hashes: `id_hash`.
        """
        # Presence only.
        rows = self.landed.rows.select(id_hash()).join(
            hashes.select("id_hash"), ["id_hash"], how="left_semi"
        )
        return self.landed.materialized(rows.distinct())

    def _rows(self, but: DataFrame | None) -> DataFrame:
        if but is None:
            return self.landed.rows
        return with_hash(self.landed.rows).join(but.select("id_hash"), ["id_hash"], how="left_anti")

    def cell_ids(self, wanted: DataFrame) -> DataFrame:
        """Everything of the wanted ids in their buckets, one row per (id, cell); read."""
        rows = rows_of(self.landed.rows, wanted)
        return self.landed.materialized(cell_ids(traces_of(self.traces, wanted), rows))


@dataclass(frozen=True, slots=True)
class Sources:
    """Both sides as they were ingested. `own_ledger`: the stream's FINGERPRINTS.

    `placed`: the rows that no batch could put into a cell; None: there are none; `uncounted`: what
    they add to the ledger; `never_due`: `id_hash` of what filters left out, whose traces count as
    never written; None: there are none.
    """

    traces: StreamTraces
    landed: Callable[[list[Window]], Scan]
    shape: Eras
    own_ledger: DataFrame
    planted: Canary
    placed: Placed | None = None
    uncounted: DataFrame | None = None
    never_due: DataFrame | None = None

    def ledger(self, days: Iterable[date]) -> DataFrame:
        """The fingerprints of some days, all that no batch counted, and the canary's."""
        own = self.own_ledger.where(F.col("sent_day").isin(sorted(days)))
        whole = beside(self.planted.ledger, own)
        return whole if self.uncounted is None else beside(whole, self.uncounted)

    def apart(self, window: Window) -> DataFrame:
        """The traces near the window that count in another bucket, the canary's too: APART."""
        planted = self.planted.traces.select(*APART).where(F.col("counted_in").isNotNull())
        return beside(planted, self.traces.apart([window]))

    def retried_ids(self, starts: list[datetime], apart: DataFrame) -> DataFrame:
        """The ids that count in some buckets, and have other traces: `message_id`, `bucket_start`.

        And of buckets near, so that few ranges are read.

        Input:
            apart: of `apart`.
        """
        starts = self.planted.left_out(starts)
        if not starts:
            return own_rows(self.traces.warehouse.spark, [], _ID_DDL)
        elsewhere = apart.where(F.col("counted_in").isin(starts))
        found = elsewhere.select("message_id", F.col("counted_in").alias("bucket_start"))
        windows = self.shape.covering(starts)
        here = self.traces.uncounted(windows).where(F.col("counted_in").isNull())
        return found.unionByName(here.select("message_id", "bucket_start"))

    def brought(self, starts: list[datetime], ids: DataFrame) -> DataFrame:
        """Of `StreamTraces.brought`, of some buckets; read."""
        starts = self.planted.left_out(starts)
        if not starts:
            return own_rows(self.traces.warehouse.spark, [], BROUGHT_DDL)
        windows = self.shape.covering(starts)
        return self.traces.brought(windows, ids).localCheckpoint()

    def within(self, starts: Iterable[datetime]) -> Near:
        """What the buckets' files may hold, and the whole canary."""
        windows = self.shape.covering(self.planted.left_out(starts))
        if not windows:
            return Near(self.planted.traces, Scan(self.planted.rows))
        traces = self.traces.within(windows)
        if self.never_due is not None:
            # Presence only.
            traces = with_hash(traces).join(self.never_due, ["id_hash"], how="left_anti")
        landed = self.landed(windows)
        rows = landed.rows.where(in_windows(F.col("sent_at"), windows))
        return Near(
            beside(self.planted.traces.select(*TRACED), traces.select(*TRACED)),
            replace(landed, rows=beside(self.planted.rows, rows)),
        )


def sources(
    warehouse: Warehouse, request: AuditRequest, state: Ingested, planted: Canary
) -> Sources:
    """Both sides of the stream, as far as they are ingested, and the canary's."""
    traces = StreamTraces.of(warehouse, request.name)
    ledger = warehouse.read(FINGERPRINTS).where(F.col("stream") == request.name)
    shape = request.cells
    if state.sink_inputs is None:
        # A sink that was never read has no rows.
        none = Scan(warehouse.spark.createDataFrame([], DELIVERY_DDL))
        return Sources(traces, lambda _: none, shape, ledger, planted)
    # Beyond an edge of the era, too, the ids that count in it: a row may bear another time.
    rows_of = shape.sampled_as(request.stream.cell_shape) if shape.later else None
    sink = SinkRows(warehouse.spark, warehouse.access, state.sink_inputs, shape=rows_of)
    placed = None
    if state.may_lack_places or not sink.has_places:
        placed = Placing(warehouse, request, traces, ledger).placed(sink, state.numbers)
    if placed is None:
        return Sources(traces, partial(_sent_within, sink), shape, ledger, planted)
    came_by = max((at for at, _ in state.came_unplaced), default=request.as_of)
    uncounted = placed_ledger(placed.rows, now=request.as_of, came_by=came_by)
    landed = partial(_with_placed, sink, placed.rows)
    return Sources(traces, landed, shape, ledger, planted, placed, uncounted)


def _sent_within(sink: SinkRows, windows: Sequence[Window]) -> Scan:
    return sink.scan(within=("sent_at", [(window.start, window.end) for window in windows]))


def _with_placed(sink: SinkRows, placed: DataFrame, windows: Sequence[Window]) -> Scan:
    scan = _sent_within(sink, windows)
    return replace(scan, rows=scan.rows.unionByName(placed))


def gap_messages(
    warehouse: Warehouse, name: str, stream: Stream, *, cell: tuple[str, datetime], limit: int
) -> tuple[list[Row], int]:
    """The first messages by time that were sent in a cell and that the sink lacks; and how many do.

    Not looked for are rows with a time of another cell. What a filter says that it left out does
    not lack.

    Input:
        cell: shard and start.
    Output:
        `message_id, shard_id, sequence_number, sent_at, acked_at`.

    Raises:
        UnsoundFilesError: the sink has changed since it was ingested.
    """
    shard_id, start = cell
    bucket = ledger_eras(warehouse, name, stream).at(start).bucket
    window = Window(start, start + bucket)
    traces = StreamTraces.of(warehouse, name)
    is_of_cell = F.col("counted") & (F.col("shard_id") == shard_id)
    sent = traces.within([window]).where(is_of_cell)
    sightings = sightings_for_filters(traces, [window], stream.route, bucket=bucket)
    sent = without_told(sent, sightings, stream.route).select(*_SHOWN_OF_GAP)
    for ids in _landed_ids(warehouse, name, stream, window):
        # Presence only.
        sent = sent.join(ids, ["message_id"], how="left_anti")
    first = collected(sent.orderBy("sent_at", "message_id").limit(limit))
    return [row.asDict() for row in first], len(first) if len(first) < limit else sent.count()


def _landed_ids(warehouse: Warehouse, name: str, stream: Stream, window: Window) -> list[DataFrame]:
    """`message_id` of what the sink has of a time, or since then of no time or shard; read."""
    state = ingested(warehouse, name)
    if state.sink_inputs is None:
        return []
    sink = SinkRows(warehouse.spark, warehouse.access, state.sink_inputs)
    scans = [_sent_within(sink, [window])]
    if state.may_lack_places or not sink.has_places:
        since = window.start - stream.settle_grace
        scans.append(sink.unplaced(landed=(since, datetime.max.replace(tzinfo=UTC)), before=()))
    return [scan.materialized(scan.rows.select("message_id")) for scan in scans]
