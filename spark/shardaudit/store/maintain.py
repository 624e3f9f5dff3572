"""The upkeep of the warehouse: many small files become few, and those of no use any more go.

An ingest every quarter of an hour leaves a hundred files a day, which every audit has to open.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse

MANY_FILES = 16  # in one partition: fewer are not worth a rewrite


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to one table: small files that became few, files deleted from the storage."""

    table: str
    files_merged: int
    files_made: int
    files_deleted: int


def maintain(warehouse: Warehouse, tables: Iterable[Table]) -> list[Upkeep]:
    """Merges files and deletes old ones; no row changes. Killed at any moment, run it again."""
    done = []
    for table in tables:
        merged, made = warehouse.compact(table, above=MANY_FILES)
        done.append(Upkeep(table.name, merged, made, warehouse.vacuum(table)))
    return done
