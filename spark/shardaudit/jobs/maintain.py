"""The upkeep of the warehouse: many small files become few, and those of no use any more go.

An ingest every quarter of an hour leaves a hundred files a day, which every audit has to open.
"""

from dataclasses import dataclass

from shardaudit.adapters.delta import Warehouse
from shardaudit.model.backfill_tables import (
    BACKFILL_IDS,
    BACKFILLS,
    DEDUPE_IDS,
    DEDUPES,
    REMOVED_ROWS,
)
from shardaudit.model.tables import (
    AUDITS,
    BATCHES,
    CELLS,
    EVIDENCE,
    FINDINGS,
    FINGERPRINTS,
    QUARANTINE,
    SHARDS,
    TRACES,
    TRANSITIONS,
)
from shardaudit.model.watch_tables import NOTIFICATIONS, POSITIONS
from shardaudit.report.progress import SILENT, Progress

ALL_TABLES = (
    TRACES, FINGERPRINTS, BATCHES, QUARANTINE, SHARDS, POSITIONS, CELLS, EVIDENCE, FINDINGS,
    TRANSITIONS, AUDITS, NOTIFICATIONS, BACKFILLS, BACKFILL_IDS, DEDUPES, DEDUPE_IDS, REMOVED_ROWS,
)  # fmt: skip
MANY_FILES = 16  # in one partition: fewer are not worth a rewrite


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to one table: small files that became few, files deleted from the storage."""

    table: str
    files_merged: int
    files_made: int
    files_deleted: int


def maintain(warehouse: Warehouse, *, progress: Progress = SILENT) -> list[Upkeep]:
    """Merges files and deletes old ones; no row changes. Killed at any moment, run it again."""
    done = []
    with progress.stage("merge small files"):
        merged = {table: warehouse.compact(table, above=MANY_FILES) for table in ALL_TABLES}
    with progress.stage("delete old files"):
        for table, (removed, added) in merged.items():
            done.append(Upkeep(table.name, removed, added, warehouse.vacuum(table)))
    return done
