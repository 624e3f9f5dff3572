"""What audits and watches give to other tools: numbers by name. docs/metrics.md tells what each is.

Times are seconds since 1970; 0 where there is none: StatsD keeps a gauge that is not sent again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from shardaudit.model.loss_budget import LossBudget
from shardaudit.model.verdict import Level, ShardState, by_rank
from shardaudit.report.health import Health
from shardaudit.report.summary import AuditReport

_TROUBLED = (ShardState.STALLED, ShardState.SILENT, ShardState.REWOUND, ShardState.LAGGING)

Figures = dict[str, float]


def audit_figures(report: AuditReport) -> Figures:
    """Those of a published audit."""
    return {
        "published": 1,
        "verdict_good": int(report.is_good),
        "verdict_rank": max(map(by_rank, report.all_verdicts)),
        **report.counts,
        "trace_coverage": 1.0 if report.trace_coverage is None else report.trace_coverage,
        "shards_not_well": len(report.worst_shards),
        "notes": len(report.notes),
        "as_of_timestamp": _seconds(report.as_of),
        "watermark_timestamp": _seconds(report.watermark),
        "deadline_timestamp": _seconds(_first(d.recoverable_until for d in report.deadlines)),
    }


def unpublished_figures() -> Figures:
    """Those of an audit that was not published: the others stay as they were, and age."""
    return {"published": 0}


def watch_figures(rows: Iterable[Mapping[str, object]]) -> Figures:
    """Those of one watch, from its rows of the shards table."""
    shards = list(rows)
    times = {
        name: [at for row in shards if isinstance(at := row[name], datetime)]
        for name in ("recoverable_until", "start_by", "observed_at")
    }
    hours = [read for row in shards if isinstance(read := row["hours_to_read"], float)]
    return {
        "shards": len(shards),
        **{f"shards_{level}": _count(shards, "level", level) for level in Level},
        **{f"shards_{state}": _count(shards, "state", state) for state in _TROUBLED},
        "hours_to_read": max(hours, default=0.0),
        "deadline_timestamp": _seconds(_first(times["recoverable_until"])),
        "start_by_timestamp": _seconds(_first(times["start_by"])),
        "observed_timestamp": _seconds(max(times["observed_at"], default=None)),
    }


def health_figures(health: Health) -> Figures:
    """When a stream was last looked at: what is not sent again ages by itself."""
    return {f"{what}_timestamp": _seconds(at) for what, at in health.times.items()}


def budget_figures(budget: LossBudget) -> Figures:
    """How much of a month's loss budget is used; that is not sent where it is not known."""
    told = {"used": budget.used, "burn_rate": budget.burn_rate, "left": budget.left}
    return {
        "known": int(budget.used is not None),
        "month_timestamp": budget.month.start.timestamp(),
        "lost": budget.lost,
        "stuck": budget.stuck,
        "unaudited_seconds": budget.unaudited.total_seconds(),
        **{name: value for name, value in told.items() if value is not None},
    }


def _count(rows: Iterable[Mapping[str, object]], column: str, value: str) -> int:
    return sum(row[column] == value for row in rows)


def _first(times: Iterable[datetime]) -> datetime | None:
    return min(times, default=None)


def _seconds(at: datetime | None) -> float:
    return 0.0 if at is None else at.timestamp()
