"""A shard that stops after the night's audit: an audit is asked for, so that a plan has it."""

from datetime import datetime

import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.late import audit_with_late
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill
from shardaudit.model.config.parts import Aws
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.notify import audit_wanted
from tests.builders import SHARD, T0, sink_row, trace_line
from tests.spark.audit.nights import DAY, HOUR, MINUTE, settings_of
from tests.spark.lake import Lake
from tests.spark.ungated import ungated
from tests.spark.watch.ledger import NOBODY

KEPT = Retention(DAY)


def audited(lake: Lake, window: Window, *, now: datetime) -> None:
    request = AuditRequest(lake.name, lake.stream, window, now, KEPT)
    audit_with_late(lake.warehouse, request, ungated(), now=now)


def wanted(lake: Lake, now: datetime) -> Window | None:
    """What a watch finds that an audit must look at."""
    lake.ingest(now=now)
    aws = Aws(region="us-east-1", endpoints={"kinesis": NOBODY})
    settings = settings_of(lake).model_copy(update={"aws": aws})
    watch(lake.warehouse, WatchRequest(settings, lake.name, now))
    return audit_wanted(settings, lake.name, now=now)


@pytest.mark.usefixtures("_any_credentials")
def test_what_waits_since_the_last_audit_is_named_and_planned_in_time(lake: Lake) -> None:
    lake.settings["retention"] = KEPT.length

    def planned(now: datetime) -> set[str]:
        request = PlanRequest(lake.name, lake.stream, now, KEPT)
        plan = plan_backfill(lake.warehouse, request, now=now)
        return {window.shard_id for window in plan.windows}

    night, now = T0, T0 + 19 * HOUR
    lake.log("before.jsonl", map(trace_line, range(-7200, 0, 600)))
    lake.land(map(sink_row, range(-7200, 0, 600)))
    lake.ingest(now=night)
    audited(lake, Window(T0 - 2 * HOUR, night), now=night)
    lake.log("since.jsonl", map(trace_line, range(0, 19 * 3600, 600)))
    lake.land([sink_row(0)])  # then its consumer stops
    asked = wanted(lake, now)
    assert (asked, planned(now)) == (Window(T0 + 10 * MINUTE, now - 9 * MINUTE), set())
    assert asked is not None
    audited(lake, asked, now=now)
    assert planned(now) == {SHARD}
    # The last one was on its way.
    assert wanted(lake, now + 2 * HOUR) == Window(now - 10 * MINUTE, now - 9 * MINUTE)
