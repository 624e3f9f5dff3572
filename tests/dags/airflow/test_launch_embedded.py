"""The embedded engine's tasks: the command in the task's own process tree, without a connection."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException

from shardaudit.airflow.backfill_steps import (
    PLAN,
    PROVE,
    REPAIR,
    Proposed,
    act_on_answer,
    planning_job,
)
from shardaudit.airflow.launch import JobBusyError, JobKilledError, ShardauditJob
from shardaudit.airflow.planned_jobs import (
    PlannedAudit,
    PlannedJob,
    PlanRefusedError,
    plan_audits,
    planned_run,
    planned_upkeep,
    planned_watches,
)
from shardaudit.store.lock import process_start
from tests.dags.fake_spark import read_calls
from tests.dags.runs import DAGS, FORM, run
from tests.dags.warehouses import audit, gate, write_result

NIGHT = datetime(2026, 11, 20, tzinfo=UTC)
EMBEDDED, SPARK = {"embedded"}, {"spark"}


@pytest.fixture
def planned(embedded: Path) -> PlannedAudit:
    return plan_audits(embedded, {"stream": "events"}, run_after=NIGHT)[0]


def execute(planned: PlannedAudit, command: str = "audit") -> None:
    ShardauditJob(task_id=command, command=command, planned=planned).execute({})


def engines(*jobs: PlannedJob) -> set[str]:
    return {engine for job in jobs for engine in job["engines"].values()}


def test_command_runs_as_planned_without_spark_submit_or_a_connection(
    planned: PlannedAudit, command_calls: Path
) -> None:
    execute(planned, "audit")
    [call] = read_calls(command_calls)
    assert call == ["--engine=embedded", *planned["arguments"]["audit"]]


def test_its_lines_are_in_the_task_s_log_and_no_credentials(
    planned: PlannedAudit,
    command_calls: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    execute(planned)
    logged = "".join(capfd.readouterr())
    assert "shardaudit audit events runs in this task, on the embedded engine" in logged
    assert "the words of audit events" in logged
    assert "very-secret" not in logged + command_calls.read_text()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "another try does not cure"),
        (2, "refused its arguments or its configuration"),
        (3, "the verdict is bad"),
        (255, "did not end by itself"),
    ],
)
def test_exit_code_is_final(
    planned: PlannedAudit,
    command_calls: Path,
    code: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": code}))
    with pytest.raises(AirflowFailException, match=rf"ended with {code}: .*{reason}"):
        execute(planned)
    assert len(read_calls(command_calls)) == 1


@pytest.mark.usefixtures("command_calls")
@pytest.mark.parametrize("code", [-9, -15])
def test_command_that_was_ended_from_outside_is_tried_again(
    planned: PlannedAudit, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": code}))
    with pytest.raises(JobKilledError, match="was ended by SIG"):
        execute(planned)


@pytest.mark.usefixtures("command_calls")
def test_exit_code_75_may_be_tried_again(
    planned: PlannedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": 75}))
    with pytest.raises(JobBusyError) as busy:
        execute(planned)
    assert not isinstance(busy.value, AirflowFailException)


def test_real_command_says_in_the_log_what_it_refuses(
    planned: PlannedAudit, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = Path(__file__).parents[3] / "spark"
    monkeypatch.setenv("PYTHONPATH", str(sources))
    config = Path(planned["arguments"]["audit"][1])
    config.write_text(config.read_text().replace("[streams.events]", "[streams.event]"))
    with pytest.raises(AirflowFailException, match="ended with 2"):
        execute(planned)
    assert "did you mean event?" in "".join(capfd.readouterr())


def test_nothing_is_ended_when_nothing_runs(planned: PlannedAudit) -> None:
    ShardauditJob(task_id="audit", command="audit", planned=planned).on_kill()


@pytest.mark.usefixtures("_airflow_warns", "_database", "embedded")
def test_command_is_ended_when_its_time_is_over(
    command_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SECONDS", "600")
    dag = DagBag(str(DAGS)).dags["maintenance"]
    task: Any = dag.get_task("maintain")
    task.execution_timeout = timedelta(seconds=2)
    states = {ti.task_id: str(ti.state) for ti in dag.test().get_task_instances()}
    assert states == {"plan": "success", "maintain": "failed"}
    assert process_start(int((command_calls.parent / "pid").read_text())) is None


@pytest.mark.usefixtures("_airflow_warns", "_database")
def test_whole_night_runs_without_spark(
    embedded: Path, command_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit orders": 1}))
    events, _ = plan_audits(embedded, FORM, run_after=NIGHT)
    write_result(
        embedded.with_name("warehouse"),
        audits=[audit(events["audit_id"])],
        gates=[gate(events["audit_id"])],
    )
    _, states = run(FORM)
    assert {name: state for name, state in states.items() if state != "success"} == {
        "audit orders": "failed",
        "gates orders": "skipped",
        "verdict orders": "failed",
        "all_told": "upstream_failed",
    }
    calls = read_calls(command_calls)
    assert sorted(call[3] for call in calls) == ["audit", "audit"]
    assert all(call[0] == "--engine=embedded" for call in calls)


@pytest.mark.usefixtures("embedded")
def test_jobs_are_planned_for_the_configured_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned_jobs() -> set[str]:
        return engines(*planned_run({}, run_after=NIGHT), *planned_watches(), planned_upkeep())

    assert planned_jobs() == EMBEDDED
    monkeypatch.setenv("SHARDAUDIT_ENGINE", "spark")
    assert planned_jobs() == SPARK


@pytest.mark.usefixtures("config")
def test_environment_comes_before_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines(planned_upkeep()) == SPARK
    monkeypatch.setenv("SHARDAUDIT_ENGINE", "embedded")
    assert engines(planned_upkeep()) == EMBEDDED
    monkeypatch.setenv("SHARDAUDIT_ENGINE", "embeded")
    for plan in (planned_upkeep, planned_watches, lambda: planned_run({}, run_after=NIGHT)):
        with pytest.raises(PlanRefusedError, match="SHARDAUDIT_ENGINE: found 'embeded'"):
            plan()


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("what", ["missing", "duplicates"])
def test_repair_is_planned_and_verified_on_the_engine_and_done_by_apache_spark(what: str) -> None:
    form: dict[str, object] = {"stream": "events", "what": what}
    assert planning_job(form, request_id="r")["engines"] == {PLAN: "embedded"}
    plan: Proposed = {
        "plan_id": "p",
        "markdown": "",
        "needs_person": False,
        "request_id": "r",
        "approvers": [],
        "not_by": None,
    }
    wanted = {REPAIR: "spark", PROVE: "embedded"}
    assert act_on_answer(form, plan, None, now=NIGHT)["engines"] == wanted
