"""What the last tasks say and keep: which shards, how many messages, until when, what to do."""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from shardaudit.airflow.planned_jobs import PlannedAudit, configured
from shardaudit.airflow.telemetry import emit
from shardaudit.model.errors import FinalError, ShardauditError
from shardaudit.model.words import counted, messages, time_left
from shardaudit.report.figures import audit_figures, unpublished_figures
from shardaudit.report.held_back import complete_until
from shardaudit.report.next_steps import late_lines, next_steps
from shardaudit.report.plain import harmless, instant
from shardaudit.report.rate_lines import sampled_line
from shardaudit.report.summary import SHARD_COUNTS, AuditReport

log = logging.getLogger(__name__)

_SHOWN_SHARDS = 20


def keep_report(planned: PlannedAudit) -> None:
    """Writes the report of the audit. Without one the verdict is said all the same."""
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.adapters.clock import now  # noqa: PLC0415
    from shardaudit.page.page_report import write_report  # noqa: PLC0415

    settings = configured()
    try:
        kept = write_report(settings, planned["stream"], planned["audit_id"], now=now())
    except ShardauditError as error:
        log.warning("there is no report of %s: %s", planned["audit_id"], error)
        return
    log.info("report: %s", kept.place)
    log.info("map: %s, in the menu under Shardaudit", kept.link)


class BadVerdictError(FinalError, AirflowFailException):
    """The stream is not complete, or nobody knows: red, and another try would say the same."""


def judge(planned: PlannedAudit) -> None:
    """Tells what the audit found.

    Raises:
        BadVerdictError: messages are missing or doubled, or the audit cannot say.
    """
    try:
        report = _published(planned)
    except FinalError as error:
        emit("audit", planned["stream"], unpublished_figures())
        raise BadVerdictError(str(error)) from error
    emit("audit", planned["stream"], audit_figures(report))
    if report.is_good:
        _tell(logging.INFO, lines(report))
        return
    _tell(logging.WARNING, lines(report))
    if any(verdict.is_red for verdict in report.all_verdicts):
        raise BadVerdictError(lines(report)[0])


def lines(report: AuditReport) -> list[str]:
    """The report as sentences, the verdict first."""
    worst = report.worst_shards[:_SHOWN_SHARDS]
    more = len(report.worst_shards) - len(worst)
    return [
        _headline(report),
        f"audit {report.audit_id}: {instant(report.window_start)} to {instant(report.window_end)}, "
        f"as of {instant(report.as_of)}; "
        f"{harmless(complete_until(report.watermark, report.watermark_reason))}",
        ", ".join(f"{report.counts[name]:,} {name}" for name in SHARD_COUNTS),
        *([sampled] if (sampled := sampled_line(report.rates)) else []),
        *late_lines(report.late, report.waiting, report.given_up),
        *(
            f"{harmless(shard.shard_id)} is {shard.verdict}: {shard.missing:,} missing, "
            f"{shard.duplicated:,} duplicated, {shard.untraced:,} untraced, {shard.moved:,} moved "
            f"of {shard.sent:,} sent"
            for shard in worst
        ),
        *([f"… and {counted(more, 'shard')} more"] if more else []),
        *map(harmless, report.notes),
        *(f"next: {step}" for step in next_steps(report)),
    ]


def event_extra(planned: Iterable[PlannedAudit]) -> dict[str, Any]:
    """The asset event's `extra`: a summary of each published audit, and which streams have none.

    Raises:
        AirflowSkipException: no audit was published, so there is nothing to tell.
    """
    audits, unpublished = [], []
    for audit in planned:
        try:
            audits.append(_summary(_published(audit)))
        except FinalError as error:
            log.warning("%s", error)
            unpublished.append(audit["stream"])
    if not audits:
        raise AirflowSkipException("no audit of this run was published")
    return {"audits": audits, "unpublished": unpublished}


def _published(planned: PlannedAudit) -> AuditReport:
    # Not at the module's top: it reads with pyarrow, and this file is parsed every few seconds.
    from shardaudit.store.published import published_audit  # noqa: PLC0415

    settings = configured()
    return published_audit(settings, planned["stream"], planned["audit_id"])


def _headline(report: AuditReport) -> str:
    text = f"{report.stream} is {report.verdict.upper()}"
    missing, duplicated = report.counts["missing"], report.counts["duplicated"]
    if missing:
        shards = sum(shard.missing > 0 for shard in report.worst_shards)
        where = f" on {shards:,} of its shards" if shards else ", as many as are tolerated"
        text += f": {messages(missing)} missing{where}"
    if duplicated:
        text += f"{',' if missing else ':'} {messages(duplicated)} landed more than once"
    if any(late.is_red for late in report.late):
        lost = sum(late.missing for late in report.late)
        what = f"{messages(lost)} missing in" if lost else "not well are"
        text += f"; {what} minutes before its window, audited with it"
    if report.waiting and report.waiting.is_overdue:
        text += (
            f"; minutes before its window wait to be audited since {instant(report.waiting.since)}"
        )
    if any(one.is_red for one in report.given_up):
        text += "; minutes before its window are audited no more: none came to its end"
    if report.deadlines:
        first = min(line.recoverable_until for line in report.deadlines)
        left = time_left(first - report.left_by)
        text += f"; the first leave the stream at {instant(first)} ({left})"
    return text


def _summary(report: AuditReport) -> dict[str, Any]:
    deadline = min((line.recoverable_until for line in report.deadlines), default=None)
    return {
        "stream": report.stream,
        "audit_id": report.audit_id,
        "verdict": report.verdict.value,
        "window_start": _text(report.window_start),
        "window_end": _text(report.window_end),
        "as_of": _text(report.as_of),
        "watermark": _text(report.watermark),
        "watermark_reason": report.watermark_reason,
        "recoverable_until": _text(deadline),
        "late": [late.audit_id for late in report.late if late.is_red],
        **report.counts,
    }


def _text(at: datetime | None) -> str | None:
    return None if at is None else instant(at)


def _tell(level: int, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        log.log(level, "%s", sentence)
