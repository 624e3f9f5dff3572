"""The rows of `backfills`: a plan's windows as they are stored, and every change of their state.

Here stands, too, who approved a window: in its row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.backfill.rules.planned import (
    Plan,
    PlannedWindow,
    StoredWindow,
    WindowState,
    window_order,
)
from shardaudit.backfill.rules.ranges import AFTER, BEFORE
from shardaudit.model.tables.backfill_tables import BACKFILLS
from shardaudit.model.window import Window, joined
from shardaudit.store.warehouse import Warehouse

# An audit of its own costs more than the hours in between.
_NEAR, _MOST_SPANS = timedelta(days=1), 8
_BEGUN_ANEW = (WindowState.VERIFIED, WindowState.CANCELLED)
# Of the others what lacks is open again, and the next plan's.
_UNDER_WAY = [WindowState.APPROVED, WindowState.RUNNING, WindowState.MERGED]


def stored_windows(warehouse: Warehouse, plan_id: str) -> list[StoredWindow]:
    """The plan's windows, the most urgent first; none when there is no such plan."""
    rows = warehouse.rows(BACKFILLS, where=pc.field("plan_id") == plan_id)
    windows = [StoredWindow.of(row) for row in rows]
    return sorted(windows, key=lambda window: window_order(window.window_id))


def plan_ids(warehouse: Warehouse, stream: str) -> set[str]:
    """All plans of a stream."""
    rows = warehouse.rows(BACKFILLS, where=pc.field("stream") == stream)
    return {row["plan_id"] for row in rows}


def plans_under_way(
    warehouse: Warehouse, stream: str, *, shard_ids: Sequence[str] = ()
) -> tuple[str, ...]:
    """Those of them of which a window was approved, and nobody looked since what became of it.

    Input:
        shard_ids: a window of one of these; none: of any.
    """
    wanted = (pc.field("stream") == stream) & pc.field("state").isin(_UNDER_WAY)
    if shard_ids:
        wanted &= pc.field("shard_id").isin(list(shard_ids))
    return tuple(sorted({row["plan_id"] for row in warehouse.rows(BACKFILLS, where=wanted)}))


def store_plan(warehouse: Warehouse, plan: Plan, *, now: datetime) -> None:
    """Stores a new plan."""
    store_windows(warehouse, [_planned(plan, window, now) for window in plan.windows])


def store_windows(warehouse: Warehouse, windows: Iterable[StoredWindow]) -> None:
    """Stores windows in one commit, in the place of those of the same plan and window id."""
    warehouse.upsert([window.row() for window in windows], BACKFILLS)


def taken_up(plan: Plan, before: Iterable[StoredWindow], *, now: datetime) -> list[StoredWindow]:
    """The windows of a stored plan that goes on, as it is planned again.

    One that was verified, and whose messages lack again (a sink that was restored), begins anew;
    so does one that was cancelled, after that, on its own. Of a range by hand each of them does:
    whether anything lacks in it nobody knows. What is still to be read by a plan of an earlier
    version, which did not keep its settings, waits for an approval of what is configured now. Until
    when it can be read, and whether it can, is told as it is by now.
    """
    by_now = {w.window_id: w for w in plan.windows}
    lacking = {w.window_id: w for w in plan.windows if w.expected_ids or w.takes_all}
    return [
        _planned(plan, lacking[window.window_id], now)
        if window.state in _BEGUN_ANEW and window.window_id in lacking
        else replace(
            _asked_anew(window, by_now.get(window.window_id, window), plan.configured),
            updated_at=now,
            configured=plan.configured,
        )
        for window in before
    ]


def _asked_anew(
    window: StoredWindow, by_now: PlannedWindow | StoredWindow, configured: str | None
) -> StoredWindow:
    if window.state is WindowState.MERGED or window.state.is_over:
        return window
    window = replace(window, deadline=by_now.deadline, feasible=by_now.feasible)
    if window.configured == configured:
        return window
    return replace(window, state=WindowState.PLANNED, approved_by=None)


@dataclass(slots=True)
class Ledger:
    """The windows of one plan, as this run sees and stores them."""

    warehouse: Warehouse
    windows: list[StoredWindow]
    owner: str

    def of(self, *states: WindowState) -> list[StoredWindow]:
        """The windows that are in one of the states."""
        return [window for window in self.windows if window.state in states]

    def read(self) -> None:
        """Reads the plan's windows as they are stored by now."""
        self.windows = stored_windows(self.warehouse, self.windows[0].plan_id)

    def store(self, changed: Iterable[StoredWindow], *, now: datetime) -> None:
        """Stores windows of the plan as they are now, in one commit."""
        mine = {
            window.window_id: replace(window, updated_at=now, owner=self.owner, heartbeat_at=now)
            for window in changed
        }
        self.windows = [mine.get(window.window_id, window) for window in self.windows]
        if mine:
            store_windows(self.warehouse, mine.values())


def sent_range(windows: Sequence[StoredWindow]) -> Window:
    """When the messages of a plan's windows were sent."""
    known = [window.sent for window in windows if window.sent]
    if not known:  # of a version that did not store it
        start = min(window.window_start for window in windows) + BEFORE
        end = max(window.window_end for window in windows) - AFTER
        return Window(start, max(end, start + datetime.resolution))
    return Window(min(sent.start for sent in known), max(sent.end for sent in known))


def sent_spans(windows: Sequence[StoredWindow], *, bucket: timedelta) -> list[Window]:
    """The same without what lies between windows that are far apart: whole buckets, in order."""
    whole = sent_range(windows).aligned(bucket)
    known = [window.sent.aligned(bucket) for window in windows if window.sent] or [whole]
    apart = joined((Window(sent.start, sent.end + _NEAR) for sent in known), most=_MOST_SPANS)
    return [Window(span.start, span.end - _NEAR) for span in apart]


def _planned(plan: Plan, planned: PlannedWindow, now: datetime) -> StoredWindow:
    return StoredWindow(
        plan_id=plan.plan_id,
        window_id=planned.window_id,
        stream=plan.stream,
        shard_id=planned.shard_id,
        window_start=planned.window.start,
        window_end=planned.window.end,
        sent_from=planned.sent.start if planned.sent else None,
        sent_to=planned.sent.end if planned.sent else None,
        start_sequence_number=planned.start_sequence,
        end_sequence_number=planned.end_sequence,
        expected_ids=planned.expected_ids,
        estimated_records=planned.price.records,
        estimated_bytes=planned.price.size_bytes,
        estimated_calls=planned.price.calls,
        estimated_seconds=planned.price.seconds,
        deadline=planned.deadline,
        feasible=planned.feasible,
        because=planned.because,
        takes_all=planned.takes_all,
        configured=plan.configured,
        created_at=now,
        updated_at=now,
    )
