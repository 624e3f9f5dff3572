"""A window of a stored plan, of which a test says what matters to it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from shardaudit.backfill.rules.planned import StoredWindow
from tests.builders import T0

_WINDOW = StoredWindow(
    plan_id="events-1",
    window_id="00001",
    stream="events",
    shard_id="s",
    window_start=T0,
    window_end=T0 + timedelta(minutes=7),
    expected_ids=1,
    estimated_bytes=600,
    estimated_seconds=1.0,
    deadline=T0 + timedelta(days=1),
    feasible=True,
    created_at=T0,
    updated_at=T0,
    estimated_records=1,
    estimated_calls=1,
    because="lost",
)


def stored_window(**fields: Any) -> StoredWindow:  # Any: each field has its own type
    """It, with these fields."""
    return replace(_WINDOW, **fields)
