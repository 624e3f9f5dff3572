from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Param, RetryAction
from airflow.sdk.exceptions import ParamValidationError

from shardaudit.airflow.audit_verdict import BadVerdictError
from shardaudit.airflow.launch import JobBusyError, JobFailedError
from shardaudit.report.next_steps import AUDIT_EVERY

DAGS = Path(__file__).parents[2] / "dags"
TASKS = ["plan", "audit", "gates", "publish", "tell", "verdict", "all_told"]


@pytest.fixture(scope="module")
def dag(dags: dict[str, DAG]) -> DAG:
    """The DAG as Airflow finds it."""
    assert sorted(dags) == [
        "backfill",
        "backfill_on_alarm",
        "maintenance",
        "nightly_audit",
        "retention_watch",
    ]
    return dags["nightly_audit"]


def test_tasks_follow_one_another(dag: DAG) -> None:
    assert sorted(dag.task_ids) == sorted(TASKS)
    for task_id in ("gates", "publish", "tell"):
        assert "audit" in dag.get_task(task_id).upstream_task_ids
        assert task_id in dag.get_task("verdict").upstream_task_ids


def test_it_runs_at_two_and_not_before_the_next_night(dag: DAG) -> None:
    timetable: Any = dag.timetable  # Any: the base class has no cron
    assert (timetable.expression, str(timetable.timezone)) == ("0 2 * * *", "UTC")
    assert timetable.run_immediately == timedelta(0)
    assert timedelta(days=1) == AUDIT_EVERY  # what `doctor` and the page count with
    assert dag.start_date is None
    assert dag.catchup is False


def test_one_spark_driver_runs_at_a_time(dag: DAG) -> None:
    assert (dag.max_active_runs, dag.max_active_tasks) == (1, 1)
    audit: Any = dag.get_task("audit")
    assert audit.max_active_tis_per_dag == 1


@pytest.mark.parametrize("task_id", TASKS)
def test_only_what_may_work_later_is_tried_again(dag: DAG, task_id: str) -> None:
    task: Any = dag.get_task(task_id)  # Any: a mapped one has its own class
    assert task.retries == 3
    policy = task.partial_kwargs["retry_policy"] if task.is_mapped else task.retry_policy

    def action(error: Exception) -> RetryAction:
        decision: RetryAction = policy.evaluate(error, 1, 3).action
        return decision

    assert action(JobBusyError("75")) is RetryAction.RETRY
    for final in (JobFailedError("1"), BadVerdictError("loss"), ValueError("a bug")):
        assert action(final) is RetryAction.FAIL


def field_of(dag: DAG, name: str) -> Param:
    """A copy: resolving a value puts it into the field."""
    return deepcopy(dag.params.get_param(name))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("stream", "", "does not match"),
        ("stream", "a b", "does not match"),
        ("stream", "../x", "does not match"),
        ("stream", 5, "is not of type 'null', 'string'"),
        ("from", "yesterday", "is not a 'date-time'"),
        ("from", "2026-11-01", "is not a 'date-time'"),
        ("to", "2026-11-01T00:00:00", "is not a 'date-time'"),
        ("to", "2026-13-01T00:00:00Z", "is not a 'date-time'"),
        ("as_of", 1763000000, "is not of type 'null', 'string'"),
    ],
)
def test_the_form_refuses_a_wrong_value_with_a_reason(
    dag: DAG, field: str, value: object, reason: str
) -> None:
    with pytest.raises(ParamValidationError, match=reason):
        field_of(dag, field).resolve(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", None),
        ("stream", "events-v2.eu_1"),
        ("from", "2026-11-01T00:00:00.000Z"),
        ("to", "2026-11-01T02:00:00+02:00"),
        ("as_of", None),
    ],
)
def test_the_form_takes_a_right_value(dag: DAG, field: str, value: object) -> None:
    assert field_of(dag, field).resolve(value) == value


@pytest.mark.parametrize("field", ["stream", "from", "to", "as_of"])
def test_each_field_explains_itself(dag: DAG, field: str) -> None:
    schema = dag.params.get_param(field).schema
    assert schema["title"]
    assert dag.params.get_param(field).description
