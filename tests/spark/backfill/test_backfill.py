"""From a stream with planted losses to a sink in which each message stands once."""

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

from shardaudit.backfill.dedupe_plan import plan_dedupe, purge_removed_rows, stored_dedupe
from shardaudit.backfill.ledger import store_windows
from shardaudit.backfill.rules.planned import VERIFY, WindowState
from shardaudit.backfill.run import ACTIONS, run_backfill
from shardaudit.model.config.eras import always
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
    plan, again = loss.planned(), loss.planned()
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.run(plan, approve_as=None)
    states, open_ones = {w.state for w in loss.windows(plan)}, loss.findings()["lost", "open"]
    assert (again.plan_id, states, open_ones) == (plan.plan_id, {"planned"}, 9)

    loss.control.change({"throttle": True, "empty_pages": 3, "iterator_ttl_s": 60.0})
    verified = loss.ran(plan)

    assert (verified.recovered, verified.left, verified.cut_short) == (10, 0, 0)
    gates = {name: state for name, (state, _) in loss.gates(plan).items()}
    assert gates == {contract.name: "passed" for contract in CONTRACTS}
    found = loss.findings()
    wanted = {("lost", "recovered"): 9, ("cancel", "recovered"): 1, ("expired", "expired"): 3}
    is_left = found["stuck_shard", "open"] > 0
    assert ({key: found[key] for key in wanted}, is_left) == (wanted, True)
    landed = loss.landed()
    times = {landed[one] for one in loss.simulated.planted_ids("lost")}
    assert (times, landed.total()) == ({1}, before.total() + 10)
    windows = {(str(w.state), w.approved_by) for w in loss.windows(plan)}
    assert windows <= {("verified", "ann"), ("expired", "ann")}
    new = [row for row in loss.simulated.sink if row["landed_at"] == loss.scenario.as_of]
    assert [is_as_the_others(row) for row in new] == [True] * 10

    assert (loss.run(plan), loss.landed()) == (None, landed)


def is_as_the_others(row: dict[str, object]) -> bool:
    """Whether a row has a time, its day, and the content of its message."""
    at, content = row["sent_at"], str(row["payload"])
    is_placed = isinstance(at, datetime) and row["day"] == f"{at:%Y-%m-%d}"
    return is_placed and str(row["message_id"]) in content


def test_every_duplicate_goes_and_is_kept_aside(loss: Loss) -> None:
    before = loss.landed()
    doubled = {one for one, n in before.items() if n > 1}
    plan = plan_dedupe(
        loss.warehouse, NAME, shape=always(MINUTE), configured=None, now=loss.scenario.as_of
    )
    assert plan.plan_id is not None
    later = loss.scenario.as_of + timedelta(minutes=1)
    again = plan_dedupe(loss.warehouse, NAME, shape=always(MINUTE), configured=None, now=later)
    assert (again, again.ids, again.extra_rows) == (plan, len(doubled), 3)
    stored = stored_dedupe(loss.warehouse, plan.plan_id)
    times = stored and (stored.created_at, stored.updated_at)
    assert times == (loss.scenario.as_of, later)
    with pytest.raises(ConfigError, match="--approve-as"):
        loss.dedupe(plan.plan_id, approve_as=None)
    for _ in range(2):
        done = loss.dedupe(plan.plan_id)
        assert (done.state, done.removed_rows, done.error) == ("verified", 3, None)
    kept = loss.warehouse.read(REMOVED_ROWS).collect()
    aside = {(row.message_id, row.copy, json.loads(row.content)["message_id"]) for row in kept}
    once = Counter(before.keys())
    assert (loss.landed(), aside) == (once, {(one, 2, one) for one in doubled})
    duplicated = loss.warehouse.read(FINDINGS).where(F.col("kind") == "duplicated")
    assert {row.state for row in duplicated.collect()} == {"recovered"}
    assert (
        plan_dedupe(
            loss.warehouse, NAME, shape=always(MINUTE), configured=None, now=loss.scenario.as_of
        ).plan_id
        is None
    )
    purged = [purge_removed_rows(loss.settings, plan.plan_id).purged_rows for _ in range(2)]
    left = loss.warehouse.read(REMOVED_ROWS).count()
    assert (purged, left, loss.landed()) == ([3, 0], 0, once)


@pytest.mark.drill
def test_stuck_tail_comes_back_when_asked_for(loss: Loss) -> None:
    plan = loss.planned(include_stuck=True)
    verified = loss.ran(plan)
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
    first = loss.ran(plan)
    assert first.cut_short == 3
    states = Counter(w.state for w in loss.windows(plan))
    assert states[WindowState.INCOMPLETE] == 3
    second = loss.ran(plan)
    assert (second.left, second.cut_short) == (0, 0)
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("lost")} == {1}


def test_what_a_replay_left_is_told_by_the_proof_and_read_by_the_next(loss: Loss) -> None:
    plan = loss.planned()
    with pytest.raises(ConfigError, match="a plan that was approved"):
        run_backfill(loss.running(plan, approve_as=None), ACTIONS[VERIFY])
    assert {w.state for w in loss.windows(plan)} == {"planned"}

    fault = {"operation": "GetRecords", "error": "AccessDeniedException", "status": 400}
    loss.control.change({"faults": [fault | {"times": 3}]})
    assert loss.replayed(plan) == ExitCode.RETRY
    states = Counter(w.state for w in loss.windows(plan))
    assert states == {"merged": len(loss.windows(plan)) - 3, "incomplete": 3}
    assert loss.findings()["lost", "open"] == 0
    anew, *_ = (w for w in loss.windows(plan) if w.state is WindowState.INCOMPLETE)
    store_windows(loss.warehouse, [replace(anew, state=WindowState.PLANNED, approved_by=None)])
    loss.proof(plan, ends=ExitCode.FAILED)
    waiting = [w.window_id for w in loss.windows(plan) if w.state is WindowState.PLANNED]
    assert (loss.findings()["lost", "open"] > 0, waiting) == (True, [anew.window_id])

    assert loss.replayed(plan) == ExitCode.DONE
    loss.proof(plan)
    assert {w.state for w in loss.windows(plan)} <= {"verified", "expired"}
    landed = loss.landed()
    assert {landed[one] for one in loss.simulated.planted_ids("lost")} == {1}


def test_range_by_hand_brings_all_that_the_sink_does_not_have(loss: Loss) -> None:
    window = loss.scenario.window
    late = Window(window.end - timedelta(hours=1), window.end)
    plan = loss.planned(window=late)
    assert (loss.replayed(plan), loss.proof(plan)["left"]) == (ExitCode.DONE, 0)
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
