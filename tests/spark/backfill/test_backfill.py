"""From a stream with planted losses to a sink in which each message stands once."""

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

from shardaudit.backfill.dedupe_plan import plan_dedupe, purge_removed_rows, stored_dedupe
from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.gate import CONTRACTS
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.backfill_tables import REMOVED_ROWS
from shardaudit.model.window import Window
from tests.spark.losses import NAME, Loss

pytestmark = pytest.mark.apache_spark  # repairs

MINUTE = timedelta(minutes=1)


def test_every_lost_message_lands_once_and_the_audit_says_so(loss: Loss) -> None:
    before = loss.landed()
    plan = loss.planned()
    assert loss.planned().plan_id == plan.plan_id
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.run(plan, approve_as=None)
    assert {w.state for w in loss.windows(plan)} == {"planned"}
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
    assert {w.state for w in loss.windows(plan)} <= {"verified", "expired"}
    assert {w.approved_by for w in loss.windows(plan)} == {"ann"}
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
    plan = plan_dedupe(loss.warehouse, NAME, bucket=MINUTE, now=loss.scenario.as_of)
    assert (plan.ids, plan.extra_rows) == (len(doubled), 3)
    assert plan.plan_id is not None
    later = loss.scenario.as_of + timedelta(minutes=1)
    assert plan_dedupe(loss.warehouse, NAME, bucket=MINUTE, now=later) == plan
    stored = stored_dedupe(loss.warehouse, plan.plan_id)
    assert stored is not None
    assert (stored.created_at, stored.updated_at) == (loss.scenario.as_of, later)
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.dedupe(plan.plan_id, approve_as=None)
    for _ in range(2):
        done = loss.dedupe(plan.plan_id)
        assert (done.state, done.removed_rows, done.error) == ("verified", 3, None)
    assert loss.landed() == Counter(before.keys())
    kept = loss.warehouse.read(REMOVED_ROWS).collect()
    assert {row.message_id for row in kept} == doubled
    assert {row.copy for row in kept} == {2}
    assert all(json.loads(row.content)["message_id"] == row.message_id for row in kept)
    duplicated = loss.warehouse.read(FINDINGS).where(F.col("kind") == "duplicated")
    assert {row.state for row in duplicated.collect()} == {"recovered"}
    assert plan_dedupe(loss.warehouse, NAME, bucket=MINUTE, now=loss.scenario.as_of).plan_id is None
    assert [purge_removed_rows(loss.settings, plan.plan_id).purged_rows for _ in range(2)] == [3, 0]
    assert loss.warehouse.read(REMOVED_ROWS).isEmpty()
    assert loss.landed() == Counter(before.keys())


@pytest.mark.drill
def test_stuck_tail_comes_back_when_asked_for(loss: Loss) -> None:
    plan = loss.planned(include_stuck=True)
    verified = loss.run(plan)
    assert verified is not None
    assert verified.left == 0
    found = loss.findings()
    assert {state for (fault, state) in found if fault == "stuck_shard"} == {"recovered"}
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("stuck_shard", "lost")} == {1}


@pytest.mark.drill
def test_run_that_was_cut_short_is_finished_by_the_next(loss: Loss) -> None:
    plan = loss.planned()
    fault = {"operation": "GetRecords", "error": "AccessDeniedException", "status": 400}
    loss.control.change({"faults": [fault | {"times": 3}]})
    first = loss.run(plan)
    assert first is not None
    assert first.cut_short == 3
    states = Counter(w.state for w in loss.windows(plan))
    assert states[WindowState.INCOMPLETE] == 3
    second = loss.run(plan)
    assert second is not None
    assert (second.left, second.cut_short) == (0, 0)
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("lost")} == {1}


def test_what_a_replay_left_is_told_by_the_proof_and_read_by_the_next(loss: Loss) -> None:
    plan = loss.planned()
    with pytest.raises(ConfigError, match="a plan that was approved"):
        loss.verified(plan)
    assert {w.state for w in loss.windows(plan)} == {"planned"}

    fault = {"operation": "GetRecords", "error": "AccessDeniedException", "status": 400}
    loss.control.change({"faults": [fault | {"times": 3}]})
    assert loss.replayed(plan) == ExitCode.RETRY
    states = Counter(w.state for w in loss.windows(plan))
    assert states == {"merged": len(loss.windows(plan)) - 3, "incomplete": 3}
    assert loss.findings()["lost", "open"] == 0
    assert loss.verified(plan) == ExitCode.FAILED
    assert loss.findings()["lost", "open"] > 0

    assert loss.replayed(plan) == ExitCode.DONE
    assert loss.verified(plan) == ExitCode.DONE
    assert {w.state for w in loss.windows(plan)} <= {"verified", "expired"}
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
    assert {(w.state, w.error) for w in loss.windows(plan)} == {("verified", None)}
    assert loss.findings()["stuck_shard", "recovered"] > 0
