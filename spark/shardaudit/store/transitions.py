"""Changes the state of findings, and keeps who did it and why."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.verdict import State
from shardaudit.store.warehouse import Warehouse


def move_findings(
    warehouse: Warehouse, chosen: DataFrame, *, to: State, reason: str, now: datetime
) -> None:
    """Gives all chosen findings (rows of FINDINGS) that state.

    Transitions come first: a crash in between leaves findings that the same command still chooses.
    """
    transitions = chosen.select(
        "stream",
        "message_id",
        "kind",
        F.col("state").alias("from_state"),
        F.lit(to.value).alias("to_state"),
        F.lit(None).cast("string").alias("audit_id"),
        F.lit(reason).alias("reason"),
        F.lit(now).alias("changed_at"),
    )
    warehouse.merge(transitions, TRANSITIONS)
    moved = {
        "state": F.lit(to.value),
        "state_reason": F.lit(reason),
        "updated_at": F.lit(now),
    }
    warehouse.merge(chosen.withColumns(moved), FINDINGS)
