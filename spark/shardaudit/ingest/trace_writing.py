"""What a batch of traces leaves in the warehouse: traces, fingerprints, files kept as they came."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.embedded import is_embedded
from shardaudit.adapters.files.access_refused import AccessRefusedError
from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.files.parquet_traces import kept_files, readable
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.columns.ledger_sums import id_hash
from shardaudit.ingest.batches import Batch
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.ingest.rules.fingerprint import trace_fingerprints
from shardaudit.ingest.rules.refused_traces import (
    GIVEN,
    TraceRules,
    judged_traces,
    kept_traces,
    loose_traces,
    sampled,
)
from shardaudit.ingest.rules.repeats import (
    REACH,
    known_places,
    repeated_ids,
    single_traces,
    told_traces,
    unknown_traces,
)
from shardaudit.ingest.sink_reading import Scan
from shardaudit.ingest.stream_traces import TRACED, StreamTraces
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.model.tables.audit_tables import FINGERPRINTS, TRACES
from shardaudit.model.window import Window, coalesced
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_BYTES = 5 * 2**30  # S3 copies no more in one request
_MIB = 2**20
_FEW = 16
_FEW_AHEAD = 1_000_000  # of more the rows are read one by one
MOST_REPEATED = 500_000  # ids that come again of which all traces are compared at once


@dataclass(frozen=True, slots=True)
class TraceTally:
    """What is in the files of a batch. `damaged`: path -> reason; `kept_from`: path -> time.

    `first`: the least `sent_at` that was kept; `sighted`: traces of other places, beside `good`.
    """

    good: int
    bad: int
    damaged: Mapping[str, str]
    kept_from: Mapping[str, datetime]
    first: datetime | None
    buckets: tuple[datetime, datetime] | None
    days: frozenset[date]
    sighted: int = 0


def tallied(judged: DataFrame) -> TraceTally:
    """The tally of a batch.

    Input:
        judged: of `judged_traces`.
    """
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
    return TraceTally(
        good=sum(row.good for row in rows),
        bad=sum(row.bad for row in rows),
        damaged={row.file: row.damage for row in rows if row.damage is not None},
        kept_from={row.file: row.kept_from for row in kept},
        first=min((row.kept_from for row in kept), default=None),
        buckets=(starts[0], starts[-1]) if starts else None,
        days=frozenset(day for row in rows for day in row.days),
    )


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a batch's kept files; all of them are good.

    `traces`: GIVEN, not read yet; `ids`: what tells them apart, read: `reason` (NULL), `id_hash`,
    `bucket_start`. `ahead`: `id_hash`, unique, of those that arrive after the ingest by the clock
    of their producer.
    """

    traces: DataFrame
    ids: DataFrame
    ahead: DataFrame
    tally: TraceTally


def kept_copies(warehouse: Warehouse, batch: Batch, inputs: TraceInputs) -> KeptFiles | None:
    """Copies the batch's files into the warehouse; None when they are not all plain.

    Raises:
        StorageError: the storage did not answer behind the copies.
    """
    if inputs.format != "parquet" or not _is_worth_it(inputs.files):
        return None
    reader, folder = SinkReader(warehouse.spark, warehouse.access), _folder(batch)
    targets = [f"{folder}/{n:05}.parquet" for n in range(len(inputs.files))]
    try:
        found = reader.footers(inputs.files).values()
    except (StorageError, AccessRefusedError) as error:
        log.warning("the files are read row by row: %s", error)
        return None
    footers = {SourceFile(to, 0, 0): footer for to, footer in zip(targets, found, strict=True)}
    if kept_files(footers, inputs.columns, warehouse.kept_folder) is None:
        return None
    try:
        copies = warehouse.keep(inputs.files, targets)
    except (FileNotFoundError, StorageError, AccessRefusedError) as error:
        # Whether a file is gone, or the storage makes no copies, is found when its rows are read.
        log.warning("the files are read row by row: no copies: %s", error)
        discarded(warehouse, batch)
        return None
    # What was copied counts: a file may have changed since it was listed.
    found = reader.footers(copies).values()
    below = (replace(c, path=to) for c, to in zip(copies, targets, strict=True))
    footers = dict(zip(below, found, strict=True))
    kept = kept_files(footers, inputs.columns, warehouse.kept_folder)
    return kept or KeptFiles({}, tuple(footers), ())


def _is_worth_it(files: Sequence[SourceFile]) -> bool:
    """Whether the files are few and large enough to be opened by every audit of their time."""
    sizes = [file.size_bytes for file in files]
    return max(sizes) <= _MOST_BYTES and (len(sizes) <= _FEW or sum(sizes) >= _MIB * len(sizes))


def discarded(warehouse: Warehouse, batch: Batch) -> None:
    """Deletes the copies of a batch, if it can: nothing reads them any more."""
    try:
        warehouse.discard(_folder(batch))
    except (FileNotFoundError, StorageError, AccessRefusedError) as error:
        log.warning("%s: its copies stay in the warehouse: %s", batch.batch_id, error)


def _folder(batch: Batch) -> str:
    return f"stream={batch.batch_id}"  # a stream's name may be two dots


