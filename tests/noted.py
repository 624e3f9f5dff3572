"""A small table of our own making, for the doors to the warehouse."""

from datetime import UTC, datetime

import pyarrow.compute as pc

from shardaudit.model.tables.table import Table

NOTED = Table(
    "noted",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("seen_at", "timestamp", "when"),
        ("parents", "array<string>", ""),
    ),
    ("stream", "shard_id", "seen_at"),
)


T0 = datetime(2026, 11, 1, tzinfo=UTC)


EVERYTHING = pc.scalar(True)


def row(shard_id: str | None, **fields: object) -> dict[str, object]:
    return {"stream": "s", "shard_id": shard_id, "seen_at": T0, "parents": None} | fields
