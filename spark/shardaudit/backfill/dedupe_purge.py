"""`dedupe purge`: the rows that a dedupe took out of the sink are no longer kept; without Spark."""

from dataclasses import dataclass

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.backfill_tables import DEDUPES, REMOVED_ROWS
from shardaudit.store.audits import read_rows
from shardaudit.store.lock import claim


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
        WarehouseBusyError: another run holds the warehouse.
    """
    with claim(settings, owner=f"dedupe purge {plan_id}") as held:
        rows = read_rows(settings, DEDUPES, where=pc.field("plan_id") == plan_id)
        if not rows:
            raise ConfigError("--plan", plan_id, "a plan that `shardaudit dedupe plan` printed")
        state = str(rows[0]["state"])
        if state != WindowState.VERIFIED:
            wanted = "verified: until then its rows may be needed; `shardaudit dedupe run` ends it"
            raise ConfigError(f"plan {plan_id}", state, wanted)
        held.check()
        tables = DeltaRs(settings.warehouse, settings.aws)
        gone = tables.delete(REMOVED_ROWS, column="plan_id", value=plan_id)
        return Purge(plan_id, str(rows[0]["stream"]), gone)
