"""The gates of a run: suites understood before it begins, judged before anything is published."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shardaudit.adapters.clock import now
from shardaudit.adapters.suites import ShippedSuites, SuiteJudge, understood_suites
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.model.gate import (
    BACKFILL_GATE,
    RESULT_GATE,
    CheckResult,
    GateState,
    Severity,
    SuiteResult,
    SummaryRow,
)
from shardaudit.model.tables.audit_tables import GATES
from shardaudit.report.summary import plain_value
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Gates:
    """The suites; of a backfill also its plan and the windows that it read."""

    quality: SuiteJudge
    plan_id: str | None = None
    windows: Sequence[SummaryRow] = ()

    def of_plan(self, plan_id: str, windows: Sequence[SummaryRow]) -> "Gates":
        """The same, for the audit that verifies a backfill."""
        return replace(self, plan_id=plan_id, windows=windows)

    def judge(
        self, summaries: Mapping[str, Sequence[SummaryRow]], *, invariants: Sequence[str]
    ) -> list[SuiteResult]:
        """What the suites say. `invariants`: what of the audit's numbers does not add up."""
        of_plan = {} if self.plan_id is None else {BACKFILL_GATE.name: self.windows}
        rows = {**summaries, **of_plan}
        results = [self.quality.judge(name, rows[name]) for name in rows]
        return [
            replace(result, checks=(_adds_up(invariants), *result.checks))
            if result.suite == RESULT_GATE.name
            else result
            for result in results
        ]


def open_gates(folder: str | None) -> Gates:
    """The gates with the suites of a folder, or with those that are shipped.

    Raises:
        ConfigError: a suite cannot be understood: file, line, what would do.
    """
    return Gates(understood_suites(folder) if folder else ShippedSuites())


def store(
    warehouse: Warehouse, request: AuditRequest, gates: Gates, results: Sequence[SuiteResult]
) -> None:
    """Writes what the suites said, in the place of what they said of the same audit before."""
    at = now()
    rows = [
        {
            "audit_id": request.audit_id,
            "stream": request.name,
            "plan_id": gates.plan_id,
            "suite": result.suite,
            "state": result.state.value,
            "rows": result.rows,
            "results": json.dumps(plain_value(result.checks), ensure_ascii=True, allow_nan=False),
            "judged_at": at,
        }
        for result in results
    ]
    warehouse.upsert(rows, GATES)


def _adds_up(broken: Sequence[str]) -> CheckResult:
    """What the audit checks of its own numbers, which no file can switch off."""
    says = f"{RESULT_GATE.name}: the audit's numbers add up"
    kind = "invariants"
    if not broken:
        return CheckResult(kind, Severity.ERROR, GateState.PASSED, says)
    sentence = (
        f"{says} – not so: {'; '.join(broken)}. This is a defect of shardaudit or of its tables"
    )
    return CheckResult(kind, Severity.ERROR, GateState.FAILED, sentence, {"broken": list(broken)})
