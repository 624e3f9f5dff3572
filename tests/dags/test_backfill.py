import argparse
import json
from copy import deepcopy
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException, ParamValidationError
from deltalake import DeltaTable, write_deltalake

from shardaudit.airflow.backfill_steps import (
    PLAN,
    PROVE,
    REPAIR,
    NotPlannedError,
    Proposed,
    RejectedError,
    act_on_answer,
    planning_job,
    propose,
)
from shardaudit.airflow.planned_jobs import PlanRefusedError
from shardaudit.backfill.rules.planned import Repair
from shardaudit.cli.backfill_command import add_arguments
from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.backfill_tables import DEDUPES
from shardaudit.model.tables.watch_tables import SHARDS
from tests.dags.fake_spark import read_calls
from tests.dags.news import news
from tests.dags.stored_plans import NOW, request, store
from tests.dags.warehouses import arrow

DAGS = Path(__file__).parents[2] / "dags"
HOUR = timedelta(hours=1)
USER = {"id": "7", "name": "ann"}


@pytest.fixture(scope="module")
def dag(dags: dict[str, DAG]) -> DAG:
    """The DAG as Airflow finds it."""
    return dags["backfill"]


def form(**fields: object) -> dict[str, object]:
    return {"stream": "events", **fields}


def asked(config: Path, form_: dict[str, object], plan_id: str = "p") -> Proposed:
    """What is asked of a run whose command has noted the plan."""
    request(config, plan_id=plan_id, what=Repair(str(form_.get("what", "missing"))))
    return propose(form_, request_id="r", asker="bob", now=NOW)


def answer(option: str, user: dict[str, str] | None = USER) -> dict[str, Any]:
    return {"chosen_options": [option], "params_input": {}, "responded_by_user": user}


def approve_by_policy(config: Path, up_to: str) -> None:
    lines = f'[streams.events.backfill]\napprove = "auto"\nauto_max_bytes = "{up_to}"\n'
    config.write_text(f"{config.read_text()}\n{lines}")


def run_where(
    dag: DAG, config: Path, monkeypatch: pytest.MonkeyPatch, *, failing: str
) -> tuple[str, dict[str, str]]:
    """The id of a run of which one command fails, and how its tasks and the run itself ended."""
    approve_by_policy(config, "1GiB")
    store(config)
    monkeypatch.setenv("FAKE_PLAN", "p")
    monkeypatch.setenv("FAKE_EXIT", json.dumps({failing: 1}))
    run = dag.test(run_conf={"stream": "events"})
    ended = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
    return run.run_id, ended | {"run": str(run.state)}


def store_dedupe(config: Path, plan_id: str = "d", **fields: object) -> None:
    """A stored plan of 5 messages in 12 rows."""
    row = {
        "plan_id": plan_id,
        "stream": "events",
        "ids": 5,
        "extra_rows": 7,
        "state": "planned",
        "updated_at": NOW,
        **fields,
    }
    place = load_settings(config).warehouse + "/dedupes"
    write_deltalake(place, arrow(DEDUPES, [row]), mode="append")


def states(config: Path, table: str = "backfills") -> set[tuple[str, str | None]]:
    place = f"{load_settings(config).warehouse}/{table}"
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    return {(row["state"], row["error"]) for row in rows}


def test_nothing_runs_before_somebody_answered(dag: DAG) -> None:
    after = {task: dag.get_task(task).upstream_task_ids for task in dag.task_ids}
    alone = {"propose": {"plan"}, "repair": {"decide"}, "all_done": {"repair", "verify", "gates"}}
    beside = {
        "approve": {"who_approves"},
        "decide": {"approve", "who_approves"},
        "verify": {"repair"},
        "gates": {"verify"},
    }
    assert dag.schedule is None
    assert {task: after[task] for task in alone} == alone
    assert {task: after[task] & tasks for task, tasks in beside.items()} == beside


def test_a_question_waits_a_day_and_holds_up_no_other_stream(dag: DAG) -> None:
    for name in ("plan", "repair", "verify"):
        assert dag.get_task(name).max_active_tis_per_dag == 1
    approve: Any = dag.get_task("approve")
    assert (approve.options, approve.defaults) == (["Approve", "Reject"], None)
    assert approve.answer_within == timedelta(hours=24)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", ""),
        ("from", "yesterday"),
        ("shards", "all"),
        ("shards", ["a b"]),
        ("shards", ["x", "--config"]),
        ("what", "everything"),
    ],
)
def test_form_refuses_a_wrong_value(dag: DAG, field: str, value: object) -> None:
    with pytest.raises(ParamValidationError):
        deepcopy(dag.params.get_param(field)).resolve(value)


