"""The traces of a stream: those in TRACES, and those in files that are kept as they came.

Where an id comes again, all of its traces near are put into TRACES, and its rows in kept files are
passed over there: see `TraceWriting`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, reduce
from itertools import chain

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import bare, own_rows
from shardaudit.adapters.files.parquet_traces import readable
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.adapters.lake.sink_file import SinkFile
from shardaudit.adapters.lake.sink_rows import SinkReader, UnsoundFilesError
from shardaudit.columns.instants import any_of, in_windows
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.ingest.rules.refused_traces import GIVEN, kept_traces
from shardaudit.ingest.rules.repeats import REACH
from shardaudit.model.config.eras import Eras
from shardaudit.model.errors import FinalError
from shardaudit.model.source import KeptFiles
from shardaudit.model.tables.audit_tables import BATCHES, TRACES
from shardaudit.model.window import EPOCH, Window
from shardaudit.store.audits import done_batches
from shardaudit.store.warehouse import Warehouse

# What is told of each trace, wherever it is.
TRACED = (*GIVEN, "counted", "counted_in", "ingested_at")
BROUGHT_DDL = "message_id string, shard_id string, bucket_start timestamp, number bigint"
APART = ("message_id", "bucket_start", "counted_in")

_US = timedelta(microseconds=1)


class LostCopyError(FinalError, OSError):
    """A copy of a trace file is not as it was made: of batches that are done no run touches any."""

    def __init__(self, path: str, reason: str, *, original: str) -> None:
        super().__init__(
            f"{path}: {reason}; it is the warehouse's own copy of {original}, which no run makes "
            "again: bring it back from a backup, or copy that file there again, if it is as it was"
        )


@dataclass(frozen=True)
class StreamTraces:
    """The traces that batches brought. `batches`: the inputs of those that are done."""

    warehouse: Warehouse
    name: str
    batches: Sequence[TraceInputs]

    @classmethod
    def of(cls, warehouse: Warehouse, name: str) -> "StreamTraces":
        """All of a stream."""
        done = _done_batches(warehouse, name)
        return cls(warehouse, name, [TraceInputs.from_json(row["inputs"]) for row in done])

    def batches_since(self, at: datetime) -> list[str]:
        """The batches that were done at that time, or later."""
        done = _done_batches(self.warehouse, self.name)
        return [row["batch_id"] for row in done if row["done_at"] >= at]

    def within(
        self,
        windows: Sequence[Window],
        *,
        but: str | None = None,
        ids: DataFrame | None = None,
    ) -> DataFrame:
        """The traces in some windows of whole buckets, without what the batch `but` stored.

        Input:
            ids: `message_id`: those of these alone; few.
        Output:
            TRACED, `is_kept` (boolean: it is in a kept file alone).
        """
        stored = self._stored(windows)
        if but is not None:
            stored = stored.where(F.col("batch_id") != but)
        frames = self._kept(windows, self.batches)
        if ids is not None:  # presence only
            stored, *frames = (
                rows.join(F.broadcast(ids.select("message_id")), ["message_id"], how="left_semi")
                for rows in (stored, *frames)
            )
        own = stored.select(*TRACED, F.lit(False).alias("is_kept"))
        if not frames:
            return own
        known = stored.select("bucket_start", "message_id")
        kept = (
            reduce(DataFrame.unionByName, frames)
            # Presence only.
            .join(known, ["bucket_start", "message_id"], how="left_anti")
            .withColumn("counted", F.lit(True))
            .withColumns({n: F.lit(None).cast("timestamp") for n in ("counted_in", "ingested_at")})
            .select(*TRACED, F.lit(True).alias("is_kept"))
        )
        return bare(own).unionByName(kept)

    def apart(self, windows: Sequence[Window]) -> DataFrame:
        """The traces that count in another bucket than their own, one in the windows: APART."""
        # A kept file has none: an id that came again is in the table.
        near = [Window(window.start - REACH, window.end + REACH) for window in windows]
        return self._stored(near).where(F.col("counted_in").isNotNull()).select(*APART)

    def uncounted(self, windows: Sequence[Window]) -> DataFrame:
        """The traces in some windows of ids that count elsewhere, or by another one: TRACED."""
        # A kept file has none: an id that came again is in the table.
        return self._stored(windows).where(~F.col("counted")).select(*TRACED)

    def brought(self, windows: Sequence[Window], ids: DataFrame) -> DataFrame:
        """By which batch of traces some ids came first to each of their cells in some windows.

        Input:
            ids: with `message_id`.
        Output:
            `message_id`, `shard_id`, `bucket_start`, unique together; `number` (of the batch).
        """
        done = _done_batches(self.warehouse, self.name)
        numbers = own_rows(
            self.warehouse.spark,
            [(row["batch_id"], int(row["number"])) for row in done],
            "batch_id string, number bigint",
        )
        place = ("message_id", "shard_id", "bucket_start")
        # What was moved here came with the file in which it still is. Unique on the right.
        stored = self._stored(windows).where(F.col("moved").isNull())
        frames = [stored.join(F.broadcast(numbers), ["batch_id"], how="inner")]
        for row in done:
            number = F.lit(int(row["number"])).cast("bigint").alias("number")
            kept = self._kept(windows, [TraceInputs.from_json(row["inputs"])])
            frames += [rows.select(*place, number) for rows in kept]
        each = reduce(DataFrame.unionByName, (f.select(*place, "number") for f in frames))
        # Presence only.
        each = each.join(ids.select("message_id"), ["message_id"], how="left_semi")
        return each.groupBy(*place).agg(F.min("number").alias("number"))

    def places(self, windows: Sequence[Window], *, but: str) -> DataFrame:
        """Where their ids are: `message_id`, `bucket_start`; not unique.

        The narrow form of `within`, which compares no two of them.
        """
        places = self._stored(windows).where(F.col("batch_id") != but)
        columns = ("message_id", "bucket_start")
        frames = [frame.select(*columns) for frame in self._kept(windows, self.batches)]
        return reduce(DataFrame.unionByName, frames, bare(places.select(*columns)))

    def _stored(self, windows: Sequence[Window]) -> DataFrame:
        return self.warehouse.read(TRACES).where(
            (F.col("stream") == self.name)
            & in_days(windows)
            & in_windows(F.col("bucket_start"), windows)
        )

    @cached_property
    def _reader(self) -> SinkReader:
        return SinkReader(self.warehouse.spark, self.warehouse.access)

    def _kept(self, windows: Sequence[Window], batches: Sequence[TraceInputs]) -> list[DataFrame]:
        """The rows of the batches' kept files, not read yet: GIVEN."""
        groups: dict[tuple[Eras, object], list[KeptFiles]] = {}
        for inputs in batches:
            near = inputs.kept and _near(inputs.kept, windows)
            if near:
                same = (inputs.shape, tuple(sorted(near.columns.items())))
                groups.setdefault(same, []).append(near)
        return [
            kept_traces(
                rows.where(in_windows(F.col("sent_at").cast("timestamp"), windows)),
                shape=shape,
            )
            for (shape, _), alike in groups.items()
            for rows in self._frames(
                [file for kept in alike for file in readable(kept, self.warehouse.kept_folder)]
            )
        ]

    def _frames(self, files: Sequence[SinkFile]) -> list[DataFrame]:
        """The rows of copies, not read yet.

        Raises:
            LostCopyError: one is gone or broken, also when it is asked for anew.
        """
        try:
            return self._reader.frames(files)
        except UnsoundFilesError as error:
            faults = SinkReader(self.warehouse.spark, self.warehouse.access).faults(files)
            for path, reason in sorted(faults.items()):
                raise LostCopyError(path, reason, original=self._original(path)) from error
            raise

    def _original(self, path: str) -> str:
        """The trace file of which a copy was made."""
        done = (
            TraceInputs.from_json(row["inputs"]) for row in _done_batches(self.warehouse, self.name)
        )
        pairs = (zip(i.kept.files, i.files, strict=True) for i in done if i.kept)
        folder = self.warehouse.kept_folder
        return {f"{folder}/{copy.path}": file.path for copy, file in chain.from_iterable(pairs)}[
            path
        ]


def _done_batches(warehouse: Warehouse, name: str) -> list[Row]:
    """The batches of a stream's traces that are done: rows of BATCHES."""
    return warehouse.rows(BATCHES, where=done_batches(name) & (pc.field("side") == "traces"))


def _near(kept: KeptFiles, windows: Sequence[Window]) -> KeptFiles | None:
    """The files that may have rows in the windows; None when there are none."""
    found = [
        (file, (low, high))
        for file, (low, high) in zip(kept.files, kept.spans, strict=True)
        if any(w.start <= EPOCH + high * _US and EPOCH + low * _US < w.end for w in windows)
    ]
    if not found:
        return None
    return KeptFiles(kept.columns, tuple(file for file, _ in found), tuple(s for _, s in found))


def in_days(windows: Sequence[Window]) -> Column:
    """Whether `sent_day` may be that of a bucket in one of the windows."""
    day, spans = F.col("sent_day"), {(w.start.date(), w.end.date()) for w in windows}
    return any_of([day.between(F.lit(first), F.lit(last)) for first, last in sorted(spans)])
