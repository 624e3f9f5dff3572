"""What a batch of traces leaves in the warehouse: traces and fingerprints."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.columns.ledger_sums import id_hash
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.kept_traces import KeptRows
from shardaudit.ingest.rules.fingerprint import trace_fingerprints, trace_sums
from shardaudit.ingest.rules.repeats import (
    REACH,
    known_places,
    repeated_ids,
    single_traces,
    told_traces,
    unknown_traces,
)
from shardaudit.ingest.stream_traces import TRACED, StreamTraces
from shardaudit.ingest.trace_tally import TraceTally
from shardaudit.model.config.eras import Eras
from shardaudit.model.tables.audit_tables import FINGERPRINTS, TRACES
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

MOST_REPEATED = 500_000  # ids that come again of which all traces are compared at once


@dataclass(frozen=True, slots=True)
class TraceWriting:
    """Writes what a batch brings. `earlier`: the traces of the batches before it.

    An id of which the batch brings another trace, or keeps one that was there, has all of its
    traces near put into TRACES: who is there is looked for in no kept file.
    """

    warehouse: Warehouse
    batch: Batch
    earlier: StreamTraces
    shape: Eras

    def append_judged(self, judged: DataFrame, tally: TraceTally, *, read_at: datetime) -> int:
        """Writes all good rows of a batch; gives how many ids it counts.

        In parts, by ids: so no night has too many that come again for the engine's memory. What an
        earlier try wrote of the batch is taken back before.

        Input:
            judged: `judged_traces`, read.
        """
        if tally.buckets is None:
            return 0
        near, repeated = self._repeated(judged, tally.buckets)
        parts = 1 + repeated.count() // MOST_REPEATED
        for part in range(parts):
            is_of_part = F.pmod("id_hash", F.lit(parts)) == part
            some, rows = repeated.where(is_of_part), judged.where(is_of_part)
            good = rows.where(F.col("reason").isNull())
            # Presence only: `some` is unique on its column.
            fresh = good.join(F.broadcast(some), ["id_hash"], how="left_semi")
            known = self._known(near, some)
            unknown = unknown_traces(fresh, known).localCheckpoint()
            # Of what only comes again nothing is stored, and nothing moved.
            ids = F.broadcast(unknown.select("message_id").distinct())
            known = known.join(ids, ["message_id"], how="left_semi")
            new = single_traces(rows, some).unionByName(told_traces(unknown, known))
            self._append_traces(new, known, read_at=read_at)
        return self.append_fingerprints(tally)

    def append_kept(self, rows: KeptRows, *, read_at: datetime) -> tuple[TraceTally, int] | None:
        """Writes the traces of ids that come again, or are ahead; fingerprints; counts the ids.

        Output:
            None, and nothing is written, where a row is not good, or so many come again that no
            kept file should have them: each audit would read them twice.
        """
        near, repeated = self._repeated(rows.ids, rows.buckets)
        if repeated.count() > MOST_REPEATED:
            return None
        apart = self._apart(repeated, rows.ahead)
        found = rows.single_sums(but=apart)
        if found is None:
            return None
        single, tally = found
        if tally.buckets is None:
            return tally, 0
        if not apart.isEmpty():
            known = self._known(near, repeated)
            traces = rows.traces.withColumn("id_hash", id_hash())
            nowhere = {"file": F.lit(None).cast("string"), "line": F.lit(None).cast("bigint")}
            fresh = traces.join(F.broadcast(apart), ["id_hash"], how="left_semi")
            told = told_traces(fresh.withColumns(nowhere), known)
            self._append_traces(told, known, read_at=read_at, retried=self.batch.retried)
        sums = trace_sums(self.own(tally.days)).unionByName(single)
        self._append_fingerprints(sums, most=tally.good)
        [row] = collected(sums.agg(F.coalesce(F.sum("n"), F.lit(0)).alias("n")))
        return tally, row.n

    def _apart(self, repeated: DataFrame, ahead: DataFrame) -> DataFrame:
        """The ids of which the batch puts its traces into TRACES: `id_hash`, unique; read.

        A file does not say when it was read: by then those ahead had arrived, see `trace_arrival`.
        A version that died over the batch may have written those alone that came again.
        """
        if self.batch.retried:
            stored = self.own().select(id_hash()).distinct().localCheckpoint()
            if not stored.isEmpty():
                ahead = ahead.join(stored, ["id_hash"], how="left_semi")
        return repeated.union(ahead).distinct().localCheckpoint()

    def append_fingerprints(self, tally: TraceTally) -> int:
        """Writes the fingerprints of what the batch stored; gives how many ids it counts."""
        own = self.own(tally.days)
        self._append_fingerprints(trace_sums(own), most=tally.good)
        return own.where(F.col("counted")).count()

    def own(self, days: Collection[date] | None = None) -> DataFrame:
        """What the batch stored of its own: TRACES."""
        stored = self.warehouse.read(TRACES).where(
            (F.col("stream") == self.batch.stream)
            & (F.col("batch_id") == self.batch.batch_id)
            & F.col("moved").isNull()
        )
        return stored if days is None else stored.where(F.col("sent_day").isin(sorted(days)))

    def _repeated(
        self, judged: DataFrame, buckets: tuple[datetime, datetime]
    ) -> tuple[list[Window], DataFrame]:
        """Where other batches brought ids that come again; `id_hash` of all that do; read.

        Input:
            judged: `reason`, `id_hash` of the batch's rows.
        """
        first, last = buckets
        reach = Window(first - REACH, last + REACH + self.shape.widest)
        known = self.earlier.places([reach], but=self.batch.batch_id)
        places = known_places(judged, known).localCheckpoint()
        repeated = repeated_ids(judged, places).localCheckpoint()
        starts = [row.bucket_start for row in collected(places.select("bucket_start").distinct())]
        return self.shape.covering(starts), repeated

    def _known(self, near: Sequence[Window], repeated: DataFrame) -> DataFrame:
        """What other batches brought of the ids that come again; read.

        Input:
            near, repeated: of `_repeated`.
        """
        known = self.earlier.within(near, but=self.batch.batch_id).withColumn("id_hash", id_hash())
        # Presence only: `repeated` is unique on its column.
        return known.join(F.broadcast(repeated), ["id_hash"], how="left_semi").localCheckpoint()

    def _append_traces(
        self, new: DataFrame, known: DataFrame, *, read_at: datetime, retried: str | None = None
    ) -> None:
        """Writes new traces, and those of their ids that were in kept files alone."""
        moved = known.where(F.col("is_kept")).select(*TRACED).withColumn("moved", F.lit(True))
        traces = (
            new.withColumn("ingested_at", F.lit(read_at))
            .select(*TRACED)
            .withColumn("moved", F.lit(None).cast("boolean"))
            .unionByName(moved)
            .withColumn("batch_id", F.lit(self.batch.batch_id))
            .withColumn("stream", F.lit(self.batch.stream))
            .withColumn("sent_day", F.to_date("bucket_start"))
        )
        self.warehouse.append(traces, TRACES, retried=retried)

    def _append_fingerprints(self, sums: DataFrame, *, most: int) -> None:
        # From what is stored or kept, not from what was read: after a crash both are the same.
        fingerprints = (
            trace_fingerprints(sums)
            .withColumn("batch_id", F.lit(self.batch.batch_id))
            .withColumn("stream", F.lit(self.batch.stream))
            .withColumn("side", F.lit(self.batch.side))
        )
        self.warehouse.append(fingerprints, FINGERPRINTS, most=most, retried=self.batch.retried)
