"""A plan's stored windows as lines of a report; without Spark."""

from collections.abc import Sequence
from dataclasses import fields

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.backfill.backfill_summary import WindowLine
from shardaudit.backfill.rules.planned import WindowState


def window_lines(rows: Sequence[Row]) -> tuple[WindowLine, ...]:
    """The rows as a report shows them."""
    names = [field.name for field in fields(WindowLine) if field.name != "state"]
    return tuple(
        WindowLine(**{name: row[name] for name in names}, state=WindowState(row["state"]))
        for row in rows
    )


def minutes_to_read(rows: Sequence[Row]) -> float:
    """Until the slowest shard is read: shards are read at once, a shard's windows in turn."""
    by_shard: dict[str, float] = {}
    for row in rows:
        shard_id = str(row["shard_id"])
        by_shard[shard_id] = by_shard.get(shard_id, 0.0) + float(row["estimated_seconds"])
    return round(max(by_shard.values(), default=0.0) / 60, 1)
