"""Warehouses of earlier versions with their inputs, as the code of their time left them.

`tests/warehouses/make.sh` made them. A stream of 120 messages, audited; of its three lost messages
one is accepted; a backfill is planned; that of version 2 also has duplicates removed.
"""

import json
import os
import tarfile
from pathlib import Path

from deltalake import DeltaTable

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.tables.table import Table

VERSIONS = (2, 3, 4, 5)
_ARCHIVES = Path(__file__).parent / "warehouses"
_MADE_AT = "/tmp/lake"  # noqa: S108 a text in the tables, no place of today
# What a person said, or nobody could find out again.
DECIDED = (
    *("findings", "transitions", "audits", "cells", "gates", "shards", "positions"),
    *("backfills", "backfill_ids", "dedupes", "dedupe_ids", "removed_rows", "notifications"),
)


def unpacked(version: int, folder: Path) -> Path:
    """The configuration of the warehouse of a version, which lies with its inputs in a folder."""
    with tarfile.open(_ARCHIVES / f"version_{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    lake = folder / "lake"
    batches = DeltaTable(lake / "warehouse" / "batches")
    batches.update(updates={"inputs": f"replace(inputs, '{_MADE_AT}', '{lake}')"})
    for row in batches.to_pyarrow_table().to_pylist():
        if row["side"] == "traces":
            for path, _, modified_ms in json.loads(row["inputs"])["files"]:
                os.utime(path, ns=(modified_ms * 1_000_000,) * 2)
    return lake / "shardaudit.toml"


def found_then(config: Path) -> list[Row]:
    """The findings, as `findings list --json` of their time said them."""
    found: list[Row] = json.loads((config.parent / "findings.json").read_text())["findings"]
    return found


def stored(config: Path, table: Table | str) -> list[Row]:
    """The rows of a table, whatever its version; none when there is no such table."""
    name = table if isinstance(table, str) else table.name
    place = config.parent / "warehouse" / name
    return DeltaTable(place).to_pyarrow_table().to_pylist() if place.exists() else []


def table_versions(config: Path) -> set[str]:
    """Which versions the warehouse's tables say they have."""
    places = [log.parent for log in (config.parent / "warehouse").glob("*/_delta_log")]
    names = [DeltaTable(place).metadata().configuration for place in places]
    return {one["shardaudit.warehouseVersion"] for one in names}
