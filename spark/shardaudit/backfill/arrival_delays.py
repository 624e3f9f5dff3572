"""How long a shard's slowest messages took to reach the stream, as traces and sink tell it."""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.evidence import ingested
from shardaudit.backfill.rules.planned import Stretch
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.sink_reading import SinkRows
from shardaudit.ingest.stream_traces import SCAN_WINDOWS, StreamTraces
from shardaudit.model.config.settings import DAY
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
    found = arrival_delays(warehouse, name, coalesced(around, width=_HOUR, limit=SCAN_WINDOWS))
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
