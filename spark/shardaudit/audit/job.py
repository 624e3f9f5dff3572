"""The audit of one stream's window, from the ledger to published findings.

Read this first: it is the table of contents. Rooms describe, this job acts.

`localCheckpoint` and not `persist`: each stage is computed once, and the plan of the next one
starts from its rows. Plans over cached frames repeat what is below them and grow without bounds.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from pyspark.sql import Row

from shardaudit.adapters.lake.sink_rows import UnsoundFilesError
from shardaudit.audit.audit_news import tell_published, tell_rejected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import canary
from shardaudit.audit.comparison import Comparison, compare_and_keep
from shardaudit.audit.evidence import Ingested, ingested
from shardaudit.audit.gates import Gates, store
from shardaudit.audit.judged import broken_rules, judged, outcome_of, torn_cells, torn_ledger
from shardaudit.audit.measured import measured
from shardaudit.audit.publish import AuditRow, publish
from shardaudit.audit.records import in_eras, stored_holds, unmoved_watermark
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.findings import AuditFacts
from shardaudit.audit.summaries import summaries
from shardaudit.audit.watermarks import move_watermark
from shardaudit.ingest.ingest_sink import SinkSide
from shardaudit.model.errors import (
    GateError,
    InvariantError,
    RetryableError,
    SelfCheckError,
    ShardauditError,
)
from shardaudit.model.gate import Severity, SuiteResult, sentences
from shardaudit.model.verdict import SelfCheck
from shardaudit.report.held_back import quiet_notes
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import AuditReport
from shardaudit.store.warehouse import Warehouse


class _SinkReadAnewError(RetryableError):
    """The rows of the sink were not those of the ledger; now they are."""


def audit(
    warehouse: Warehouse,
    request: AuditRequest,
    gates: Gates,
    *,
    now: datetime,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """Audits the window and publishes cells, findings and the audit's own row.

    Running it again with the same request gives the same rows, but for the clock columns. Files of
    the sink that were ingested and broke since are set aside, and what they fed is inconclusive.
    Where rows went or came though a commit said that it changes none, all of the sink is read anew.

    Raises:
        UnsoundFilesError: the sink has changed since it was ingested; stored as failed.
        InvariantError: the numbers do not add up; the audit is stored as rejected, with the gates.
        GateError: an expectation does not hold, or nobody knows; stored in the same way.
        SelfCheckError: it did not find what it planted; stored in the same way.
        Exception: any other; the audit is stored as failed.
    """
    gates.quality.prepare()
    if request.eras is None:
        *older, request = in_eras(warehouse, request)
        for part in older:
            audit(warehouse, part, gates, now=now)
    try:
        return _audit(warehouse, request, gates, now=now, progress=progress)
    except UnsoundFilesError as error:
        if not _ingest_anew(warehouse, request, error.faults, now=now):
            raise
    except _SinkReadAnewError:
        pass
    return audit(warehouse, request, gates, now=now, progress=progress)


def _audit(
    warehouse: Warehouse, request: AuditRequest, gates: Gates, *, now: datetime, progress: Progress
) -> AuditReport:
    request, state = replace(request, clock=now), ingested(warehouse, request.name)
    row = AuditRow(warehouse, request, state, started_at=now)
    with row.running():
        planted = canary(warehouse.spark, request, state.damage.beside(request.stream.locations))
        facts = _facts(request, planted.plan.judged_damage)
        with progress.stage("compare"):
            comparison = compare_and_keep(warehouse, request, state, planted)
        with progress.stage("classify"):
            said = judged(warehouse, comparison, request, facts, planted)
        with progress.stage("self-check"):
            wrong = said.unlike(planted, comparison.classified, facts)
            own = said.without_canary()
            outcome = measured(warehouse, request, comparison, outcome_of(own, request.audit_id))
        with progress.stage("gates"):
            torn = _mend_torn_cells(warehouse, request, comparison, state, now=now)
            broken = broken_rules(comparison, outcome, request, state, torn)
            small = summaries(warehouse, request, comparison, outcome)
            results = gates.judge(small, invariants=broken)
            store(warehouse, request, gates, results)
        rejection = _rejection(request.audit_id, wrong, broken, results)
        if rejection is not None:
            row.reject(outcome, self_check=SelfCheck.FAILED if wrong else SelfCheck.PASSED)
            tell_rejected(warehouse, request, rejection)
            raise rejection
        with progress.stage("publish"):
            publish(warehouse, facts, own, outcome, now=now)
            mark = (
                unmoved_watermark(warehouse, request.name)
                if request.is_to_come(now)
                else move_watermark(warehouse, request, outcome, judged=own, comparison=comparison)
            )
            noted = sentences(results, severity=Severity.WARN) + quiet_notes(
                request.name, request.aligned, stored_holds(warehouse, request.name)
            )
            report = row.publish(outcome, watermark=mark, noted=noted)
    tell_published(warehouse, request, report)
    return report


def _mend_torn_cells(
    warehouse: Warehouse,
    request: AuditRequest,
    comparison: Comparison,
    state: Ingested,
    *,
    now: datetime,
) -> list[Row]:
    """Reads the sink anew, once, if its rows are not the ledger's; else the `torn_cells`.

    Not where the ledger itself is torn: what a reading takes off it would be wrong.

    Raises:
        _SinkReadAnewError: it was.
    """
    torn = torn_cells(comparison)
    is_sink = any(cell.is_sink for cell in torn) and not comparison.placed
    is_whole = is_sink and not torn_ledger(comparison, state)
    if is_whole and _ingest_anew(warehouse, request, {}, now=now):
        raise _SinkReadAnewError
    return torn


def _ingest_anew(
    warehouse: Warehouse, request: AuditRequest, faults: Mapping[str, str], *, now: datetime
) -> bool:
    """Reads the sink by `ingest_without`; whether that wrote anything."""
    sink = SinkSide(warehouse, request.name, request.stream, request.cells)
    return sink.ingest_without(faults, now=now) is not None


def _rejection(
    audit_id: str, wrong: list[str], broken: list[str], results: list[SuiteResult]
) -> ShardauditError | None:
    """Why nothing may be published; None when all is well."""
    if wrong:
        return SelfCheckError(audit_id, wrong)
    if broken:
        return InvariantError(audit_id, broken)
    shut = sentences(results, severity=Severity.ERROR)
    return GateError(audit_id, shut) if shut else None


def _facts(request: AuditRequest, damage: Damage) -> AuditFacts:
    return AuditFacts(
        audit_id=request.audit_id,
        stream=request.name,
        window=request.aligned,
        as_of=request.as_of,
        over_by=request.over_by,
        bucket=request.stream.bucket,
        retention=request.retention,
        damage=damage,
    )
