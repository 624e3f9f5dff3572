"""What a dedupe had kept when it died, of messages that a person accepted since."""

from dataclasses import fields, replace
from datetime import timedelta

import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.backfill.dedupe_plan import plan_dedupe, stored_dedupe
from shardaudit.backfill.dedupe_run import Dedupe
from shardaudit.backfill.landing import BackfillSink, backfill_sink
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.backfill_tables import REMOVED_ROWS
from shardaudit.model.window import Window
from shardaudit.store.transitions import accept_findings
from tests.builders import T0, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

HOUR = timedelta(hours=1)
NOW = T0 + 3 * HOUR
DAY = Retention(timedelta(days=1))


class DyingSink(BackfillSink):
    """Its run dies before it removes anything."""

    def keep_one(self, *_: object, **__: object) -> None:
        raise LockLostError(self.path, "another run")


def test_a_row_that_never_left_the_sink_is_kept_no_more(lake: Lake) -> None:
    lake.settings["retention"] = DAY.length
    lake.log("a.jsonl", map(trace_line, (600, 605, 610)))
    lake.land([sink_row(n) for n in (600, 605, 605, 610, 610, 610)])
    lake.ingest(now=NOW)
    request = AuditRequest(lake.name, lake.stream, Window(T0, T0 + HOUR), NOW, DAY)
    audit(lake.warehouse, request, ungated(), now=NOW)
    shape = Eras(lake.stream.cell_shape)
    plan = plan_dedupe(lake.warehouse, lake.name, shape=shape, configured=None, now=NOW)
    stored = stored_dedupe(lake.warehouse, str(plan.plan_id))
    assert stored is not None
    warehouse, streams = lake.folder / "warehouse", {lake.name: lake.stream.model_dump()}
    settings = Settings.model_validate({"warehouse": str(warehouse), "streams": streams})
    sink = backfill_sink(lake.spark, settings, lake.name)
    dying = DyingSink(*(getattr(sink, each.name) for each in fields(BackfillSink)))
    dedupe = Dedupe(lake.warehouse, settings, None, stored, dying, DAY, lambda: NOW, "test")
    with pytest.raises(LockLostError):
        dedupe.remove(approve_as="ann")
    assert kept(lake) == [("m605", 2), ("m610", 2), ("m610", 3)]

    # Of an earlier version, which kept no settings: somebody approves those of now.
    again = plan_dedupe(lake.warehouse, lake.name, shape=shape, configured="{}", now=NOW)
    anew = stored_dedupe(lake.warehouse, stored.plan_id)
    assert anew is not None
    assert (again.plan_id, anew.state, anew.approved_by) == (stored.plan_id, "planned", None)

    accept_findings(lake.warehouse, lake.name, ["m605"], reason="both are meant", now=NOW)
    with pytest.raises(LockLostError):
        replace(dedupe).remove(approve_as="ann")
    assert kept(lake) == [("m610", 2), ("m610", 3)]


def kept(lake: Lake) -> list[tuple[str, int]]:
    return sorted((row.message_id, row.copy) for row in lake.rows(REMOVED_ROWS))
