"""The rows of `backfills`: a plan's windows as they are stored, and every change of their state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.backfill.rules.plan import AFTER, BEFORE
from shardaudit.backfill.rules.planned import Plan, PlannedWindow, WindowState, window_order
from shardaudit.model.tables.backfill_tables import BACKFILLS
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse


def stored_windows(warehouse: Warehouse, plan_id: str) -> list[Row]:
    """The plan's windows, the most urgent first; none when there is no such plan."""
    rows = warehouse.rows(BACKFILLS, where=pc.field("plan_id") == plan_id)
    return sorted(rows, key=lambda row: window_order(str(row["window_id"])))


def store_plan(warehouse: Warehouse, plan: Plan, *, now: datetime) -> None:
    """Stores a new plan."""
    warehouse.upsert([_row(plan, window, now) for window in plan.windows], BACKFILLS)


@dataclass(slots=True)
class Ledger:
    """The windows of one plan, as this run sees and stores them."""

    warehouse: Warehouse
    rows: list[Row]
    owner: str

    def of(self, *states: WindowState) -> list[Row]:
        """The windows that are in one of the states."""
        return [row for row in self.rows if row["state"] in states]

    def save(self, windows: Iterable[Row], *, now: datetime, **changes: object) -> None:
        """Stores changes that all these windows have in common."""
        self.save_each({str(row["window_id"]): changes for row in windows}, now=now)

    def save_each(self, changes: Mapping[str, Mapping[str, object]], *, now: datetime) -> None:
        """Stores changes by window id, in one commit."""
        mine = {"updated_at": now, "owner": self.owner, "heartbeat_at": now}
        changed: list[Row] = []
        for place, row in enumerate(self.rows):
            if str(row["window_id"]) in changes:
                self.rows[place] = row | mine | dict(changes[str(row["window_id"])])
                changed.append(self.rows[place])
        if changed:
            self.warehouse.upsert(changed, BACKFILLS)


def sent_range(windows: Sequence[Row]) -> Window:
    """When the messages of a plan's windows were sent."""
    known = [row for row in windows if row["sent_from"] is not None]
    if not known:  # of a version that did not store it
        start = min(row["window_start"] for row in windows) + BEFORE
        end = max(row["window_end"] for row in windows) - AFTER
        return Window(start, max(end, start + datetime.resolution))
    return Window(min(row["sent_from"] for row in known), max(row["sent_to"] for row in known))


def _row(plan: Plan, planned: PlannedWindow, now: datetime) -> Row:
    return {
        "plan_id": plan.plan_id,
        "window_id": planned.window_id,
        "stream": plan.stream,
        "shard_id": planned.shard_id,
        "window_start": planned.window.start,
        "window_end": planned.window.end,
        "sent_from": planned.sent.start if planned.sent else None,
        "sent_to": planned.sent.end if planned.sent else None,
        "start_sequence_number": planned.start_sequence,
        "end_sequence_number": planned.end_sequence,
        "expected_ids": planned.expected_ids,
        "estimated_records": planned.price.records,
        "estimated_bytes": planned.price.size_bytes,
        "estimated_calls": planned.price.calls,
        "estimated_seconds": planned.price.seconds,
        "deadline": planned.deadline,
        "feasible": planned.feasible,
        "because": planned.because,
        "takes_all": planned.takes_all,
        "state": WindowState.PLANNED.value,
        "created_at": now,
        "updated_at": now,
    }
