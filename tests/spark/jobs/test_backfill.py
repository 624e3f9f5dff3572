"""From a stream with planted losses to a sink in which each message stands once."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.stand_in import StandInControl, kinesis_stand_in
from shardaudit.jobs.audit import audit
from shardaudit.jobs.audit_request import AuditRequest
from shardaudit.jobs.backfill_ledger import stored_windows
from shardaudit.jobs.backfill_plan import PlanRequest, plan_backfill
from shardaudit.jobs.backfill_run import Running, run_backfill
from shardaudit.jobs.backfill_sink import backfill_sink
from shardaudit.jobs.backfill_verify import Verified
from shardaudit.jobs.commands.backfill import replay_of
from shardaudit.jobs.dedupe_plan import plan_dedupe, stored_dedupe
from shardaudit.jobs.dedupe_run import Dedupe
from shardaudit.jobs.gates import open_gates
from shardaudit.jobs.ingest import ingest
from shardaudit.jobs.simulate import Endpoints, simulate_stream
from shardaudit.model.backfill import Plan
from shardaudit.model.backfill_tables import REMOVED_ROWS
from shardaudit.model.config import Settings, load_settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.gate import CONTRACTS
from shardaudit.model.gate_tables import GATES
from shardaudit.model.tables import FINDINGS
from shardaudit.model.window import Window
from shardaudit.simulate.scenario import Scenario
from tests.unit.simulate.simulated import Simulated

START = datetime(2026, 11, 1, tzinfo=UTC)
NAME = "events"


@dataclass
class Loss:
    """A simulated stream, its sink, and the stand-in that still has the records."""

    warehouse: Warehouse
    scenario: Scenario
    folder: Path
    control: StandInControl

    @property
    def settings(self) -> Settings:
        return load_settings(self.folder / "shardaudit.toml")

    @property
    def simulated(self) -> Simulated:
        return Simulated(self.folder)

    def audited(self) -> None:
        stream, as_of = self.settings.stream(NAME), self.scenario.as_of
        ingest(self.warehouse, NAME, stream, now=as_of)
        request = AuditRequest(NAME, stream, self.scenario.window, as_of, self.scenario.retention)
        audit(self.warehouse, request, open_gates(None), now=as_of)

    def planned(self, **wanted: object) -> Plan:
        request = PlanRequest(
            NAME,
            self.settings.stream(NAME),
            self.scenario.as_of,
            self.scenario.retention,
            **wanted,  # type: ignore[arg-type] # the test's choice
        )
        return plan_backfill(self.warehouse, request, now=self.scenario.as_of)

    def run(self, plan: Plan, *, approve_as: str | None = "ann") -> Verified | None:
        replay = replay_of(self.warehouse, self.settings, plan.plan_id, as_of=self.scenario.as_of)
        return run_backfill(Running(replay, self.settings, open_gates(None), approve_as))

    def dedupe(self, plan_id: str, *, approve_as: str | None = "ann") -> dict[str, object]:
        row = stored_dedupe(self.warehouse, plan_id)
        assert row is not None
        dedupe = Dedupe(
            warehouse=self.warehouse,
            settings=self.settings,
            gates=open_gates(None),
            row=row,
            sink=backfill_sink(self.warehouse.spark, self.settings, NAME),
            retention=self.scenario.retention,
            now=lambda: self.scenario.as_of,
            owner="test",
        )
        dedupe.run(approve_as=approve_as)
        return dedupe.row

    def gates(self, plan: Plan) -> dict[str, tuple[str, int]]:
        """What was judged when the plan was verified: by suite its state and its rows."""
        rows = self.warehouse.rows(GATES, where=pc.field("plan_id") == plan.plan_id)
        return {row["suite"]: (row["state"], row["rows"]) for row in rows}

    def windows(self, plan: Plan) -> list[dict[str, object]]:
        return stored_windows(self.warehouse, plan.plan_id)

    def findings(self) -> Counter[tuple[str, str]]:
        """(planted as, state) of the missing messages."""
        planted = {row["message_id"]: str(row["fault"]) for row in self.simulated.planted}
        rows = self.warehouse.read(FINDINGS).where(F.col("kind") == "missing").collect()
        return Counter((planted[row.message_id], row.state) for row in rows)

    def landed(self) -> Counter[object]:
        return Counter(row["message_id"] for row in Simulated(self.folder).sink)


@pytest.fixture
def loss(spark: SparkSession, tmp_path: Path) -> Iterator[Loss]:
    """2,000 messages on 6 shards; 12 lost, 3 of them too long ago, some beside a duplicate."""
    scenario = Scenario(
        stream=NAME,
        seed=11,
        messages=2000,
        shards=6,
        start=START,
        hours=24,
        faults={"lost": 9, "expired": 3, "replay": 2, "cancel": 1, "stuck_shard": 1, "reshard": 1},
    )
    folder = tmp_path / "demo"
    with kinesis_stand_in() as url:
        simulate_stream(scenario, folder, endpoints=Endpoints(url))
        warehouse = Warehouse(spark, str(folder / "warehouse"))
        loss = Loss(warehouse, scenario, folder, StandInControl(url))
        loss.audited()
        yield loss


def test_every_lost_message_lands_once_and_the_audit_says_so(loss: Loss) -> None:
    before = loss.landed()
    plan = loss.planned()
    assert loss.planned().plan_id == plan.plan_id
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.run(plan, approve_as=None)
    assert {w["state"] for w in loss.windows(plan)} == {"planned"}
    assert loss.findings()["lost", "open"] == 9

    loss.control.change({"throttle": True, "empty_pages": 3, "iterator_ttl_s": 60.0})
    verified = loss.run(plan)

    assert verified is not None
    assert (verified.recovered, verified.left, verified.cut_short) == (10, 0, 0)
    assert set(loss.gates(plan)) == {contract.name for contract in CONTRACTS}
    assert {state for state, _ in loss.gates(plan).values()} == {"passed"}
    found = loss.findings()
    assert (found["lost", "recovered"], found["cancel", "recovered"]) == (9, 1)
    assert found["expired", "expired"] == 3
    assert found["stuck_shard", "open"] > 0
    landed = loss.landed()
    wanted = loss.simulated.planted_ids("lost")
    assert {landed[one] for one in wanted} == {1}
    assert sum(landed.values()) == sum(before.values()) + 10
    assert {w["state"] for w in loss.windows(plan)} <= {"verified", "expired"}
    assert {w["approved_by"] for w in loss.windows(plan)} == {"ann"}
    new = [row for row in loss.simulated.sink if row["landed_at"] == loss.scenario.as_of]
    assert len(new) == 10
    for row in new:
        assert isinstance(row["sent_at"], datetime)
        assert row["day"] == f"{row['sent_at']:%Y-%m-%d}"
        assert str(row["message_id"]) in str(row["payload"])

    assert loss.run(plan) is None
    assert loss.landed() == landed


def test_every_duplicate_goes_and_is_kept_aside(loss: Loss) -> None:
    before = loss.landed()
    doubled = {one for one, n in before.items() if n > 1}
    plan = plan_dedupe(loss.warehouse, NAME, now=loss.scenario.as_of)
    assert (plan.ids, plan.extra_rows) == (len(doubled), 3)
    assert plan.plan_id is not None
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.dedupe(plan.plan_id, approve_as=None)
    for _ in range(2):
        row = loss.dedupe(plan.plan_id)
        assert (row["state"], row["removed_rows"], row["error"]) == ("verified", 3, None)
    assert loss.landed() == Counter(before.keys())
    kept = loss.warehouse.read(REMOVED_ROWS).collect()
    assert {row.message_id for row in kept} == doubled
    assert {row.copy for row in kept} == {2}
    assert all(json.loads(row.content)["message_id"] == row.message_id for row in kept)
    duplicated = loss.warehouse.read(FINDINGS).where(F.col("kind") == "duplicated")
    assert {row.state for row in duplicated.collect()} == {"recovered"}
    assert plan_dedupe(loss.warehouse, NAME, now=loss.scenario.as_of).plan_id is None


def test_stuck_tail_comes_back_when_asked_for(loss: Loss) -> None:
    plan = loss.planned(include_stuck=True)
    verified = loss.run(plan)
    assert verified is not None
    assert verified.left == 0
    found = loss.findings()
    assert {state for (fault, state) in found if fault == "stuck_shard"} == {"recovered"}
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("stuck_shard", "lost")} == {1}


def test_run_that_was_cut_short_is_finished_by_the_next(loss: Loss) -> None:
    plan = loss.planned()
    fault = {"operation": "GetRecords", "error": "AccessDeniedException", "status": 400}
    loss.control.change({"faults": [fault | {"times": 3}]})
    first = loss.run(plan)
    assert first is not None
    assert first.cut_short == 3
    states = Counter(w["state"] for w in loss.windows(plan))
    assert states["incomplete"] == 3
    second = loss.run(plan)
    assert second is not None
    assert (second.left, second.cut_short) == (0, 0)
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("lost")} == {1}


def test_range_by_hand_brings_all_that_the_sink_does_not_have(loss: Loss) -> None:
    window = loss.scenario.window
    late = Window(window.end - timedelta(hours=1), window.end)
    plan = loss.planned(window=late)
    verified = loss.run(plan)
    assert verified is not None
    assert verified.left == 0
    landed = loss.landed()
    in_range = [
        row["message_id"]
        for row in loss.simulated.traces
        if str(row["sent_at"]) >= late.start.isoformat()[:19]
    ]
    assert len(in_range) > 60
    assert min(landed[one] for one in in_range) == 1
    assert {w["state"] for w in loss.windows(plan)} == {"verified"}
    assert loss.findings()["stuck_shard", "recovered"] > 0
