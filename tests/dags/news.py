"""What a watch left to be told."""

from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from tests.dags.warehouses import arrow

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def news(warehouse: Path, *shards: str, stream: str = "events", **more: object) -> None:
    """Pending notifications."""
    rows = [
        {
            "notification_id": f"id-{shard}",
            "stream": stream,
            "shard_id": shard,
            "kind": "change",
            "previous_level": "none",
            "level": "urgent",
            "text": "stands still",
            "observed_at": NOON,
            "state": "pending",
            **more,
        }
        for shard in shards
    ]
    write_deltalake(str(warehouse / "notifications"), arrow(NOTIFICATIONS, rows), mode="append")


def states(warehouse: Path) -> dict[str, str]:
    rows = DeltaTable(str(warehouse / "notifications")).to_pyarrow_table().to_pylist()
    return {row["shard_id"]: row["state"] for row in rows}