@pytest.mark.usefixtures("config")
def test_form_becomes_a_command_line() -> None:
    wanted = form(
        **{"from": "2026-11-01T02:00:00+02:00", "to": "2026-11-01T01:00:00Z"},
        shards=["s-1", "s-2"],
        include_stuck=True,
        dry_run=False,
        as_of=None,
    )
    job = planning_job(wanted, request_id="r")
    assert job["arguments"][PLAN][2:] == [
        "backfill",
        "plan",
        "--stream=events",
        "--from=2026-11-01T00:00:00+00:00",
        "--to=2026-11-01T01:00:00+00:00",
        "--include-stuck",
        "--shard=s-1",
        "--shard=s-2",
        "--request=r",
    ]
    assert job["driver"] == {"spark.driver.memory": "5g"}


@pytest.mark.usefixtures("config")
def test_a_value_of_the_form_is_never_an_option() -> None:
    """What Airflow's API lets through: the pattern is the form's, the command line is ours."""
    job = planning_job(form(shards=["x", "--config", "--plan=p"]), request_id="r")
    words = job["arguments"][PLAN]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    asked = parser.parse_args(words[3:])
    assert asked.shard == ["x", "--config", "--plan=p"]


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": "other"},
        {"shard": "x"},
        {"from": "2026-11-01"},
        {"what": "duplicates", "include_stuck": True},
        {"what": "duplicates", "shards": ["s-1"]},
    ],
)
def test_what_cannot_be_planned_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanRefusedError):
        planning_job(form(**wrong), request_id="r")


def test_person_reads_what_must_be_set_before_it_can_run(config: Path) -> None:
    store(config)
    config.write_text(config.read_text().replace('path = "sink/events"', 'path = "s3a://lake/e"'))
    plan = asked(config, form())
    assert "**Before it can run:** streams.events.sink.exclusive" in plan["markdown"]


def test_person_reads_what_it_costs_and_until_when(config: Path) -> None:
    store(config)
    plan = asked(config, form())
    assert (plan["plan_id"], plan["needs_person"]) == ("p", True)
    for words in ("6 messages", "at most 20 MiB in 4 calls", "2026-11-01T23:58:00Z", "shard\\|1"):
        assert words in plan["markdown"]


@pytest.mark.parametrize(
    ("fields", "more", "said"),
    [({"state": "verified"}, {}, "plan p is over"), ({}, {"dry_run": True}, "a dry run: plan p")],
)
def test_run_stops_when_there_is_nothing_to_do(
    config: Path, fields: dict[str, object], more: dict[str, object], said: str
) -> None:
    store(config, "p", windows=2, **fields)
    with pytest.raises(AirflowSkipException, match=said):
        asked(config, form(**more))


def test_what_is_in_alarm_and_in_no_plan_is_told(config: Path) -> None:
    request(config, plan_id=None)
    with pytest.raises(AirflowSkipException, match="nothing of events"):
        propose(form(), request_id="r", asker=None, now=NOW)
    shards = [*(f"s{n}" for n in range(21)), "shard|1"]
    news(config.with_name("warehouse"), *shards, observed_at=NOW)
    with pytest.raises(NotPlannedError, match=r"0 windows: s0, s1, .* and 2 shards more"):
        propose(form(), request_id="r", asker=None, now=NOW)
    wanted = {"stream": "events", "shard_id": "s1", "observed_at": NOW, "state": "stalled"}
    wanted |= {"audit_level": "warn", "unnamed_since": NOW - HOUR, "unnamed_until": NOW}
    write_deltalake(str(config.with_name("warehouse") / "shards"), arrow(SHARDS, [wanted]))
    with pytest.raises(AirflowSkipException, match="an audit of events comes first"):
        propose(form(), request_id="r", asker=None, now=NOW)
    with pytest.raises(NotPlannedError):
        propose(form(), request_id="r", asker="ann", now=NOW)
    for part in (form(shards=["s1"]), form(what="duplicates")):
        with pytest.raises(AirflowSkipException, match="nothing of events"):
            propose(part, request_id="r", asker=None, now=NOW)
    store(config)
    said = asked(config, form())["markdown"]
    assert "**In alarm, and in none of its windows:** s0, " in said
    assert r"shard|1" not in said
    assert "In alarm" not in asked(config, form(shards=["shard|1"]))["markdown"]


def test_an_alarms_first_question_leaves_it_to_the_one_behind_the_audit(config: Path) -> None:
    request(config, plan_id=None)
    warehouse = config.with_name("warehouse")
    news(warehouse, "s1", observed_at=NOW)
    runs = {"audit_id": "a", "stream": "events", "status": "running", "as_of": NOW}
    runs |= {"started_at": NOW, "window_start": NOW - HOUR, "window_end": NOW}
    write_deltalake(str(warehouse / "audits"), arrow(AUDITS, [runs]))
    first = form(asked_again=True)
    assert planning_job(first, request_id="r") == planning_job(form(), request_id="r")
    with pytest.raises(AirflowSkipException, match="comes first, or runs now; it is asked again"):
        propose(first, request_id="r", asker=None, now=NOW)
    # Killed, it says that it runs for as long as nobody audits: nobody goes by what it says.
    for later, asker in ((form(), None), (first, "ann")):
        with pytest.raises(NotPlannedError):
            propose(later, request_id="r", asker=asker, now=NOW)


