"""What was delivered minute by minute and shard by shard: of cells and ledger, without Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import EPOCH, Window, joined
from shardaudit.store.audits import CELL_SUMS, audits_of
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments
from shardaudit.store.cells import Integers, dictionary, field_within, micros, newest_batches
from shardaudit.store.delivery import DELIVERED, Delivery

_HOUR = timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Deliveries:
    """A stream's window by the start of each bucket, and by shard, as far as audits looked."""

    window: Window
    buckets: Mapping[datetime, Delivery]
    shards: Mapping[str, Delivery]

    @cached_property
    def whole(self) -> Delivery:
        """All of it."""
        return sum(self.buckets.values(), start=Delivery())

    @cached_property
    def audited(self) -> list[Window]:
        """The time of which there are cells, in order."""
        return joined(Window(at, at + of.audited) for at, of in self.buckets.items())

    @property
    def unaudited(self) -> list[Window]:
        """The rest of the window: nothing is known of it."""
        spans = self.audited
        starts = [self.window.start, *(span.end for span in spans)]
        ends = [*(span.start for span in spans), self.window.end]
        return [Window(start, end) for start, end in zip(starts, ends, strict=True) if start < end]

    @property
    def hours(self) -> dict[datetime, Delivery]:
        """The same by full hours (UTC), also those of which nothing is known."""
        found = {part.start: Delivery() for part in self.window.aligned(_HOUR).parts(_HOUR)}
        for at, delivery in self.buckets.items():
            found[at - (at - EPOCH) % _HOUR] += delivery
        return found


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of columns by bucket (microseconds since 1970) and by shard."""

    buckets: dict[int, Integers] = field(default_factory=dict)
    shards: dict[str, Integers] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch, values: Integers) -> None:
        """Adds a row of values for each row of the batch."""
        for at, sums in _by_code(micros(batch.column("bucket_start")), values):
            self.buckets[at] = self.buckets.get(at, 0) + sums
        shards = dictionary(batch.column("shard_id"))
        for code, sums in _by_code(shards.indices.to_numpy(), values):
            name = shards.dictionary[code].as_py()
            self.shards[name] = self.shards.get(name, 0) + sums


def read_deliveries(settings: Settings, name: str, window: Window) -> Deliveries:
    """Each cell of the window as the newest published audit of its minute saw it.

    Latencies are those of the ledger as it is now, in the time that audits looked at.

    Input:
        window: of whole buckets.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables = DeltaRs(settings.warehouse, settings.aws)
    segments = newest_segments(audit_spans(audits_of(settings, name)), window)
    cells = _cells(tables, segments)
    latencies = _latencies(tables, name, segments, sorted(cells.buckets))
    return Deliveries(
        window,
        {
            EPOCH + at * _MICROSECOND: _delivery(sums, latencies.buckets.get(at), is_bucket=True)
            for at, sums in cells.buckets.items()
        },
        {
            shard: _delivery(sums, latencies.shards.get(shard), is_bucket=False)
            for shard, sums in cells.shards.items()
        },
    )


def _delivery(sums: Integers, latencies: Integers | None, *, is_bucket: bool) -> Delivery:
    *counts, length_us = sums.tolist()
    found = dict(zip(DELIVERED, counts, strict=True))
    # All cells of a bucket are of the same time, those of a shard one after the other.
    audited_us = length_us // found["cells"] if is_bucket else length_us
    of_latency = {} if latencies is None else {"latencies": tuple(latencies.tolist())}
    return Delivery(audited_us * _MICROSECOND, found, **of_latency)


def _cells(tables: DeltaRs, segments: Sequence[Segment]) -> _Sums:
    """`DELIVERED`, and the length in microseconds."""
    found = _Sums()
    columns = ["shard_id", "bucket_start", "bucket_end", "verdict", *CELL_SUMS]
    for batch in newest_batches(tables, segments, columns=columns, dictionaries=("shard_id",)):
        if batch.num_rows:
            is_inconclusive = pc.equal(batch.column("verdict"), Verdict.INCONCLUSIVE.value)
            values = (
                np.ones(batch.num_rows, np.int64),
                is_inconclusive.to_numpy(zero_copy_only=False),
                *(batch.column(name).to_numpy() for name in CELL_SUMS),
                micros(batch.column("bucket_end")) - micros(batch.column("bucket_start")),
            )
            found.add(batch, np.stack(values, axis=1))
    return found


def _latencies(
    tables: DeltaRs, name: str, segments: Sequence[Segment], starts: Sequence[int]
) -> _Sums:
    """Rows by bin of latency.

    Input:
        starts: of the buckets that count, microseconds since 1970.
    """
    found = _Sums()
    spans = joined(Window(segment.start, segment.end) for segment in segments)
    if not spans:
        return found
    first, last = spans[0].start, spans[-1].end
    where = (
        (pc.field("stream") == name)
        & (pc.field("side") == "sink")
        & (pc.field("sent_day") >= pc.scalar(first.date()))
        & (pc.field("sent_day") <= pc.scalar(last.date()))
        & field_within("bucket_start", first, last)
        & pc.field("latency_counts").is_valid()
    )
    columns = ["shard_id", "bucket_start", "latency_counts"]
    for batch in tables.batches(
        FINGERPRINTS, columns=columns, where=where, dictionaries=("shard_id",)
    ):
        counted = batch.filter(pa.array(np.isin(micros(batch.column("bucket_start")), starts)))
        if counted.num_rows:
            counts = counted.column("latency_counts").flatten().to_numpy()
            found.add(counted, counts.reshape(-1, LATENCY_BINS))
    return found


def _by_code(codes: Integers, values: Integers) -> list[tuple[int, Integers]]:
    """Each code with the sums of its rows."""
    order = np.argsort(codes, kind="stable")
    found, first = np.unique(codes[order], return_index=True)
    return list(zip(found.tolist(), np.add.reduceat(values[order], first), strict=True))
