"""The times of which people said something: that they were quiet, or may stay inconclusive."""

import pyarrow.compute as pc

from shardaudit.model.tables.audit_tables import QUIET_TIMES
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

SaidTimes = list[tuple[str | None, Window]]  # of a shard, or of all


def said_times(warehouse: Warehouse, stream: str, said: str | None) -> SaidTimes:
    """The times of which people said this; None: that nothing was sent."""
    rows = warehouse.rows(QUIET_TIMES, where=pc.field("stream") == stream)
    return [
        (row["shard_id"], Window(row["quiet_from"], row["quiet_until"]))
        for row in rows
        if row["said"] == said
    ]


def times_of(said: SaidTimes, shard_id: str | None) -> list[Window]:
    """Those that count for a shard; None: for all of them."""
    return [window for of, window in said if of is None or of == shard_id]
