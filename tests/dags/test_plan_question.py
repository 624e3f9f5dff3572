"""One question at a time for the same part of a stream, and only for who may answer it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from deltalake import DeltaTable, write_deltalake

from shardaudit.airflow.backfill_steps import (
    Proposed,
    RejectedError,
    ReplacedError,
    act_on_answer,
    is_replaced,
    propose,
)
from shardaudit.airflow.plan_question import LOOK, PlanQuestion
from shardaudit.airflow.planned_jobs import PlanRefusedError
from shardaudit.backfill.questions import NoPlanError
from shardaudit.backfill.rules.planned import Repair
from tests.dags.stored_plans import NOW, request, store

FORM: dict[str, object] = {"stream": "events"}
DAY = timedelta(hours=24)


def asked(
    config: Path, plan_id: str, request_id: str, *, asker: str | None = None, scope: str = ""
) -> Proposed:
    """A plan that was stored, noted for a run, and is asked for by it."""
    store(config, plan_id)
    request(config, request_id, plan_id=plan_id, scope=scope)
    return propose(FORM, request_id=request_id, asker=asker, now=NOW)


def answer(option: str, name: str | None = "ann") -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": name and {"id": name, "name": name},
    }


def configure(config: Path, *lines: str) -> None:
    config.write_text("\n".join((config.read_text(), "[streams.events.backfill]", *lines)))


def test_a_run_proposes_its_own_plan_whatever_the_clocks_say(config: Path) -> None:
    store(config, "other", updated_at=NOW + timedelta(hours=1))
    mine = asked(config, "mine", "r1")
    assert mine["plan_id"] == "mine"  # the worker's clock is five hours behind the other's


def test_no_plan_of_its_own_is_red_and_nothing_to_plan_is_not(config: Path) -> None:
    store(config, "other")
    with pytest.raises(NoPlanError, match="r1"):
        propose(FORM, request_id="r1", asker=None, now=NOW)
    request(config, "r1", plan_id=None)
    with pytest.raises(AirflowSkipException, match="nothing of events"):
        propose(FORM, request_id="r1", asker=None, now=NOW)


def test_a_newer_plan_replaces_the_older_question_and_says_so(config: Path) -> None:
    older = asked(config, "p1", "r1")
    assert not is_replaced("r1")
    newer = asked(config, "p2", "r2")
    assert "plan p1 of the run `r1`" in newer["markdown"]
    assert is_replaced("r1")
    assert not is_replaced("r2")
    with pytest.raises(AirflowSkipException, match="plan p2 of the run r2 replaces it"):
        act_on_answer(FORM, older, answer("Reject", None), now=NOW)
    with pytest.raises(ReplacedError, match="nothing was done"):
        act_on_answer(FORM, older, answer("Approve"), now=NOW)
    assert act_on_answer(FORM, newer, answer("Approve"), now=NOW)["stream"] == "events"


def test_what_was_answered_is_not_replaced_nor_is_another_repairs_question(config: Path) -> None:
    first = asked(config, "p1", "r1")
    act_on_answer(FORM, first, answer("Approve"), now=NOW)
    request(config, "d", plan_id="d1", what=Repair.DUPLICATES)
    assert "replaces" not in asked(config, "p2", "r2")["markdown"]
    assert not is_replaced("d")


def test_a_plan_of_another_part_of_the_stream_replaces_no_question(config: Path) -> None:
    asked(config, "p1", "r1", scope="--shard=s1")
    other = asked(config, "p2", "r2", scope="--shard=s2")
    alarm = asked(config, "p3", "r3")
    assert "replaces" not in other["markdown"] + alarm["markdown"]
    configure(config, 'approve = "auto"', 'auto_max_bytes = "1GiB"')
    small = asked(config, "p4", "r4", scope="--shard=s3")  # the policy lets it
    assert not small["needs_person"]
    assert not any(is_replaced(one) for one in ("r1", "r2", "r3"))
    asked(config, "p5", "r5", scope="--shard=s2")
    assert [is_replaced(one) for one in ("r1", "r2", "r3")] == [False, True, False]


def test_a_question_for_the_same_plan_is_one_whatever_was_chosen(config: Path) -> None:
    asked(config, "p1", "r1")
    request(config, "r2", plan_id="p1", scope="--shard=s1")  # the others miss nothing
    propose(FORM, request_id="r2", asker=None, now=NOW)
    assert is_replaced("r1")


def test_a_question_of_an_earlier_version_is_for_all_open_findings(config: Path) -> None:
    asked(config, "p1", "r1")
    place = config.with_name("warehouse") / "plan_requests"
    rows = DeltaTable(str(place)).to_pyarrow_table().drop_columns(["scope"])
    write_deltalake(str(place), rows, mode="overwrite", schema_mode="overwrite")
    asked(config, "p2", "r2", scope="--include-stuck")
    assert not is_replaced("r1")
    asked(config, "p3", "r3")
    assert is_replaced("r1")


def test_a_run_that_comes_late_does_not_ask_for_an_older_plan(config: Path) -> None:
    store(config, "p1")
    request(config, "r1", plan_id="p1")
    asked(config, "p2", "r2")
    with pytest.raises(AirflowSkipException, match="plan p1 is not asked for: plan p2"):
        propose(FORM, request_id="r1", asker=None, now=NOW)
    assert not is_replaced("r2")


def test_a_dry_run_replaces_no_question(config: Path) -> None:
    asked(config, "p1", "r1")
    store(config, "p2")
    request(config, "r2", plan_id="p2")
    with pytest.raises(AirflowSkipException, match="dry run"):
        propose(FORM | {"dry_run": True}, request_id="r2", asker=None, now=NOW)
    assert not is_replaced("r1")


@pytest.mark.parametrize("state", ["running", "verified"])
def test_a_rejection_that_cancels_nothing_says_so(config: Path, state: str) -> None:
    store(config, "p", state=state)
    request(config)
    plan: Proposed = {
        "plan_id": "p",
        "markdown": "",
        "needs_person": True,
        "request_id": "r",
        "approvers": [],
        "not_by": None,
    }
    with pytest.raises(RejectedError, match=f"cancels nothing: .*{state}"):
        act_on_answer(FORM, plan, answer("Reject"), now=NOW)


def test_only_who_is_named_is_asked_and_not_who_asked(config: Path) -> None:
    configure(config, 'approvers = ["ann", "bob"]', "four_eyes = true")
    plan = asked(config, "p", "r", asker="bob")
    assert (plan["approvers"], plan["not_by"]) == (["ann"], "bob")
    assert "approved by ann." in plan["markdown"]
    alarm = asked(config, "p2", "r2")
    assert (alarm["approvers"], alarm["not_by"]) == (["ann", "bob"], None)


def test_a_plan_that_nobody_may_approve_is_refused(config: Path) -> None:
    configure(config, 'approvers = ["bob"]', "four_eyes = true")
    with pytest.raises(PlanRefusedError, match="bob alone"):
        asked(config, "p", "r", asker="bob")


class _Pulls:
    """What a task instance gives of other tasks."""

    id = "a task"

    def __init__(self, plan: Proposed) -> None:
        self.plan = plan

    def xcom_pull(self, task_ids: str) -> Proposed:
        assert task_ids == "propose"
        return self.plan


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The questions that Airflow was given."""
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail",
        lambda **detail: given.append(detail),
    )
    return given


