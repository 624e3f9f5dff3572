"""The gate of a run, as a task of its own: what the suites said, read and not judged again."""

import logging
from collections.abc import Sequence

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from shardaudit.airflow.planned_jobs import configured
from shardaudit.model.errors import FinalError
from shardaudit.model.gate import GateState, Severity, SuiteResult, sentences
from shardaudit.report.plain import harmless

log = logging.getLogger(__name__)


class GateShutError(FinalError, AirflowFailException):
    """A gate is shut: red, and another try would find it shut as well."""


def check_audit(audit_id: str) -> None:
    """Tells what the suites said of an audit.

    Raises:
        GateShutError: an expectation does not hold, or could not be checked; nothing is published.
        AirflowSkipException: the audit did not come to its gates; its own log says why.
    """
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.store.audits import gate_results  # noqa: PLC0415

    _tell(gate_results(configured(), audit_id), f"the audit {audit_id}")


def check_backfill(plan_id: str) -> None:
    """Tells what the suites said of a backfill and of the audit that was to verify it.

    Raises:
        GateShutError, AirflowSkipException: as `check_audit`.
    """
    from shardaudit.store.audits import plan_gate_results  # noqa: PLC0415 - as above

    _tell(plan_gate_results(configured(), plan_id), f"the backfill {plan_id}")


def _tell(results: Sequence[SuiteResult], of: str) -> None:
    if not results:
        raise AirflowSkipException(f"{of} did not come to its gates")
    for result in results:
        log.info("%s: %s, %d rows judged", result.suite, result.state, result.rows)
        for check in result.checks:
            level = logging.INFO if check.state is GateState.PASSED else logging.WARNING
            log.log(level, "%s: %s", check.state, harmless(check.sentence))
    shut = sentences(results, severity=Severity.ERROR)
    if shut:
        raise GateShutError(harmless(" | ".join(shut)))
