"""Which run asked for which plan, and which of the questions for the same counts; no engine.

Held by the watch's lock: a question is not to wait for an audit of an hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.backfill.rules.planned import Repair
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.backfill_tables import PLAN_REQUESTS
from shardaudit.store.audits import read_rows
from shardaudit.store.lock import Lock, warehouse_lock
from shardaudit.store.lock_files import A_WATCH, WATCH


class RequestState(StrEnum):
    """Where a run's request for a plan is in its life."""

    PLANNED = "planned"
    ASKED = "asked"
    DECIDED = "decided"
    REPLACED = "replaced"


class NoPlanError(FinalError, LookupError):
    """The command that was to plan came to its end, and nothing of it is in the warehouse."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"no plan of the run {request_id} is in the warehouse: plan it again")


@dataclass(frozen=True, slots=True)
class AskedPlan:
    """A run's request. `plan_id`: None when nothing was to plan; `reason`: what replaced it.

    `scope`: what of the stream it is about, as `PlanRequest.scope` says; all of it when empty.
    """

    request_id: str
    stream: str
    what: Repair
    plan_id: str | None
    state: RequestState = RequestState.PLANNED
    reason: str | None = None
    scope: str = ""


def store_request(settings: Settings, asked: AskedPlan, *, now: datetime) -> None:
    """Stores which plan was made for a run: by this, and by no clock, the run finds it.

    Raises:
        WarehouseBusyError: another run holds the watch's tables.
    """
    with warehouse_lock(
        settings, owner=f"request {asked.request_id}", name=WATCH, timeout=A_WATCH
    ) as held:
        mine = pc.field("stream") == asked.stream
        numbers = [row["number"] for row in read_rows(settings, PLAN_REQUESTS, where=mine)]
        row = {
            "request_id": asked.request_id,
            "stream": asked.stream,
            "what": asked.what.value,
            "scope": asked.scope,
            "plan_id": asked.plan_id,
            "number": max(numbers, default=0) + 1,
            "state": RequestState.PLANNED.value,
        }
        held.check()
        DeltaRs(settings.warehouse, settings.aws).create(PLAN_REQUESTS)
        _save(settings, [row], held, now=now)


def asked_plan(settings: Settings, request_id: str) -> AskedPlan:
    """The run's request.

    Raises:
        NoPlanError: there is none.
    """
    return _asked(_row(settings, request_id))


def ask_for(
    settings: Settings, request_id: str, *, is_decided: bool, now: datetime
) -> tuple[AskedPlan, list[AskedPlan]]:
    """Makes the run's question the one for its part of the stream: it, and those that it replaces.

    A request that came behind a newer one is replaced itself. Questions for other shards or times
    stand beside it: its plan does not hold their messages.

    Input:
        is_decided: no person is asked; the policy lets it.

    Raises:
        NoPlanError: there is no such request.
        WarehouseBusyError: another run holds the watch's tables.
    """
    with warehouse_lock(
        settings, owner=f"question {request_id}", name=WATCH, timeout=A_WATCH
    ) as held:
        mine = _row(settings, request_id)
        same = (pc.field("stream") == mine["stream"]) & (pc.field("what") == mine["what"])
        rows = read_rows(settings, PLAN_REQUESTS, where=same)
        asked = [r for r in rows if r["state"] == RequestState.ASKED and _are_alike(r, mine)]
        older = [row for row in asked if row["number"] < mine["number"]]
        newer = [row for row in asked if row["number"] > mine["number"]]
        state = RequestState.DECIDED if is_decided else RequestState.ASKED
        mine |= {"state": state.value}
        if newer and not is_decided:
            mine |= _replaced(max(newer, key=lambda row: int(row["number"])))
        _save(settings, [mine, *(row | _replaced(mine) for row in older)], held, now=now)
    return _asked(mine), [_asked(row) for row in older]


def decide_request(settings: Settings, request_id: str, *, now: datetime) -> AskedPlan:
    """Ends the run's question, unless a newer one replaced it; says which.

    Raises:
        NoPlanError, WarehouseBusyError: as `ask_for`.
    """
    with warehouse_lock(
        settings, owner=f"answer {request_id}", name=WATCH, timeout=A_WATCH
    ) as held:
        mine = _row(settings, request_id)
        if mine["state"] != RequestState.REPLACED:
            mine |= {"state": RequestState.DECIDED.value}
            _save(settings, [mine], held, now=now)
    return _asked(mine)


def _are_alike(one: Row, other: Row) -> bool:
    """Whether the newer of two requests' plans holds what the older one's holds."""
    is_same_plan = one["plan_id"] == other["plan_id"]
    return is_same_plan or (one["scope"] or "") == (other["scope"] or "")


def _replaced(by: Row) -> Row:
    reason = f"plan {by['plan_id']} of the run {by['request_id']} replaces it"
    return {"state": RequestState.REPLACED.value, "reason": reason}


def _row(settings: Settings, request_id: str) -> Row:
    rows = read_rows(settings, PLAN_REQUESTS, where=pc.field("request_id") == request_id)
    if not rows:
        raise NoPlanError(request_id)
    return rows[0]


def _save(settings: Settings, rows: Sequence[Row], held: Lock, *, now: datetime) -> None:
    changed = [row | {"updated_at": now} for row in rows]
    DeltaRs(settings.warehouse, settings.aws, check=held.check).upsert(changed, PLAN_REQUESTS)


def _asked(row: Row) -> AskedPlan:
    return AskedPlan(
        request_id=row["request_id"],
        stream=row["stream"],
        what=Repair(row["what"]),
        plan_id=row["plan_id"],
        state=RequestState(row["state"]),
        reason=row.get("reason"),
        scope=row["scope"] or "",
    )
