"""What an audit says: of each cell, of each id with something wrong, and of the findings so far."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import Canary, beside
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.outcome import Outcome, outcome_of
from shardaudit.audit.rules.canary_answers import without_canary
from shardaudit.audit.rules.cell_verdicts import Judgement, judged_cells
from shardaudit.audit.rules.classify import cell_counts, kinds
from shardaudit.audit.rules.findings import AuditFacts, folded_findings, pending_ids
from shardaudit.audit.silences import Silences, silences
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged cells, the (id, kind) pairs that were found, and the findings after them.

    `silences`: of the whole ledger, where there used to be messages; `stamped_anew`: of
    `Comparison`.
    """

    cells: DataFrame
    found: DataFrame
    folded: DataFrame
    silences: Silences
    stamped_anew: int

    def without_canary(self) -> "Judged":
        """What is said of the stream alone."""
        return Judged(
            without_canary(self.cells),
            without_canary(self.found, "message_id"),
            without_canary(self.folded, "message_id"),
            self.silences,
            self.stamped_anew,
        )

    def outcome(self, audit_id: str) -> Outcome:
        """Its numbers."""
        return outcome_of(
            self.cells,
            self.found,
            self.folded,
            audit_id=audit_id,
            stamped_anew=self.stamped_anew,
        )


def judged(
    warehouse: Warehouse,
    comparison: Comparison,
    request: AuditRequest,
    facts: AuditFacts,
    planted: Canary,
) -> Judged:
    """The comparison judged, and folded into the stream's findings, with the canary's."""
    classified = comparison.classified
    silent = silences(warehouse, request, comparison.sums, comparison.facts)
    cells = judged_cells(
        comparison.cells,
        cell_counts(classified, comparison.displaced),
        comparison.by_id,
        comparison.facts,
        Judgement(
            as_of=request.as_of,
            bucket=request.stream.bucket,
            settle_grace=request.stream.settle_grace,
            trace_coverage_floor=request.stream.trace_coverage_floor,
            damage=facts.damage,
            silences=silent.frame(warehouse.spark),
        ),
    ).localCheckpoint()
    found = kinds(classified)
    own = warehouse.read(FINDINGS).where(F.col("stream") == request.name)
    latest = max(request.as_of, _judged_as_of(warehouse, request.name) or request.as_of)
    previous = beside(
        planted.findings.withColumn("judged_as_of", F.lit(request.as_of)),
        own.withColumn("judged_as_of", F.lit(latest)),
    )
    folded = folded_findings(found, previous, pending_ids(classified), facts).localCheckpoint()
    return Judged(cells, found, folded, silent, comparison.stamped_anew)


def _judged_as_of(warehouse: Warehouse, name: str) -> datetime | None:
    """The latest "now" of the stream's published audits; none was later than the clock then."""
    published = (pc.field("stream") == name) & (pc.field("status") == "published")
    rows = warehouse.rows(AUDITS, where=published)
    return max((min(row["as_of"], row["started_at"] or row["as_of"]) for row in rows), default=None)
