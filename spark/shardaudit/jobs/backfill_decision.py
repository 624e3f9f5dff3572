"""The plan that a person decides on, and its end when the answer is no; without Spark."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.claim import claim
from shardaudit.adapters.delta_rs import DeltaRs
from shardaudit.adapters.published import read_rows
from shardaudit.jobs.backfill_lines import minutes_to_read, window_lines
from shardaudit.model.backfill import WindowState
from shardaudit.model.backfill_tables import BACKFILLS
from shardaudit.model.config import Settings
from shardaudit.report.backfill_markdown import plan_markdown


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stored plan that is not over, and what a person reads of it."""

    plan_id: str
    markdown: str
    estimated_bytes: int


def proposal(
    settings: Settings, stream: str, *, since: datetime, as_of: datetime
) -> Proposal | None:
    """The newest plan of the stream that was made from then on; None when nothing was to plan."""
    made = (pc.field("stream") == stream) & (pc.field("updated_at") >= since)
    rows = read_rows(settings, BACKFILLS, where=made)
    waiting = [row for row in rows if not WindowState(row["state"]).is_over]
    if not waiting:
        return None
    plan_id = max(waiting, key=lambda row: (row["updated_at"], row["plan_id"]))["plan_id"]
    windows = sorted(
        (row for row in waiting if row["plan_id"] == plan_id),
        key=lambda row: str(row["window_id"]),
    )
    text = plan_markdown(
        stream, window_lines(windows), as_of=as_of, minutes=minutes_to_read(windows)
    )
    return Proposal(plan_id, text, sum(int(row["estimated_bytes"]) for row in windows))


def cancel_plan(settings: Settings, plan_id: str, *, reason: str, now: datetime) -> int:
    """Ends a plan that nobody ran: how many windows; `reason` says who did it.

    Raises:
        WarehouseBusyError: another run holds the warehouse.
    """
    with claim(settings, owner=f"backfill cancel {plan_id}") as held:
        rows = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == plan_id)
        changes = {"state": WindowState.CANCELLED.value, "error": reason, "updated_at": now}
        waiting = [row | changes for row in rows if row["state"] == WindowState.PLANNED]
        held.check()
        if waiting:
            DeltaRs(settings.warehouse, settings.aws).upsert(waiting, BACKFILLS)
        return len(waiting)