def kept_rows(warehouse: Warehouse, inputs: TraceInputs, rules: TraceRules) -> KeptRows | None:
    """The rows of the kept files; None when one of them cannot be used, or is no producer's.

    Raises:
        StorageError: the storage did not answer.
    """
    if inputs.kept is None or not inputs.kept.columns:
        return None
    reader, shape = SinkReader(warehouse.spark, warehouse.access), inputs.shape
    files = readable(inputs.kept, warehouse.kept_folder)
    try:
        rows = reduce(DataFrame.unionByName, reader.frames(files))
        # What is kept is read as the producer's, whatever is in it.
        alone = replace(rules, places=())
        loose = loose_traces(rows, may_be_torn=not is_embedded(warehouse.spark))
        judged = sampled(judged_traces(loose, alone), shape.sample_rate)
        is_ahead = F.greatest("sent_at", "acked_at") > F.lit(rules.now)
        ids = judged.select(
            *("file", "line", "reason", "id_hash", "sent_at", "bucket_start"),
            is_ahead.alias("is_ahead"),
        )
        ids = Scan(rows, files, reader).materialized(ids)
    except UnsoundFilesError as error:
        log.info("the files are read row by row: %s", error)
        return None
    tally = tallied(ids)
    if tally.bad:
        return None
    ahead = ids.where(F.col("is_ahead")).select("id_hash").distinct()
    if ahead.count() > _FEW_AHEAD:
        return None
    traces = kept_traces(rows, bucket=shape.bucket, sample_rate=shape.sample_rate)
    return KeptRows(traces, ids, ahead, tally)


@dataclass(frozen=True, slots=True)
class TraceWriting:
    """Writes what a batch brings. `earlier`: the traces of the batches before it.

    An id of which the batch brings another trace, or keeps one that was there, has all of its
    traces near put into TRACES: who is there is looked for in no kept file.
    """

    warehouse: Warehouse
    batch: Batch
    earlier: StreamTraces
    bucket: timedelta

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

    def append_kept(self, rows: KeptRows, *, read_at: datetime) -> int | None:
        """Writes the traces of ids that come again, or are ahead; fingerprints; counts the ids.

        Output:
            None, and nothing is written, where so many come again that no kept file should have
            them: each audit would read them twice.
        """
        if rows.tally.buckets is None:
            return 0
        near, repeated = self._repeated(rows.ids, rows.tally.buckets)
        if repeated.count() > MOST_REPEATED:
            return None
        known = self._known(near, repeated)
        # A file does not say when it was read: by then they had arrived, see `trace_arrival`.
        wanted = repeated.union(rows.ahead).distinct().localCheckpoint()
        traces = rows.traces.withColumn("id_hash", id_hash())
        if not wanted.isEmpty():
            nowhere = {"file": F.lit(None).cast("string"), "line": F.lit(None).cast("bigint")}
            fresh = traces.join(F.broadcast(wanted), ["id_hash"], how="left_semi")
            told = told_traces(fresh.withColumns(nowhere), known)
            self._append_traces(told, known, read_at=read_at, retried=self.batch.retried)
        stored = self.own(rows.tally.days)
        # A version that died over the batch may have written those alone that came again.
        ahead = stored.select(id_hash()).join(F.broadcast(rows.ahead), ["id_hash"], how="left_semi")
        several = F.broadcast(repeated.union(ahead).distinct().localCheckpoint())
        # Presence only: `several` is unique on its column.
        single = traces.join(several, ["id_hash"], how="left_anti")
        single = single.withColumn("counted", F.lit(True)).select(*GIVEN, "counted")
        single = single.withColumn("ingested_at", F.lit(None).cast("timestamp"))
        stored = stored.select(single.columns)
        self._append_fingerprints(stored.unionByName(single), most=rows.tally.good)
        single_ids = rows.ids.join(several, ["id_hash"], how="left_anti")
        counted = stored.where(F.col("counted")).select(F.lit(1))
        return counted.union(single_ids.select(F.lit(1))).count()

    def append_fingerprints(self, tally: TraceTally) -> int:
        """Writes the fingerprints of what the batch stored; gives how many ids it counts."""
        own = self.own(tally.days)
        self._append_fingerprints(own, most=tally.good)
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
            judged: `reason`, `id_hash`, `bucket_start` of the batch's rows.
        """
        first, last = buckets
        reach = Window(first - REACH, last + REACH + self.bucket)
        known = self.earlier.places([reach], but=self.batch.batch_id)
        places = known_places(judged, known).localCheckpoint()
        repeated = repeated_ids(judged, places).localCheckpoint()
        starts = [row.bucket_start for row in collected(places.select("bucket_start").distinct())]
        return coalesced(starts, width=self.bucket), repeated

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

    def _append_fingerprints(self, own: DataFrame, *, most: int) -> None:
        # From what is stored or kept, not from what was read: after a crash both are the same.
        fingerprints = (
            trace_fingerprints(own)
            .withColumn("batch_id", F.lit(self.batch.batch_id))
            .withColumn("stream", F.lit(self.batch.stream))
            .withColumn("side", F.lit(self.batch.side))
        )
        self.warehouse.append(fingerprints, FINGERPRINTS, most=most, retried=self.batch.retried)
