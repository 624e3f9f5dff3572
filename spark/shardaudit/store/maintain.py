"""The upkeep of the warehouse: many small files become few, and those of no use any more go.

An ingest every quarter of an hour leaves a hundred files a day, which every audit has to open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse

MANY_FILES = 16  # in one partition: fewer are not worth a rewrite


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to one table: rows deleted, small files that became few, files deleted."""

    table: str
    rows_deleted: int
    files_merged: int
    files_made: int
    files_deleted: int


def maintain(
    warehouse: Warehouse, tables: Iterable[Table], *, gone: Mapping[str, int]
) -> list[Upkeep]:
    """Merges files and deletes old ones; no row changes. Killed at any moment, run it again.

    Input:
        gone: by table how many rows were deleted before.
    """
    done = []
    for table in tables:
        merged, made = warehouse.compact(table, above=MANY_FILES)
        rows = gone.get(table.name, 0)
        done.append(Upkeep(table.name, rows, merged, made, warehouse.vacuum(table)))
    return done
