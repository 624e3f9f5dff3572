"""The only place where an audit's cells and findings are written."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.delta import Warehouse
from shardaudit.compare.findings import AuditFacts, transitions
from shardaudit.model.tables import CELLS, FINDINGS, TRANSITIONS


def publish(
    warehouse: Warehouse,
    run: AuditFacts,
    *,
    judged: DataFrame,
    folded: DataFrame,
    now: datetime,
) -> None:
    """Cells, then transitions, then findings: a crash in between leaves what a rerun repeats.

    Input:
        folded: of `folded_findings`.
    """
    cells = judged.withColumn("audit_id", F.lit(run.audit_id)).withColumn(
        "stream", F.lit(run.stream)
    )
    warehouse.replace(cells, CELLS, column="audit_id", value=run.audit_id)
    changes = transitions(folded, run)
    if not changes.isEmpty():
        warehouse.merge(changes, TRANSITIONS)
    if not folded.isEmpty():
        warehouse.merge(folded.withColumn("updated_at", F.lit(now)), FINDINGS)
