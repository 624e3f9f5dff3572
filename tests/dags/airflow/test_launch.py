import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from shardaudit.airflow.launch import JobBusyError, JobFailedError, JobKilledError, ShardauditJob
from shardaudit.airflow.planned_jobs import PlannedAudit, plan_audits
from tests.dags.fake_spark import read_calls


@pytest.fixture
def planned(config: Path) -> PlannedAudit:
    return plan_audits(config, {"stream": "events"}, run_after=datetime(2026, 11, 20, tzinfo=UTC))[
        0
    ]


class Notes(dict[str, bool]):
    """What Airflow keeps between the tries of a task."""

    def set(self, key: str, *, value: bool) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        del self[key]


def run(planned: PlannedAudit, command: str = "audit", *, notes: Notes | None = None) -> None:
    context: Any = {"task_state_store": notes}  # Any: a small part of Airflow's
    ShardauditJob(task_id=command, command=command, planned=planned).execute(context)


def test_the_command_is_submitted_as_planned_where_the_connection_says(
    planned: PlannedAudit, spark_calls: Path
) -> None:
    run(planned, "audit")
    (call,) = read_calls(spark_calls)
    assert call[:2] == ["--master", "local[2]"]
    application = next(i for i, word in enumerate(call) if word.endswith("shardaudit/cli/main.py"))
    assert call[application + 1 :] == planned["arguments"]["audit"]
    assert call[application - 2 : application] == ["--name", "shardaudit audit events"]


def test_the_configuration_overrides_the_driver_s_memory(
    planned: PlannedAudit, spark_calls: Path
) -> None:
    run(planned)
    (call,) = read_calls(spark_calls)
    memory = [word for word in call if word.startswith("spark.driver.memory=")]
    assert memory == ["spark.driver.memory=5g"]


def test_the_jars_of_the_folder_are_submitted(
    planned: PlannedAudit, spark_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.jar", "a.jar", "no.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("SHARDAUDIT_JARS", str(tmp_path))
    run(planned)
    (call,) = read_calls(spark_calls)
    assert call[call.index("--jars") + 1] == f"{tmp_path}/a.jar,{tmp_path}/b.jar"


def test_the_jars_of_the_configuration_are_submitted_beside_them(
    planned: PlannedAudit, spark_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned["driver"]["spark.jars"] = "/opt/c.jar"
    (tmp_path / "a.jar").touch()
    monkeypatch.setenv("SHARDAUDIT_JARS", str(tmp_path))
    run(planned)
    (call,) = read_calls(spark_calls)
    assert call[call.index("--jars") + 1] == f"{tmp_path}/a.jar,/opt/c.jar"
    assert not [word for word in call if word.startswith("spark.jars=")]


def test_no_jars_are_submitted_when_no_folder_is_named(
    planned: PlannedAudit, spark_calls: Path
) -> None:
    run(planned)
    assert "--jars" not in read_calls(spark_calls)[0]


def test_a_folder_without_jars_is_refused(
    planned: PlannedAudit, spark_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDAUDIT_JARS", str(tmp_path))
    with pytest.raises(JobFailedError, match="make setup"):
        run(planned)
    assert not spark_calls.exists()


def test_exit_code_75_may_be_tried_again(
    planned: PlannedAudit, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": 75}))
    with pytest.raises(JobBusyError) as busy:
        run(planned)
    assert not isinstance(busy.value, AirflowFailException)
    assert len(read_calls(spark_calls)) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "another try does not cure"),
        (2, "refused its arguments or its configuration"),
        (3, "the verdict is bad"),
        (255, "did not end by itself"),
    ],
)
def test_any_other_exit_code_is_not_tried_again(
    planned: PlannedAudit,
    spark_calls: Path,
    code: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": code}))
    with pytest.raises(AirflowFailException) as failed:
        run(planned)
    assert reason in str(failed.value)
    assert f"shardaudit audit events ended with {code}:" in str(failed.value)
    assert len(read_calls(spark_calls)) == 1


@pytest.mark.parametrize("code", [137, 143, 129])
def test_a_job_that_was_ended_from_outside_is_tried_again(
    planned: PlannedAudit, spark_calls: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": code}))
    with pytest.raises(JobKilledError, match=r"was ended by SIG.*more memory"):
        run(planned)
    assert len(read_calls(spark_calls)) == 1


def test_a_job_whose_engine_breaks_is_tried_once_more_whatever_other_tries_ended_with(
    planned: PlannedAudit, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes()
    once_more = (JobKilledError, r"broke \(SIGABRT\): it is tried once more")
    for code, kind, said in (
        (75, JobBusyError, "a later try"),
        (134, *once_more),
        (137, JobKilledError, "was ended by SIGKILL"),
        (134, JobFailedError, r'broke \(SIGABRT\) again.*engine = "spark"'),
        (134, *once_more),  # somebody cleared it
    ):
        monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": code}))
        with pytest.raises(kind, match=said):
            run(planned, notes=notes)
    assert len(read_calls(spark_calls)) == 5


def test_a_machine_without_spark_submit_is_told_so(
    planned: PlannedAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(JobFailedError, match="no spark-submit on Airflow's PATH"):
        run(planned)


def test_credentials_are_neither_in_the_command_line_nor_in_the_log(
    planned: PlannedAudit,
    spark_calls: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    run(planned)
    logged = "".join(capfd.readouterr())
    assert "the words of audit events" in logged
    assert "very-secret" not in logged + spark_calls.read_text()
