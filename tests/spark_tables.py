"""The Delta tables that Apache Spark wrote (`tests/delta_tables`), each in a folder of its own."""

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.delta_tables.make import HERE, PLACE, TABLES

NAMES = sorted(TABLES)
STANDARD = ("message_id", "shard_id", "sent_at", "landed_at")
_SOURCES = {"clone": "checkpointed"}

Row = tuple[str, str, int | None, int | None]


@dataclass(frozen=True)
class SparkTable:
    """A table, and what Apache Spark read of each version of it."""

    path: Path
    versions: list["SparkVersion"]


@dataclass(frozen=True)
class SparkVersion:
    """`columns`: standard name -> column; the times of rows are in microseconds."""

    columns: dict[str, str]
    rows: "Counter[Row]"


def spark_table(name: str, folder: Path) -> SparkTable:
    """A copy of the table."""
    for one in filter(None, (_SOURCES.get(name), name)):
        shutil.copytree(HERE / one, folder / one)
        for log in (folder / one / "_delta_log").glob("*.json"):
            log.write_text(log.read_text().replace(PLACE, str(folder)))
    found = json.loads((folder / name / "versions.json").read_text())
    versions = [
        SparkVersion(
            dict(zip(STANDARD, found[str(v)]["columns"], strict=True)),
            Counter((row[0], row[1], row[2], row[3]) for row in found[str(v)]["rows"]),
        )
        for v in range(len(found))
    ]
    return SparkTable(folder / name, versions)
