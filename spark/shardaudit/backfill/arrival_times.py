"""When messages came into the stream, as far as a trace, a row or what stands beside them tells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.evidence import ingested
from shardaudit.backfill.rules.missing import sent_before
from shardaudit.backfill.rules.planned import Stretch
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.sink_reading import SinkRows
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.config.settings import DAY
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.window import Window, coalesced
from shardaudit.store.warehouse import Warehouse

_HOUR = timedelta(hours=1)
_US = timedelta(microseconds=1)


def delays_around(
    warehouse: Warehouse, name: str, stretches: Sequence[Stretch]
) -> dict[str, timedelta]:
    """`arrival_delays` of the hours around messages of which nothing tells where they arrived."""
    lost_track = [s for s in stretches if s.unacked_until and s.first_sequence is None]
    hours = [s.bucket_start.replace(minute=0, second=0, microsecond=0) for s in lost_track]
    around = [hour + n * _HOUR for hour in hours for n in (-1, 0, 1)]
    shards = {s.shard_id for s in lost_track}
    found = arrival_delays(warehouse, name, coalesced(around, width=_HOUR))
    return {shard_id: delay for shard_id, delay in found.items() if shard_id in shards}


def arrival_delays(
    warehouse: Warehouse, name: str, windows: Sequence[Window]
) -> dict[str, timedelta]:
    """By shard the longest time from `sent_at` to `acked_at` (traces) or `arrived_at` (sink).

    Input:
        windows: of `sent_at`, disjoint. Shards of which none of these times is known are left out.
    """
    if not windows:
        return {}
    both = [_of_traces(warehouse, name, windows), *_of_rows(warehouse, name, windows)]
    slowest = [
        one.where(in_windows(F.col("sent_at"), windows))
        .groupBy("shard_id")
        .agg(F.max("delay_us").alias("delay_us"))
        for one in both
    ]
    found: dict[str, timedelta] = {}
    for frame in slowest:
        for row in collected(frame.where(F.col("delay_us").isNotNull())):
            found[row.shard_id] = max(found.get(row.shard_id, 0 * _US), row.delay_us * _US)
    return found


def _of_traces(warehouse: Warehouse, name: str, windows: Sequence[Window]) -> DataFrame:
    days = [w.aligned(DAY) for w in windows]
    traces = StreamTraces.of(warehouse, name).within(days)
    return traces.select("shard_id", "sent_at", _delay_us("acked_at"))


def _of_rows(warehouse: Warehouse, name: str, windows: Sequence[Window]) -> list[DataFrame]:
    """Nothing where the sink does not say when a record arrived."""
    inputs = ingested(warehouse, name).sink_inputs
    if inputs is None:
        return []
    sink = SinkRows(warehouse.spark, warehouse.access, inputs)
    if not sink.says("arrived_at"):
        return []
    rows = sink.scan(within=("sent_at", [(w.start, w.end) for w in windows])).rows
    return [rows.select("shard_id", "sent_at", _delay_us("arrived_at"))]


def _delay_us(arrival: str) -> Column:
    return (F.unix_micros(arrival) - F.unix_micros("sent_at")).alias("delay_us")


def placed_in_time(
    warehouse: Warehouse, name: str, stretches: Sequence[Stretch], *, bucket: timedelta
) -> list[Stretch]:
    """The stretches; of which no trace says when they came, what stands before them in the shard.

    A producer that held them back put them behind messages that others sent long after them.
    """
    unknown = [one for one in stretches if _has_place_alone(one)]
    ends = {(s.shard_id, n) for s in unknown for n in (s.first_sequence, s.last_sequence)}
    if not ends:
        return list(stretches)
    first = min(one.first_sent_at for one in unknown)
    marks = warehouse.read(FINGERPRINTS).where(
        (F.col("stream") == name)
        & (F.col("side") == "traces")
        & F.col("shard_id").isin(sorted({one.shard_id for one in unknown}))
        & (F.col("sent_day") >= F.lit(first.date()))
        & (F.col("bucket_start") >= F.lit(first))
    )
    places = own_rows(warehouse.spark, sorted(ends), "shard_id string, sequence_number string")
    known = {
        (row.shard_id, row.sequence_number): row.sent_before
        for row in collected(sent_before(marks, places).where(F.col("sent_before").isNotNull()))
    }
    return [_placed(one, known, bucket) if _has_place_alone(one) else one for one in stretches]


def _has_place_alone(one: Stretch) -> bool:
    """Whether its place is known, and of some of its messages perhaps not when they came there."""
    is_unacked = one.unacked_until is not None or one.gap_start is not None
    return one.first_sequence is not None and is_unacked


def _placed(
    one: Stretch, known: Mapping[tuple[str, str | None], datetime], bucket: timedelta
) -> Stretch:
    first = known.get((one.shard_id, one.first_sequence), one.arrives_from)
    last = known.get((one.shard_id, one.last_sequence), one.arrives_until)
    until = last + bucket if last > one.arrives_until else one.arrives_until
    return replace(one, first_arrival=max(first, one.arrives_from), last_arrival=until)
