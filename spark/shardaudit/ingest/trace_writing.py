"""What a batch of traces leaves in the warehouse: its traces and their fingerprints."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.kept_batch import KeptRows, TraceTally
from shardaudit.ingest.rules.fingerprint import trace_fingerprints
from shardaudit.ingest.rules.judged_traces import GIVEN, id_hash
from shardaudit.ingest.rules.repeats import (
    REACH,
    known_places,
    new_traces,
    repeated_ids,
    told_traces,
)
from shardaudit.ingest.stream_traces import SCAN_WINDOWS, TRACED, StreamTraces
from shardaudit.model.tables.audit_tables import FINGERPRINTS, TRACES
from shardaudit.model.window import Window, coalesced
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class TraceWriting:
    """Writes what a batch brings. `earlier`: the traces of the batches before it.

    An id that comes again, in the batch or since, has all of its traces near put into TRACES: who
    is there is looked for in no kept file.
    """

    warehouse: Warehouse
    batch: Batch
    earlier: StreamTraces
    bucket: timedelta

    def append_judged(self, judged: DataFrame, tally: TraceTally) -> int:
        """Writes all good rows of a batch; gives how many ids it counts.

        Input:
            judged: `judged_traces`, read.
        """
        if tally.buckets is None:
            return 0
        known, repeated = self._known(judged, tally.buckets)
        self._append_traces(new_traces(judged, known, repeated), known)
        return self.append_fingerprints(tally.days)

    def append_kept(self, rows: KeptRows) -> int:
        """Writes the traces of ids that come again, and the fingerprints of all; counts the ids."""
        if rows.tally.buckets is None:
            return 0
        known, repeated = self._known(rows.ids, rows.tally.buckets)
        traces, several = rows.traces.withColumn("id_hash", id_hash()), F.broadcast(repeated)
        if not repeated.isEmpty():
            nowhere = {"file": F.lit(None).cast("string"), "line": F.lit(None).cast("bigint")}
            fresh = traces.join(several, ["id_hash"], how="left_semi").withColumns(nowhere)
            self._append_traces(told_traces(fresh, known), known)
        # Presence only: `repeated` is unique on its column.
        single = traces.join(several, ["id_hash"], how="left_anti")
        single = single.withColumn("counted", F.lit(True)).select(*GIVEN, "counted")
        stored = self.own(rows.tally.days).select(*GIVEN, "counted")
        self._append_fingerprints(stored.unionByName(single))
        single_ids = rows.ids.join(several, ["id_hash"], how="left_anti")
        return stored.where(F.col("counted")).count() + single_ids.count()

    def append_fingerprints(self, days: Collection[date]) -> int:
        """Writes the fingerprints of what the batch stored; gives how many ids it counts."""
        own = self.own(days)
        self._append_fingerprints(own)
        return own.where(F.col("counted")).count()

    def own(self, days: Collection[date] | None = None) -> DataFrame:
        """What the batch stored of its own: TRACES."""
        stored = self.warehouse.read(TRACES).where(
            (F.col("stream") == self.batch.stream)
            & (F.col("batch_id") == self.batch.batch_id)
            & F.col("moved").isNull()
        )
        return stored if days is None else stored.where(F.col("sent_day").isin(sorted(days)))

    def _known(
        self, judged: DataFrame, buckets: tuple[datetime, datetime]
    ) -> tuple[DataFrame, DataFrame]:
        """What other batches brought of the ids that come again; and the hashes of those; read.

        Input:
            judged: `reason`, `id_hash`, `bucket_start` of the batch's rows.
        """
        first, last = buckets
        reach = Window(first - REACH, last + REACH + self.bucket)
        known = self.earlier.places([reach], but=self.batch.batch_id)
        places = known_places(judged, known).localCheckpoint()
        repeated = repeated_ids(judged, places).localCheckpoint()
        starts = [row.bucket_start for row in collected(places.select("bucket_start").distinct())]
        near = coalesced(starts, width=self.bucket, limit=SCAN_WINDOWS)
        known = self.earlier.within(near, but=self.batch.batch_id).withColumn("id_hash", id_hash())
        # Presence only: `repeated` is unique on its column.
        known = known.join(F.broadcast(repeated), ["id_hash"], how="left_semi")
        return known.localCheckpoint(), repeated

    def _append_traces(self, new: DataFrame, known: DataFrame) -> None:
        """Writes new traces, and those of their ids that were in kept files alone."""
        moved = known.where(F.col("is_kept")).select(*TRACED).withColumn("moved", F.lit(True))
        traces = (
            new.select(*TRACED)
            .withColumn("moved", F.lit(None).cast("boolean"))
            .unionByName(moved)
            .withColumn("batch_id", F.lit(self.batch.batch_id))
            .withColumn("stream", F.lit(self.batch.stream))
            .withColumn("sent_day", F.to_date("bucket_start"))
        )
        self.warehouse.append(traces, TRACES, retried=self.batch.retried)

    def _append_fingerprints(self, own: DataFrame) -> None:
        # From what is stored or kept, not from what was read: after a crash both are the same.
        fingerprints = (
            trace_fingerprints(own)
            .withColumn("batch_id", F.lit(self.batch.batch_id))
            .withColumn("stream", F.lit(self.batch.stream))
            .withColumn("side", F.lit(self.batch.side))
        )
        self.warehouse.append(fingerprints, FINGERPRINTS, retried=self.batch.retried)
