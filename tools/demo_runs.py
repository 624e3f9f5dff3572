"""A run of a DAG as the demo follows it: triggered, its questions answered, task by task."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardaudit.model.errors import FinalError
from shardaudit.report.progress import Progress
from tools.airflow_api import AirflowApi, TaskState

_ENDED = {"success", "failed", "skipped", "upstream_failed", "up_for_retry"}
_WAITS = "awaiting_input"
_TASK_SECONDS = 600  # without news: of a mapped task each one has as long
_LOOK_SECONDS = 0.5
_LOOKS = int(_TASK_SECONDS / _LOOK_SECONDS)
# No person answers sooner. Airflow 3.3.2 fails a task that is answered before its scheduler has
# heard that the process which asked has ended: up to MIN_HEARTBEAT_INTERVAL later.
_LOOKS_BEFORE_ANSWER = 8


class DemoFailedError(FinalError, RuntimeError):
    """A task of a run did not do its work, or the audit after it."""

    def __init__(self, task_id: str, state: str, log: list[str]) -> None:
        # What a command says at its end, or else whatever was said last.
        said = [line for line in log if line.startswith("error: ")] or log[-5:]
        super().__init__(
            f"the demo's {task_id}: {state}: {' '.join(said)} (logs of tasks: `make airflow`)"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """What is run of a DAG: its form, and those of its tasks that are waited for, in order.

    `may_fail` may be red at the end: the verdict on planted faults. `looks`: so many in a row may
    show nothing new, `look_s` apart.
    """

    dag_id: str
    form: dict[str, Any]
    tasks: Sequence[str]
    may_fail: str | None = None
    looks: int = _LOOKS
    look_s: float = _LOOK_SECONDS


def followed(api: AirflowApi, run: Run, *, approve: str, progress: Progress) -> str:
    """The id of a run of the DAG, after its last task; what it asks is answered with `approve`.

    Raises:
        DemoFailedError: a task failed that must not.
    """
    _wait_until_known(api, run.dag_id)
    api.end_runs(run.dag_id)  # what a demo left behind that was cut off: one run at a time goes
    api.switch(run.dag_id, on=True)
    try:
        run_id = api.trigger(run.dag_id, run.form)
        for task_id in run.tasks:
            with progress.stage(f"Airflow runs {run.dag_id}.{task_id}"):
                ended = _ended(api, run, run_id, task_id=task_id, approve=approve)
            if ended.state != "success" and task_id != run.may_fail:
                log = api.task_log(run.dag_id, run_id, ended)
                raise DemoFailedError(f"{run.dag_id}.{task_id}", ended.state, log)
        _wait_until_over(api, run, run_id)  # of a DAG that is off it stays "running"
    finally:
        api.switch(run.dag_id, on=False)  # or the next Airflow would audit the demo every night
    return run_id


def _ended(api: AirflowApi, run: Run, run_id: str, *, task_id: str, approve: str) -> TaskState:
    """The task, once it is over; of a mapped one the first that failed, or else any."""
    looks_waiting, looks_left = 0, run.looks
    before: list[str] = []
    while looks_left:
        tasks = [t for t in api.task_states(run.dag_id, run_id) if t.task_id == task_id]
        states = sorted(t.state for t in tasks)
        looks_left, before = (looks_left - 1 if states == before else run.looks), states
        task = next((t for t in tasks if t.state != "success"), tasks[0])
        if all(t.state in _ENDED for t in tasks):
            return task
        looks_waiting += task.state == _WAITS
        if looks_waiting == _LOOKS_BEFORE_ANSWER and task.state == _WAITS:
            api.answer(run.dag_id, run_id, task_id, option=approve)
        time.sleep(run.look_s)
    raise DemoFailedError(task_id, f"still {task.state} after {_TASK_SECONDS} s", [])


def _wait_until_over(api: AirflowApi, run: Run, run_id: str) -> None:
    for _ in range(run.looks):
        if api.run_state(run.dag_id, run_id) in {"success", "failed"}:
            return
        time.sleep(run.look_s)


def _wait_until_known(api: AirflowApi, dag_id: str) -> None:
    for _ in range(_TASK_SECONDS):
        if api.knows(dag_id):
            return
        errors = api.import_errors()
        if errors:
            raise DemoFailedError("(none)", "not there", errors)
        time.sleep(1)
