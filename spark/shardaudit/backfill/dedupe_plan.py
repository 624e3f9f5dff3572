"""`dedupe plan`, and `dedupe purge` of what a dedupe had kept: neither touches the sink."""

from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow.compute as pc
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_schema import has_values
from shardaudit.backfill.rules.planned import StoredDedupe, WindowState
from shardaudit.backfill.stamped_apart import sent_edges
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.backfill_tables import DEDUPE_IDS, DEDUPES, REMOVED_ROWS
from shardaudit.model.verdict import LIVE, Kind
from shardaudit.store.audits import read_rows
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import AN_AUDIT
from shardaudit.store.transitions import findings_in
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class DedupePlan:
    """What is to be removed; `plan_id` is NULL when nothing is."""

    plan_id: str | None
    stream: str
    ids: int
    extra_rows: int


def plan_dedupe(
    warehouse: Warehouse, name: str, *, shape: Eras, configured: str | None, now: datetime
) -> DedupePlan:
    """The plan. It is stored, unless it is stored already and not over: that one goes on.

    It begins anew where it was planned with other settings.

    Input:
        shape: how the stream's ids are put into cells; configured: of `approval.configured_for`.
    """
    findings = findings_in(warehouse, name, Kind.DUPLICATED, *LIVE)
    mine = F.xxhash64("message_id", "landed_count")
    # In halves of 32 bits: their sums never overflow.
    halves = F.sum(mine.bitwiseAND(F.lit(0xFFFFFFFF))), F.sum(F.shiftright(mine, 32))
    sums = findings.agg(
        F.count("*").alias("ids"),
        F.coalesce(F.sum("landed_count") - F.count("*"), F.lit(0)).alias("extra_rows"),
        F.min("sent_at").alias("sent_from"),
        F.max("sent_at").alias("sent_to"),
        F.hex(F.xxhash64(*halves)).alias("digest"),
    )
    [row] = collected(sums)
    if not row.ids:
        return DedupePlan(None, name, 0, 0)
    plan_id = f"{name}-dedupe-{row.digest.lower()}"
    before = stored_dedupe(warehouse, plan_id)
    sent = sent_edges(warehouse, name, findings, sent=(row.sent_from, row.sent_to), shape=shape)
    if before is None or before.state.is_over or before.configured != configured:
        ids = findings.select(F.lit(plan_id).alias("plan_id"), "stream", "message_id", "sent_at")
        # In this order: a plan that is there has its ids.
        warehouse.replace(ids, DEDUPE_IDS, having={"plan_id": [plan_id]})
        planned = StoredDedupe(
            plan_id=plan_id,
            stream=name,
            ids=row.ids,
            extra_rows=row.extra_rows,
            sent_from=sent[0],
            sent_to=sent[1],
            created_at=now,
            updated_at=now,
            configured=configured,
        )
    else:  # who asked for it finds it by its time
        planned = replace(before, sent_from=sent[0], sent_to=sent[1], updated_at=now)
    store_dedupe(warehouse, planned)
    return DedupePlan(plan_id, name, row.ids, row.extra_rows)


def stored_dedupe(warehouse: Warehouse, plan_id: str) -> StoredDedupe | None:
    """The plan, None when there is no such plan."""
    rows = warehouse.rows(DEDUPES, where=pc.field("plan_id") == plan_id)
    return StoredDedupe.of(rows[0]) if rows else None


def store_dedupe(warehouse: Warehouse, plan: StoredDedupe) -> None:
    """Stores the plan as it is now."""
    warehouse.upsert([plan.row()], DEDUPES)


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge took out of `removed_rows`: no rows when it was done before."""

    plan_id: str
    stream: str
    purged_rows: int


def purge_removed_rows(settings: Settings, plan_id: str) -> Purge:
    """Deletes the rows that the plan's runs kept; their files go when Delta lets them.

    Raises:
        ConfigError: there is no such plan, or an audit has not proven yet that it did its work.
        WarehouseBusyError: nobody gave the warehouse back within an hour.
    """
    with warehouse_lock(settings, owner=f"dedupe purge {plan_id}", timeout=AN_AUDIT) as held:
        rows = read_rows(settings, DEDUPES, where=pc.field("plan_id") == plan_id)
        if not rows:
            raise ConfigError("--plan", plan_id, "a plan that `shardaudit dedupe plan` printed")
        plan = StoredDedupe.of(rows[0])
        if plan.state is not WindowState.VERIFIED:
            wanted = "verified: until then its rows may be needed; `shardaudit dedupe run` ends it"
            raise ConfigError(f"plan {plan_id}", plan.state.value, wanted)
        tables = DeltaRs(settings.warehouse, settings.aws, check=held.check)
        gone = tables.delete(REMOVED_ROWS, where=has_values({"plan_id": [plan_id]}))
        return Purge(plan_id, plan.stream, gone)
