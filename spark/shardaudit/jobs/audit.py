"""The audit of one stream's window, from the ledger to published findings.

Read this first: it is the table of contents. Rooms describe, this job acts.

`localCheckpoint` and not `persist`: each stage is computed once, and the plan of the next one
starts from its rows. Plans over cached frames repeat what is below them and grow without bounds.
"""

from datetime import UTC, datetime

from pyspark.sql import DataFrame

from shardaudit.adapters.delta import Warehouse
from shardaudit.compare.classify import Judgement, cell_counts, judged_cells, kinds
from shardaudit.compare.findings import AuditFacts
from shardaudit.compare.totals import broken_invariants, disagreeing_cells
from shardaudit.jobs.audit_request import AuditRequest
from shardaudit.jobs.audit_row import AuditRow
from shardaudit.jobs.comparison import Comparison, compared
from shardaudit.jobs.evidence import Ingested, ingested
from shardaudit.jobs.outcome import Outcome, nearest_deadlines, outcome_of
from shardaudit.jobs.publish import publish
from shardaudit.jobs.self_check import self_check
from shardaudit.model.errors import InvariantError, SelfCheckError
from shardaudit.report.progress import SILENT, Progress
from shardaudit.report.summary import AuditReport


def audit(
    warehouse: Warehouse, request: AuditRequest, *, now: datetime, progress: Progress = SILENT
) -> AuditReport:
    """Audits the window and publishes cells, findings and the audit's own row.

    Running it again with the same request gives the same rows, but for the clock columns.

    Raises:
        InvariantError: the numbers do not add up; the audit is stored as rejected, nothing else is.
    """
    state = ingested(warehouse, request.name)
    row = AuditRow(warehouse, request, state, started_at=now)
    row.save("running")
    with progress.stage("compare"):
        comparison = compared(warehouse, request, state)
    with progress.stage("self-check"):
        checked = self_check(
            comparison.seen, comparison.sample, comparison.facts, as_of=request.as_of
        )
    with progress.stage("classify"):
        judged = _judged(comparison, request, state).localCheckpoint()
        found = kinds(comparison.classified).localCheckpoint()
        retention_s = request.retention.total_seconds()
        deadlines = nearest_deadlines(found, retention_s=retention_s, as_of=request.as_of)
        outcome = outcome_of(judged, found, deadlines)
        broken = _broken(comparison, outcome, request)
    if broken or checked == "failed":
        row.finish("rejected", outcome, self_check=checked)
        raise (
            InvariantError(request.audit_id, broken) if broken else SelfCheckError(request.audit_id)
        )
    with progress.stage("publish"):
        facts = _facts(request, state)
        publish(warehouse, facts, judged=judged, classified=comparison.classified, now=now)
        return row.finish("published", outcome, self_check=checked)


def _judged(comparison: Comparison, request: AuditRequest, state: Ingested) -> DataFrame:
    return judged_cells(
        comparison.cells,
        cell_counts(comparison.classified),
        comparison.by_id,
        comparison.facts,
        Judgement(
            as_of=request.as_of,
            bucket=request.stream.bucket,
            settle_grace=request.stream.settle_grace,
            trace_coverage_floor=request.stream.trace_coverage_floor,
            damage=state.damage,
        ),
    )


def _broken(comparison: Comparison, outcome: Outcome, request: AuditRequest) -> list[str]:
    buckets = (request.aligned.end - request.aligned.start) // request.stream.bucket
    sums = outcome.sums | {"grid_cells": buckets * len(outcome.shards)}
    torn = disagreeing_cells(comparison.seen, comparison.cells, comparison.read)
    return broken_invariants(sums, outcome.kinds) + [
        f"cell {row.shard_id} {row.bucket_start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}: the ledger "
        f"counts {row.sent_n} ids sent and {row.landed_n} rows, traces and sink hold "
        f"{row.counted} and {row.rows}"
        for row in torn.limit(5).collect()
    ]


def _facts(request: AuditRequest, state: Ingested) -> AuditFacts:
    return AuditFacts(
        audit_id=request.audit_id,
        stream=request.name,
        window=request.aligned,
        as_of=request.as_of,
        bucket=request.stream.bucket,
        retention=request.retention,
        damage=state.damage,
    )