@contextmanager
def waits() -> Iterator[list[TaskAwaitingInput]]:
    """That the block parks the task until it is called again."""
    found: list[TaskAwaitingInput] = []
    with pytest.raises(TaskAwaitingInput) as raised:
        yield found
    found.append(raised.value)


def question(plan: Proposed) -> tuple[PlanQuestion, Any]:
    task = PlanQuestion(task_id="approve", subject="?", answer_within=DAY)
    pulls = _Pulls(plan)
    return task, {"ti": pulls, "task_instance": pulls}


TIMEOUT = {"error": "", "error_type": "timeout"}


def test_question_stands_until_it_is_replaced(config: Path, put: list[dict[str, Any]]) -> None:
    task, context = question(asked(config, "p1", "r1"))
    with waits() as parked:
        task.execute(context)
    assert parked[0].timeout == LOOK
    with waits() as again:
        task.execute_complete(context, TIMEOUT, **(parked[0].kwargs or {}))
    assert again[0].kwargs == parked[0].kwargs
    asked(config, "p2", "r2")
    ended = task.execute_complete(context, TIMEOUT, **(again[0].kwargs or {}))
    assert (ended["chosen_options"], ended["responded_by_user"]) == (["Reject"], None)
    assert len(put) == 1


def test_nobody_in_time_is_a_rejection(config: Path, put: list[dict[str, Any]]) -> None:
    task, context = question(asked(config, "p1", "r1"))
    over = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    ended = task.execute_complete(context, TIMEOUT, until=over)
    assert ended["chosen_options"] == ["Reject"]
    assert put == []


def test_a_warehouse_that_does_not_answer_ends_no_question(
    config: Path, put: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, context = question(asked(config, "p1", "r1"))
    monkeypatch.setenv("SHARDAUDIT_CONFIG", str(config.with_name("none.toml")))
    until = (datetime.now(UTC) + DAY).isoformat()
    with waits():
        task.execute_complete(context, TIMEOUT, until=until)
    assert put == []


def test_who_asked_is_asked_in_vain_where_four_eyes_must_see_it(
    config: Path, put: list[dict[str, Any]]
) -> None:
    configure(config, 'approvers = ["ann", "cleo"]', "four_eyes = true")
    task, context = question(asked(config, "p1", "r1", asker="bob"))
    until = (datetime.now(UTC) + DAY).isoformat()
    with waits():
        task.execute_complete(context, answer("Approve", "bob"), until=until)
    assert put[0]["assigned_users"] == [{"id": n, "name": n} for n in ("ann", "cleo")]
    own_no = task.execute_complete(context, answer("Reject", "bob"), until=until)
    assert own_no["chosen_options"] == ["Reject"]
    got = task.execute_complete(context, answer("Approve", "ann"), until=until)
    assert got["responded_by_user"]["name"] == "ann"
