"""A folder with its warehouse, in another place: the batches know their inputs by new paths."""

from pathlib import Path

import pyarrow.compute as pc

from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.store.warehouse import Warehouse


def move_inputs(warehouse: Warehouse, name: str, *, old: Path, new: Path) -> None:
    """To a folder that holds a copy of the other, times of change and all."""
    moved = [
        row | {"inputs": row["inputs"].replace(f"{old}/", f"{new}/")}
        for row in warehouse.rows(BATCHES, where=pc.field("stream") == name)
    ]
    assert moved
    warehouse.upsert(moved, BATCHES)
