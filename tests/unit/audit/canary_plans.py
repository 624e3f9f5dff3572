"""The plan of a canary, with sensible defaults."""

from datetime import UTC, datetime, timedelta

from shardaudit.audit.rules.canary.canary_plan import CanaryPlan
from shardaudit.audit.rules.classify import Damage
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def plan(
    *,
    as_of: datetime = NOW,
    over_by: datetime | None = None,
    bucket_s: int = 60,
    damage: Damage | None = None,
    retention: Retention | None = None,
) -> CanaryPlan:
    return CanaryPlan(
        window=Window(NOW - timedelta(hours=1), NOW),
        as_of=as_of,
        over_by=over_by or as_of,
        bucket=timedelta(seconds=bucket_s),
        settle_grace=timedelta(minutes=10),
        retention=retention or Retention(timedelta(hours=24)),
        trace_coverage_floor=0.99,
        damage=damage or Damage(),
    )
