"""How long messages took to land, folded into the map's places while the ledger is read."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.store.cell_grid import Bins, LatencyGrid, ShardGroup, ShardRange
from shardaudit.store.cells import Integers, bucket_within, group_of, of_shards, places


def read_latency(
    settings: Settings, stream: str, bins: Bins, groups: Sequence[ShardGroup]
) -> LatencyGrid:
    """The latency bins of each place of the map, whose rows are `groups`.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    if not groups:
        return []
    tables = DeltaRs(settings.warehouse, settings.aws)
    size = len(groups) * bins.count
    found = np.zeros((LATENCY_BINS, size), np.int64)
    where = (
        (pc.field("stream") == stream)
        & (pc.field("side") == "sink")
        & (pc.field("sent_day") >= pc.scalar(bins.start.date()))
        & (pc.field("sent_day") <= pc.scalar(bins.end.date()))
        & bucket_within(bins.start, bins.end)
        & of_shards(ShardRange(groups[0].first, groups[-1].last))
        & pc.field("latency_counts").is_valid()
    )
    columns = ["shard_id", "bucket_start", "latency_counts"]
    for batch in tables.batches(
        FINGERPRINTS, columns=columns, where=where, dictionaries=("shard_id",)
    ):
        if batch.num_rows:
            _add(found, batch, bins, groups)
    return [
        [_counts(found[:, row * bins.count + place]) for place in range(bins.count)]
        for row in range(len(groups))
    ]


def _add(found: Integers, batch: pa.RecordBatch, bins: Bins, groups: Sequence[ShardGroup]) -> None:
    lines: dict[str, int] = {}
    place = places(batch, bins, lines)
    place = group_of(list(lines), groups)[place // bins.count] * bins.count + place % bins.count
    counts = batch.column("latency_counts").flatten().to_numpy().reshape(-1, LATENCY_BINS)
    for bin_of_latency in range(LATENCY_BINS):
        found[bin_of_latency] += np.bincount(
            place, counts[:, bin_of_latency], minlength=found.shape[1]
        ).astype(np.int64)


def _counts(of_place: Integers) -> list[int] | None:
    return of_place.tolist() if of_place.any() else None
