"""The plans that a person decides on, and their end when the answer is no; without Spark."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.backfill.lines_of_plan import minutes_to_read, window_lines
from shardaudit.backfill.markdown import dedupe_markdown, plan_markdown
from shardaudit.backfill.rules.planned import Repair, WindowState, window_order
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.backfill_tables import BACKFILLS, DEDUPES
from shardaudit.model.tables.table import Table
from shardaudit.store.audits import read_rows
from shardaudit.store.lock import claim

_TABLES = {Repair.MISSING: BACKFILLS, Repair.DUPLICATES: DEDUPES}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stored plan that is not over, and what a person reads of it.

    `estimated_bytes` is what it reads, None where that says nothing: a dedupe removes.
    """

    plan_id: str
    markdown: str
    estimated_bytes: int | None


def proposal(
    settings: Settings, stream: str, *, since: datetime, as_of: datetime
) -> Proposal | None:
    """The newest plan of the stream that was made from then on; None when nothing was to plan."""
    waiting = _waiting(settings, BACKFILLS, stream, since)
    if not waiting:
        return None
    plan_id = _newest(waiting)["plan_id"]
    windows = sorted(
        (row for row in waiting if row["plan_id"] == plan_id),
        key=lambda row: window_order(str(row["window_id"])),
    )
    text = plan_markdown(
        stream, window_lines(windows), as_of=as_of, minutes=minutes_to_read(windows)
    )
    return Proposal(plan_id, text, sum(int(row["estimated_bytes"]) for row in windows))


def dedupe_proposal(settings: Settings, stream: str, *, since: datetime) -> Proposal | None:
    """The newest dedupe of the stream that was planned from then on; None when there is none."""
    waiting = _waiting(settings, DEDUPES, stream, since)
    if not waiting:
        return None
    row = _newest(waiting)
    text = dedupe_markdown(stream, ids=int(row["ids"]), extra_rows=int(row["extra_rows"]))
    return Proposal(str(row["plan_id"]), text, None)


def cancel_plan(
    settings: Settings, plan_id: str, *, what: Repair, reason: str, now: datetime
) -> int:
    """Ends a plan that nobody ran: how many of its rows; `reason` says who did it.

    Raises:
        WarehouseBusyError: another run holds the warehouse.
    """
    table = _TABLES[what]
    with claim(settings, owner=f"cancel {plan_id}") as held:
        rows = read_rows(settings, table, where=pc.field("plan_id") == plan_id)
        changes = {"state": WindowState.CANCELLED.value, "error": reason, "updated_at": now}
        waiting = [row | changes for row in rows if row["state"] == WindowState.PLANNED]
        held.check()
        if waiting:
            DeltaRs(settings.warehouse, settings.aws).upsert(waiting, table)
        return len(waiting)


def _waiting(settings: Settings, table: Table, stream: str, since: datetime) -> list[Row]:
    made = (pc.field("stream") == stream) & (pc.field("updated_at") >= since)
    rows = read_rows(settings, table, where=made)
    return [row for row in rows if not WindowState(row["state"]).is_over]


def _newest(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: (row["updated_at"], row["plan_id"]))
