"""A filter says that it left a message out only after that was planned to be read again."""

from collections import Counter
from datetime import timedelta

from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis_pages import StreamAddress
from shardaudit.backfill.kinesis_source import ReadSettings
from shardaudit.backfill.ledger import Ledger, stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill
from shardaudit.backfill.proofs import Proof, proofs
from shardaudit.backfill.replay_run import Replay
from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import State
from shardaudit.store.transitions import NewState, accept_findings, change_state
from tests.builders import NOW, sink_row, trace_line
from tests.spark.audit.on_routes import audited, passed, sighting
from tests.spark.lake import Lake

KEPT = Retention(timedelta(hours=24))
LEFT_OUT, LOST = range(0, 480, 20), range(10, 480, 40)
LANDED = sorted({*range(0, 480, 5)} - {*LEFT_OUT, *LOST})


def test_what_a_filter_left_out_is_closed_and_lands_by_no_plan_of_before(lake: Lake) -> None:
    route = {"valid": {"after": ["producer"], "share": "traced"}}
    lake.settings = {"retention": KEPT.length, "locations": route}
    lines = [line for n in LANDED for line in (trace_line(n), *passed(n, ("valid",)))]
    for n in (*LEFT_OUT, *LOST):
        lines += [trace_line(n), sighting(n, "valid", "received")]
    lake.log("all.jsonl", lines)
    lake.land(map(sink_row, LANDED))
    lake.ingest()
    audited(lake)
    wanted = PlanRequest(lake.name, lake.stream, NOW, KEPT)
    plan = plan_backfill(lake.warehouse, wanted, now=NOW)
    ledger = Ledger(lake.warehouse, stored_windows(lake.warehouse, plan.plan_id), "test")
    reading = ReadSettings(StreamAddress("kinesis-events"), 0.5)
    cells = Eras(lake.stream.cell_shape)
    replay = Replay(
        lake.warehouse, ledger, None, reading, KEPT, cells, lambda: NOW, lake.stream.route
    )
    assert replay.named_ids().count() == len(LEFT_OUT) + len(LOST)
    findings = lake.warehouse.read(FINDINGS)
    is_read = F.col("message_id") >= "m2"
    for state, some in ((State.PLANNED, findings), (State.REPLAYED, findings.where(is_read))):
        change_state(lake.warehouse, FINDINGS, some, NewState(state, "a test", NOW))
    lake.log("late.jsonl", [sighting(n, "valid", "left_out") for n in LEFT_OUT])
    lake.ingest()
    report = audited(lake)
    total = sum(proofs(replay, report.audit_id).values(), Proof())
    assert (total.back, total.left) == (0, len(LOST))
    states = Counter((row.state, row.state_reason) for row in lake.rows(FINDINGS))
    assert states == {
        ("false_alarm", "a filter left it out"): len(LEFT_OUT),
        ("replayed", "a test"): sum(f"m{n}" >= "m2" for n in LOST),
        ("planned", "a test"): sum(f"m{n}" < "m2" for n in LOST),
    }
    still = {f"m{n}" for n in LOST}
    assert {row.message_id for row in replay.named_ids().collect()} == still
    accept_findings(lake.warehouse, lake.name, ["m10"], reason="known", now=NOW)
    wanted_ids = replay.wanted_ids(ledger.windows).collect()
    assert {row.message_id for row in wanted_ids} == still - {"m10"}
