"""How far the shards' producers were from each other, folded into the map's places."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import ShardState
from shardaudit.store.cell_grid import Bins, SecondsGrid, ShardGroup
from shardaudit.store.cells import Integers, bin_of, dictionary, group_of, micros

# As watch/rules/skew.py has it: an idle or closed shard's time is old because nothing came.
_NOT_AT_WORK = pa.array([ShardState.IDLE.value, ShardState.CLOSED.value])


def read_skew(
    settings: Settings, stream: str, bins: Bins, groups: Sequence[ShardGroup]
) -> SecondsGrid:
    """Per place of the map, whose rows are `groups`, the most that a watch in its time saw.

    A shard is as far behind as its newest message is older than the newest one of all shards at
    work. None: no watch looked at the place, or its shards were not at work.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    where = (
        (pc.field("stream") == stream)
        & (pc.field("observed_at") >= pc.scalar(bins.start))
        & (pc.field("observed_at") < pc.scalar(bins.end))
        & pc.field("state").is_valid()
        & pc.field("produced_until").is_valid()
        & pc.invert(pc.is_in(pc.field("state"), value_set=_NOT_AT_WORK))
    )
    names = ["stream", "shard_id", "observed_at", "produced_until", "state"]
    watched = DeltaRs(settings.warehouse, settings.aws).columns(SHARDS, names=names, where=where)
    most = np.full(len(groups) * bins.count, -1, np.int64)
    if watched is not None and groups:
        behind = _behind(watched)
        shards = dictionary(watched["shard_id"].combine_chunks())
        row = group_of(shards.dictionary.to_pylist(), groups)[shards.indices.to_numpy()]
        place = row * bins.count + bin_of(watched["observed_at"], bins)
        np.maximum.at(most, place[row >= 0], behind[row >= 0])
    return [
        [None if value < 0 else value / 1e6 for value in line]
        for line in most.reshape(len(groups), bins.count).tolist()
    ]


def _behind(watched: pa.Table) -> Integers:
    """Microseconds from each row's newest message to the newest one that its watch knew."""
    produced = micros(watched["produced_until"])
    _, watch = np.unique(micros(watched["observed_at"]), return_inverse=True)
    newest = np.zeros(watch.max(initial=-1) + 1, np.int64)
    np.maximum.at(newest, watch, produced)
    found: Integers = newest[watch] - produced
    return found
