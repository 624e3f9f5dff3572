"""The only place where an audit's cells and findings are written."""

from datetime import datetime

from pyspark.sql import functions as F

from shardaudit.audit.judged import Judged
from shardaudit.audit.outcome import Outcome
from shardaudit.audit.rules.findings import AuditFacts, transitions
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS, TRANSITIONS
from shardaudit.store.warehouse import Warehouse


def publish(
    warehouse: Warehouse, run: AuditFacts, own: Judged, outcome: Outcome, *, now: datetime
) -> None:
    """Cells, then transitions, then findings: a crash in between leaves what a rerun repeats.

    Input:
        own: without the canary; outcome: its numbers.
    """
    cells = own.cells.withColumn("audit_id", F.lit(run.audit_id)).withColumn(
        "stream", F.lit(run.stream)
    )
    warehouse.replace(cells, CELLS, column="audit_id", value=run.audit_id)
    if outcome.changed:
        warehouse.merge(transitions(own.folded, run), TRANSITIONS)
    if outcome.folded:
        warehouse.merge(own.folded.withColumn("updated_at", F.lit(now)), FINDINGS)
