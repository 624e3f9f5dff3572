"""A plan's windows in portions, each read by a Spark job of its own; without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from shardaudit.adapters.delta_rs import Row
from shardaudit.adapters.published import read_rows
from shardaudit.model.backfill import WindowState, window_order
from shardaudit.model.backfill_tables import BACKFILLS
from shardaudit.model.config import Settings
from shardaudit.report.plain import counted, harmless, instant

# What a portion's windows take at most, one after the other; few shards are full. A Spark job takes
# seconds to start: one for each window, of which many are a record, would wait more than read.
PORTION_SECONDS = 4 * 3600.0
# Airflow takes 1,024 tasks of a kind (core.max_map_length), a person fewer.
PORTIONS = 100


@dataclass(frozen=True, slots=True)
class Portion:
    """Windows that are read together; `label` names their shards and the first deadline."""

    label: str
    window_ids: tuple[str, ...]


def portions(settings: Settings, plan_id: str) -> list[Portion]:
    """All windows of the plan that are not over, the most urgent first."""
    rows = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == plan_id)
    left = [row for row in rows if not WindowState(row["state"]).is_over]
    left.sort(key=lambda row: window_order(str(row["window_id"])))  # it counts them by urgency
    seconds = [float(row["estimated_seconds"]) for row in left]
    length = max(PORTION_SECONDS, sum(seconds) / PORTIONS)
    found: dict[int, list[Row]] = {}
    begins = 0.0
    for row, lasts in zip(left, seconds, strict=True):
        found.setdefault(int(begins / length), []).append(row)
        begins += lasts
    return [_portion(rows) for rows in found.values()]


def _portion(rows: Sequence[Row]) -> Portion:
    shards = sorted({str(row["shard_id"]) for row in rows})
    deadline = instant(min(row["deadline"] for row in rows))
    where = harmless(shards[0]) if len(shards) == 1 else counted(len(shards), "shard")
    return Portion(f"{where} until {deadline}", tuple(str(row["window_id"]) for row in rows))
