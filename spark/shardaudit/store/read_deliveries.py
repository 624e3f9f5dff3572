"""What was delivered minute by minute and shard by shard: of cells and ledger, without Spark.

In counts that add up: a week is the sum of its minutes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from math import inf, sqrt
from operator import add

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.rates import DUE, audit_rates, counts_of_rates, landed_ids
from shardaudit.model.tables.audit_tables import AUDITS, FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import EPOCH, Window, joined
from shardaudit.report.delivery_view import Between, DeliveryLine, LatencyLine
from shardaudit.store.audits import CELL_SUMS, published_of, read_rows
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments, quantile
from shardaudit.store.cells import Integers, dictionary, field_within, micros, newest_batches

DELIVERED = ("cells", "inconclusive", *CELL_SUMS)
_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
_NO_END = 2.0 ** (LATENCY_BINS - 1)  # what `quantile` says of the last bin, which is open
_THIRDS = 80  # cut off: 10^6 s are some nanoseconds then
_HOUR = timedelta(hours=1)
HOUR_US = _HOUR // timedelta(microseconds=1)
_MICROSECOND = timedelta(microseconds=1)
MOST_HOURS = 100_000  # of shards: a kB each, and a line of a table


@dataclass(frozen=True, slots=True)
class Delivery:
    """Cells that the newest audits of their minutes saw, and the latencies of their rows.

    `audited`: how much time that is; none of it: nothing is known. `counts`: by `DELIVERED`: how
    many cells, how many of them inconclusive, and what all add up to. `latencies`: rows by bin of
    latency, those with a landing time that no backfill landed.
    """

    audited: timedelta = timedelta(0)
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(DELIVERED, 0))
    latencies: tuple[int, ...] = (0,) * LATENCY_BINS

    def __add__(self, other: "Delivery") -> "Delivery":
        """Of both, which share no time, or no shard of one time."""
        return Delivery(
            self.audited + other.audited,
            {name: self.counts[name] + other.counts[name] for name in DELIVERED},
            tuple(map(add, self.latencies, other.latencies)),
        )

    @property
    def landed_ids(self) -> int:
        """Messages that landed, however often."""
        return landed_ids(self.counts)

    @property
    def filtered(self) -> dict[str, int]:
        """Under its name what filters left out by design: audits of before had none of that."""
        return {"filtered": self.counts["sent"] - sum(self.counts[name] for name in DUE)}

    def line(self, name: str | None, *, sample_rate: float) -> DeliveryLine:
        """What a reader is told of it."""
        if not self.audited:
            return DeliveryLine(name, 0.0, None)
        seconds, counts = self.audited.total_seconds(), self.counts
        known, is_known = {**counts, **self.filtered}, counts["inconclusive"] < counts["cells"]
        return DeliveryLine(
            name,
            seconds,
            known,
            shares={
                name: count / of if of and is_known else None
                for name, (count, of) in counts_of_rates(known).items()
            },
            rates=audit_rates(known, sample_rate=sample_rate) if is_known else {},
            sent_per_s=counts["sent"] / seconds,
            landed_per_s=counts["landed"] / seconds,
            latency=latency_line(self.latencies),
        )


@dataclass(frozen=True)
class Deliveries:
    """A stream's window by the start of each bucket, and by shard, as far as audits looked.

    `hours_of_shards`: by the start of each hour and by shard, where that was asked for.
    """

    window: Window
    buckets: Mapping[datetime, Delivery]
    shards: Mapping[str, Delivery]
    hours_of_shards: Mapping[tuple[datetime, str], Delivery] = field(default_factory=dict)

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
        """What each full hour (UTC) adds up to, also those of which nothing is known."""
        return {start: part.whole for start, part in self.hourly.items()}

    @property
    def hourly(self) -> dict[datetime, "Deliveries"]:
        """Each full hour (UTC) by itself, without shards; also those of which nothing is known."""
        parts = {
            part: dict[datetime, Delivery]() for part in self.window.aligned(_HOUR).parts(_HOUR)
        }
        starts = {part.start: part for part in parts}
        for at, delivery in self.buckets.items():
            parts[starts[at - (at - EPOCH) % _HOUR]][at] = delivery
        return {part.start: Deliveries(part, own, {}) for part, own in parts.items()}


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of columns by bucket (microseconds since 1970), by shard, and by hour and shard.

    `hours`: of these, hours since 1970; None: nobody asks for them.
    """

    hours: dict[tuple[int, str], Integers] | None
    buckets: dict[int, Integers] = field(default_factory=dict)
    shards: dict[str, Integers] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch, values: Integers) -> None:
        """Adds a row of values for each row of the batch."""
        starts = micros(batch.column("bucket_start"))
        for at, sums in sums_by_code(starts, values):
            self.buckets[at] = self.buckets.get(at, 0) + sums
        shards = dictionary(batch.column("shard_id"))
        codes, names = shards.indices.to_numpy(), shards.dictionary.to_pylist()
        for code, sums in sums_by_code(codes, values):
            self.shards[names[code]] = self.shards.get(names[code], 0) + sums
        if self.hours is None:
            return
        for code, sums in sums_by_code(starts // HOUR_US * len(names) + codes, values):
            hour = (code // len(names), names[code % len(names)])
            self.hours[hour] = self.hours.get(hour, 0) + sums
        if len(self.hours) > MOST_HOURS:
            found = f"more than {MOST_HOURS:,} rows"
            raise ConfigError("--by", found, "a shorter time: a row is an hour of a shard")


def read_deliveries(
    settings: Settings, name: str, window: Window, *, by_hour_and_shard: bool = False
) -> Deliveries:
    """Each cell of the window as the newest published audit of its minute saw it.

    Latencies are those of the ledger as it is now, in the time that audits looked at.

    Input:
        window: of whole buckets; by_hour_and_shard: whether `hours_of_shards` is asked for, of
            whole buckets in each hour.

    Raises:
        ConfigError: there are too many of these.
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables = DeltaRs(settings.warehouse, settings.aws)
    audits = read_rows(settings, AUDITS, where=published_of(name))
    segments = newest_segments(audit_spans(audits), window)
    cells, latencies = (_Sums({} if by_hour_and_shard else None) for _ in range(2))
    _add_cells(cells, tables, segments)
    _add_latencies(latencies, tables, name, segments, sorted(cells.buckets))
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
        {
            (EPOCH + at * _HOUR, shard): _delivery(
                sums, (latencies.hours or {}).get((at, shard)), is_bucket=False
            )
            for (at, shard), sums in (cells.hours or {}).items()
        },
    )


def _delivery(sums: Integers, latencies: Integers | None, *, is_bucket: bool) -> Delivery:
    *counts, length_us = sums.tolist()
    found = dict(zip(DELIVERED, counts, strict=True))
    # All cells of a bucket are of the same time, those of a shard one after the other.
    audited_us = length_us // found["cells"] if is_bucket else length_us
    of_latency = {} if latencies is None else {"latencies": tuple(latencies.tolist())}
    return Delivery(audited_us * _MICROSECOND, found, **of_latency)


def _add_cells(found: _Sums, tables: DeltaRs, segments: Sequence[Segment]) -> None:
    """Adds `DELIVERED`, and the length in microseconds."""
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


def _add_latencies(
    found: _Sums, tables: DeltaRs, name: str, segments: Sequence[Segment], starts: Sequence[int]
) -> None:
    """Adds rows by bin of latency.

    Input:
        starts: of the buckets that count, microseconds since 1970.
    """
    spans = joined(Window(segment.start, segment.end) for segment in segments)
    if not spans:
        return
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


def sums_by_code(codes: Integers, values: Integers) -> list[tuple[int, Integers]]:
    """Each code with the sums of its rows, column by column."""
    order = np.argsort(codes, kind="stable")
    found, first = np.unique(codes[order], return_index=True)
    return list(zip(found.tolist(), np.add.reduceat(values[order], first), strict=True))


def latency_line(counts: Sequence[int]) -> LatencyLine | None:
    """What is known of latencies by their bins; None: there is none.

    Input:
        counts: of rows, by bin.
    """
    # Below zero: a row left the sink of whose arrival the ledger knows nothing.
    counts = [max(0, count) for count in counts]
    rows = sum(counts)
    if not rows:
        return None
    ends = (quantile(counts, share) for share in _SHARES)
    p50, p90, p99, p999, latest = (None if end == _NO_END else end for end in ends)
    mean, deviation = _moments([_Bin(n, i) for i, n in enumerate(counts) if n], rows)
    return LatencyLine(rows, p50, p90, p99, p999, latest, mean, deviation)


@dataclass(frozen=True, slots=True)
class _Bin:
    rows: int
    number: int

    @property
    def least(self) -> float:
        return 2.0 ** (self.number - 1) if self.number else 0.0

    @property
    def most(self) -> float:
        return inf if self.number == LATENCY_BINS - 1 else 2.0**self.number


def _moments(bins: Sequence[_Bin], rows: int) -> tuple[Between, Between]:
    """Between which ends the mean of the rows lies, and their standard deviation."""

    def nearest(middle: float) -> float:
        """The least mean square that the rows can be away from a middle."""
        away = (each.rows * max(each.least - middle, 0.0, middle - each.most) ** 2 for each in bins)
        return sum(away) / rows

    def farthest(middle: float) -> float:
        """The greatest."""
        away = (each.rows * max(middle - each.least, each.most - middle) ** 2 for each in bins)
        return sum(away) / rows

    # The variance is the mean square distance from that middle from which it is least.
    least_mean = sum(each.rows * each.least for each in bins) / rows
    least = sqrt(_least_of(nearest))
    if bins[-1].most == inf:
        return (least_mean, None), (least, None)
    most_mean = sum(each.rows * each.most for each in bins) / rows
    return (least_mean, most_mean), (least, sqrt(_least_of(farthest)))


def _least_of(convex: Callable[[float], float]) -> float:
    """The least value of a convex function over all latencies that have a bin with an end."""
    low, high = 0.0, _NO_END / 2
    for _ in range(_THIRDS):
        third = (high - low) / 3
        if convex(low + third) < convex(high - third):
            high -= third
        else:
            low += third
    return convex((low + high) / 2)
