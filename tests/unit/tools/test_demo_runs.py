"""The demo follows a run: a mapped task is over when all of it is."""

from dataclasses import replace
from typing import Any

import pytest

from shardaudit.report.progress import NO_PROGRESS
from tools.airflow_api import AirflowApi, TaskState
from tools.demo_runs import DemoFailedError, Run, followed

RUN = Run("backfill", {}, ("replay",))


class Scripted(AirflowApi):
    """An Airflow in which each look at a run shows the next states of its mapped task."""

    def __init__(self, *looks: tuple[str, ...]) -> None:
        super().__init__("127.0.0.1", 0)
        object.__setattr__(self, "looks", list(looks))  # the client is frozen

    def task_states(self, dag_id: str, run_id: str) -> list[TaskState]:
        del dag_id, run_id
        looks: Any = vars(self)["looks"]
        return [TaskState("replay", index, None, one) for index, one in enumerate(looks.pop(0))]

    def task_log(self, dag_id: str, run_id: str, task: TaskState) -> list[str]:
        return [f"error: of {task.map_index} in {dag_id} {run_id}"]

    def knows(self, dag_id: str) -> bool:
        return dag_id == RUN.dag_id

    def trigger(self, dag_id: str, conf: dict[str, object]) -> str:
        del dag_id, conf
        return "r"

    def run_state(self, dag_id: str, run_id: str) -> str:
        del dag_id, run_id
        return "success"

    def end_runs(self, dag_id: str) -> None:
        """There are none."""

    def switch(self, dag_id: str, *, on: bool) -> None:
        """It is on."""


def test_mapped_task_is_over_when_all_of_it_is() -> None:
    airflow = Scripted(("success", "running"), ("success", "success"))
    assert followed(airflow, RUN, approve="Approve", progress=NO_PROGRESS) == "r"
    assert vars(airflow)["looks"] == []


def test_mapped_task_that_failed_in_part_is_told_by_that_part() -> None:
    airflow = Scripted(("success", "failed", "waiting"), ("success", "failed", "success"))
    with pytest.raises(DemoFailedError, match=r"replay: failed: error: of 1 in backfill r"):
        followed(airflow, RUN, approve="Approve", progress=NO_PROGRESS)


def test_each_part_of_a_mapped_task_has_the_whole_time() -> None:
    run = replace(RUN, looks=2, look_s=0)
    first, second = ("running", "scheduled"), ("success", "running")
    airflow = Scripted(first, first, second, second, ("success", "success"))
    assert followed(airflow, run, approve="Approve", progress=NO_PROGRESS) == "r"
    with pytest.raises(DemoFailedError, match="still running after 600 s"):
        followed(Scripted(*[first] * 4), run, approve="Approve", progress=NO_PROGRESS)
