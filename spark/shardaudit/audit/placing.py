"""The rows of a sink that lack their shard or time, each put where the trace of its id is."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, own_rows
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.columns.instants import cell_start, in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.rules.coarse_times import COARSEST
from shardaudit.ingest.rules.deliveries import DELIVERY
from shardaudit.ingest.rules.placed_rows import placed_rows
from shardaudit.ingest.sink_reading import SinkRows
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.tables.audit_tables import BATCHES, FINDINGS, FINGERPRINTS, WATERMARKS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import ENDED, STANDING, Kind
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

_LAST = datetime(9999, 1, 1, tzinfo=UTC)
_ELSEWHERE_FOR = timedelta(days=7)  # so long ago, at most, it left the stream; or all is read


@dataclass(frozen=True, slots=True)
class Placed:
    """Such rows, of the whole sink or since some time.

    `rows`: DELIVERY; `touched`: the cells that are not as the audits before saw them, not unique:
    `shard_id`, `bucket_start`, `is_partial` (boolean: others of the cell may be missing among the
    rows), `is_cleared` (boolean: rows may have left the sink, and none came).
    """

    rows: DataFrame
    touched: DataFrame


@dataclass(frozen=True, slots=True)
class Placing:
    """What says where a row belongs. `ledger`: FINGERPRINTS of the stream."""

    warehouse: Warehouse
    request: AuditRequest
    traces: StreamTraces
    ledger: DataFrame

    def placed(self, sink: SinkRows, numbers: Mapping[str, int]) -> Placed | None:
        """The rows that landed since the window began, or the audits before looked, and read.

        None when no file may have one, and none that may have had one went.

        Input:
            numbers: by side the last batch.
        """
        name = self.request.name
        before = self.warehouse.rows(WATERMARKS, where=pc.field("stream") == name)
        looked_at = max((row["as_of"] for row in before), default=_LAST)
        reach = self.request.stream.settle_grace + COARSEST
        since = min(self.request.aligned.start, looked_at) - reach
        known = known_batches(before, last=numbers).get("sink", 0)
        scan = sink.unplaced(landed=(since, _LAST), before=self._inputs(known))
        if not scan.files and not scan.has_left:
            return None
        landed_at = F.col("landed_at")
        landed = scan.rows.where((landed_at >= F.lit(since)) | landed_at.isNull())
        near = self.traces.within(self._homes(since))
        rows = scan.materialized(placed_rows(landed, near, shape=self.request.cells))
        is_whole = F.col("bucket_start") >= F.lit(since)
        touched = rows.where(F.col("is_new")).select(
            *CELL, (~is_whole).alias("is_partial"), F.lit(False).alias("is_cleared")
        )
        left = {"is_partial": F.lit(False), "is_cleared": F.lit(True)}
        if scan.has_left:
            # Which rows were in the files nobody knows: all that differs is looked at.
            sent = self.ledger.where((F.col("side") == "traces") & is_whole).select(*CELL)
            touched = touched.unionByName(sent.withColumns(left))
        if any((row["unplaced"] or 0) < 0 for row in self._batches(pc.field("number") > known)):
            # Earlier cells whose sums, without such rows, differ: what lacked may lack again.
            is_there = F.col("recoverable_until") > F.lit(self.request.as_of)
            came = self._missing(F.col("state").isin(*ENDED) & is_there)
            touched = touched.unionByName(came.withColumns(left))
        return Placed(rows.select(*DELIVERY), touched.distinct())

    def _inputs(self, number: int) -> list[str]:
        """What the batches of the sink read up to one, oldest first."""
        rows = self._batches(pc.field("number") <= number)
        return [row["inputs"] for row in sorted(rows, key=lambda row: int(row["number"]))]

    def _batches(self, where: pc.Expression) -> list[Row]:
        """Some of the sink's."""
        of_sink = (pc.field("stream") == self.request.name) & (pc.field("side") == "sink")
        return self.warehouse.rows(BATCHES, where=of_sink & where)

    def _missing(self, where: Column) -> DataFrame:
        """The cells of some of what audits found missing: CELL, not unique."""
        where &= F.col("stream") == self.request.name
        start = cell_start(F.col("sent_at"), self.request.cells).alias("bucket_start")
        named = self.warehouse.read(FINDINGS).where(where & (F.col("kind") == Kind.MISSING.value))
        gaps = self.warehouse.read(GAPS).where(where)
        return bare(named).select("shard_id", start).union(bare(gaps).select(*CELL))

    def _homes(self, since: datetime) -> list[Window]:
        """When what landed since then may have been sent.

        The stream had it, so it was acknowledged a retention before or later, and its trace read
        after that; but it may have been sent long before. Or it was missing, as far as is known,
        and somebody landed it who has it from elsewhere.
        """
        oldest = since - self.request.retention.longest(since)
        recent = Window(oldest, _LAST).aligned(self.request.stream.bucket)
        held_back = buckets_of(
            self.ledger.where(
                (F.col("side") == "traces")
                & (F.col("bucket_start") < F.lit(recent.start))
                & F.col("batch_id").isin(self.traces.batches_since(oldest))
            )
        )
        near = [Window(recent.start - _ELSEWHERE_FOR, recent.start)]
        lacking = self._missing(F.col("state").isin(*STANDING))
        lacking = lacking.where(in_windows(F.col("bucket_start"), near))
        starts = {*held_back, *buckets_of(lacking)}
        return [*self.request.cells.covering(sorted(starts)), recent]


def known_batches(before: Iterable[Row], *, last: Mapping[str, int]) -> Mapping[str, int]:
    """By side the last batch that the audits before knew.

    Input:
        before: the stream's rows of WATERMARKS; last: the last batches, which are known where the
        rows do not say.
    """
    known = [json.loads(row["batches"]) for row in before if row["batches"]]
    return known[0] if known else last


def buckets_of(rows: DataFrame) -> list[datetime]:
    """The distinct buckets of some rows, collected."""
    return [row.bucket_start for row in collected(rows.select("bucket_start").distinct())]


def rows_of_batches(warehouse: Warehouse, stream: str, batches: Sequence[str]) -> DataFrame:
    """The fingerprints of some batches, and when each of these was planned: `planned_at`."""
    rows = warehouse.rows(BATCHES, where=pc.field("batch_id").isin(batches))
    planned = own_rows(
        warehouse.spark,
        [(row["batch_id"], row["planned_at"]) for row in rows],
        "batch_id string, planned_at timestamp",
    )
    of_them = (F.col("stream") == stream) & F.col("batch_id").isin(batches)
    # Unique on the batch on the right.
    news = bare(warehouse.read(FINGERPRINTS).where(of_them))
    return news.join(F.broadcast(planned), ["batch_id"], how="left")