def test_policy_needs_no_person_up_to_its_size(config: Path) -> None:
    approve_by_policy(config, "20MiB")
    store(config)
    assert asked(config, form())["needs_person"] is False
    store(config, "larger", estimated_bytes=11 * 2**20)
    assert asked(config, form(), "larger")["needs_person"] is True


def test_plan_runs_in_the_name_of_who_approved_it(config: Path) -> None:
    store(config)
    plan = asked(config, form())
    job = act_on_answer(form(), plan, answer("Approve"), now=NOW)
    assert {action: words[2:] for action, words in job["arguments"].items()} == {
        REPAIR: ["backfill", "replay", "--plan=p", "--approve-as=ann"],
        PROVE: ["backfill", "verify", "--plan=p"],
    }
    by_policy = act_on_answer(form(), plan, None, now=NOW)
    assert by_policy["arguments"][REPAIR][2:] == ["backfill", "replay", "--plan=p"]
    assert states(config) == {("planned", None)}


def test_what_somebody_else_lands_goes_the_same_way(config: Path) -> None:
    backfill = '\n[streams.events.backfill]\nmode = "request"\nrequest_to = "asked"\n'
    config.write_text(config.read_text() + backfill)
    store(config)
    plan = asked(config, form())
    job = act_on_answer(form(), plan, answer("Approve"), now=NOW)
    assert job["arguments"][REPAIR][2:] == ["backfill", "replay", "--plan=p", "--approve-as=ann"]
    assert job["arguments"][PROVE][2:] == ["backfill", "verify", "--plan=p"]


@pytest.mark.parametrize(("user", "who"), [(USER, "ann"), (None, "nobody in time")])
def test_rejected_plan_is_cancelled_with_who_and_when(
    config: Path, user: dict[str, str] | None, who: str
) -> None:
    store(config)
    plan = asked(config, form())
    with pytest.raises(RejectedError, match=who):
        act_on_answer(form(), plan, answer("Reject", user), now=NOW)
    assert states(config) == {("cancelled", f"rejected by {who} at {NOW.isoformat()}")}
    assert NOW.tzinfo == UTC


def test_dedupe_is_planned_approved_and_run_as_a_backfill_is(config: Path) -> None:
    duplicates = form(what="duplicates", **{"from": None}, shards=[], as_of="2026-11-02T00:00:00Z")
    planned = planning_job(duplicates, request_id="r")["arguments"][PLAN][2:]
    assert planned == ["dedupe", "plan", "--stream=events", "--request=r"]
    store(config)
    with pytest.raises(AirflowSkipException):
        asked(config, duplicates, "d")
    store_dedupe(config)
    store_dedupe(config, "newer", updated_at=NOW + timedelta(minutes=1))
    plan = asked(config, duplicates, "d")
    assert plan["plan_id"] == "d"
    for words in ("5 messages", "7 rows", "removed_rows"):
        assert words in plan["markdown"]
    job = act_on_answer(duplicates, plan, answer("Approve"), now=NOW)
    of_plan = ["--plan=d", "--as-of=2026-11-02T00:00:00+00:00"]
    assert job["arguments"][REPAIR][2:] == ["dedupe", "remove", *of_plan, "--approve-as=ann"]
    assert job["arguments"][PROVE][2:] == ["dedupe", "verify", *of_plan]


def test_no_policy_lets_rows_be_removed(config: Path) -> None:
    approve_by_policy(config, "1GiB")
    store_dedupe(config)
    assert asked(config, form(what="duplicates"), "d")["needs_person"] is True


def test_rejected_dedupe_is_cancelled_and_no_backfill_with_it(config: Path) -> None:
    store(config, "d")  # of the same name
    store_dedupe(config)
    plan = asked(config, form(what="duplicates"), "d")
    with pytest.raises(RejectedError, match="nothing was done"):
        act_on_answer(form(what="duplicates"), plan, answer("Reject"), now=NOW)
    assert states(config) == {("planned", None)}
    assert {state for state, _ in states(config, "dedupes")} == {"cancelled"}


@pytest.mark.usefixtures("_airflow_warns", "_database")
def test_a_replay_that_fails_is_proven_all_the_same(
    dag: DAG, config: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, ended = run_where(dag, config, monkeypatch, failing="replay --plan=p")
    assert ended["approve"] == "skipped"
    assert (ended["repair"], ended["verify"], ended["run"]) == ("failed", "success", "failed")
    calls = [call[call.index("backfill") + 1 :] for call in read_calls(spark_calls)]
    planned = ["plan", "--stream=events", f"--request={run_id}"]
    assert calls == [planned, ["replay", "--plan=p"], ["verify", "--plan=p"]]


@pytest.mark.usefixtures("_airflow_warns", "_database")
def test_run_is_red_when_the_proof_is(
    dag: DAG, config: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ended = run_where(dag, config, monkeypatch, failing="verify --plan=p")
    assert (ended["repair"], ended["verify"], ended["run"]) == ("success", "failed", "failed")
    assert len(read_calls(spark_calls)) == 3
