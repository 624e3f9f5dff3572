"""A message whose attempts were stamped minutes apart, and landed both: one row of it stays."""

from datetime import datetime, timedelta

import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.backfill.dedupe_plan import plan_dedupe, stored_dedupe
from shardaudit.backfill.dedupe_run import Dedupe
from shardaudit.backfill.landing import backfill_sink
from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.backfill_tables import REMOVED_ROWS
from shardaudit.model.window import Window
from shardaudit.store.transitions import accept_findings
from tests.builders import T0, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

pytestmark = pytest.mark.apache_spark  # repairs

HOUR = timedelta(hours=1)
NOW = T0 + 3 * HOUR
DAY = Retention(timedelta(days=1))


def test_of_attempts_minutes_apart_one_row_stays(lake: Lake) -> None:
    lake.settings["retention"] = DAY.length
    retry = {"message_id": "m610"}
    lake.log("a.jsonl", [*map(trace_line, (600, 605, 610)), trace_line(790, **retry)])
    stay = [sink_row(n) for n in (600, 605, 605, 610)]
    lake.land([*stay, sink_row(790, **retry)])
    lake.ingest(now=NOW)
    request = AuditRequest(lake.name, lake.stream, Window(T0, T0 + HOUR), NOW, DAY)
    assert audit(lake.warehouse, request, ungated(), now=NOW).verdict == "duplication"
    plan = plan_dedupe(
        lake.warehouse, lake.name, shape=Eras(lake.stream.cell_shape), configured=None, now=NOW
    )
    assert plan.plan_id is not None
    accept_findings(lake.warehouse, lake.name, ["m605"], reason="both are meant", now=NOW)
    stored = stored_dedupe(lake.warehouse, plan.plan_id)
    assert stored is not None
    warehouse, streams = lake.folder / "warehouse", {lake.name: lake.stream.model_dump()}
    settings = Settings.model_validate({"warehouse": str(warehouse), "streams": streams})
    late = [sink_row(791, **retry)]

    def now() -> datetime:
        """A third row lands when the two are counted, and before one is removed."""
        while dedupe.plan.state is WindowState.APPROVED and late:
            lake.land([late.pop()])
        return NOW + timedelta(minutes=1)

    dedupe = Dedupe(
        warehouse=lake.warehouse,
        settings=settings,
        gates=open_gates(None),
        plan=stored,
        sink=backfill_sink(lake.spark, settings, lake.name),
        retention=DAY,
        now=now,
        owner="test",
    )
    with pytest.raises(ConfigError, match="`dedupe remove` began"):
        dedupe.verify()
    dedupe.remove(approve_as="ann")
    dedupe.verify()
    assert (dedupe.plan.state, dedupe.plan.removed_rows) == ("verified", 2)
    landed = lake.spark.read.format("delta").load(str(lake.sink)).collect()
    left = sorted((at.message_id, at.sequence_number) for at in landed)
    kept = sorted((row.message_id, row.copy) for row in lake.warehouse.read(REMOVED_ROWS).collect())
    assert (left, kept) == (
        sorted((at["message_id"], at["sequence_number"]) for at in stay),
        [("m610", 2), ("m610", 3)],
    )
