"""A plan in a warehouse, as the DAG finds it."""

from datetime import timedelta
from pathlib import Path

from deltalake import write_deltalake

from shardaudit.backfill.questions import AskedPlan, store_request
from shardaudit.backfill.rules.planned import Repair
from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.backfill_tables import BACKFILLS
from tests.dags.warehouses import START, arrow

NOW = START + timedelta(hours=5)


def store(config: Path, plan_id: str = "p", *, windows: int = 2, **fields: object) -> None:
    """A stored plan of two windows or more, each of a shard of its own, the last most urgent."""
    rows = [
        {
            "plan_id": plan_id,
            "window_id": f"{number:05}",
            "stream": "events",
            "shard_id": f"shard|{number}",
            "window_start": START,
            "window_end": START + timedelta(minutes=7),
            "expected_ids": 3,
            "estimated_records": 1000,
            "estimated_bytes": 10 * 2**20,
            "estimated_calls": 2,
            "estimated_seconds": 240.0,
            "deadline": START + timedelta(hours=24) - number * timedelta(minutes=1),
            "feasible": True,
            "because": "lost",
            "takes_all": False,
            "state": "planned",
            "updated_at": NOW,
            **fields,
        }
        for number in range(1, windows + 1)
    ]
    place = load_settings(config).warehouse + "/backfills"
    write_deltalake(place, arrow(BACKFILLS, rows), mode="append")


def request(
    config: Path,
    request_id: str = "r",
    *,
    plan_id: str | None = "p",
    what: Repair = Repair.MISSING,
    scope: str = "",
) -> None:
    """A run's request, as its command notes it."""
    asked = AskedPlan(request_id, "events", what, plan_id, scope=scope)
    store_request(load_settings(config), asked, now=NOW)
