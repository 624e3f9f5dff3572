"""The few calls of Airflow's REST interface that a run needs: trigger, answer, follow."""

import json
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from typing import Any, Self

from shardaudit.model.errors import FinalError

_TIMEOUT_SECONDS = 120  # of a server that starts beside others on a slow machine
_NEEDED = ("metadatabase", "scheduler", "dag_processor", "triggerer")


class AirflowApiError(FinalError, RuntimeError):
    """Airflow refused a call: which, and why."""

    def __init__(self, call: str, status: int, detail: object) -> None:
        super().__init__(f"Airflow answered {status} to {call}: {detail}")
        self.status, self.detail = status, detail


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task of a run; `stream` is the name of its map index, where it has one."""

    task_id: str
    map_index: int
    stream: str | None
    state: str


@dataclass(frozen=True, slots=True)
class AirflowApi:
    """A client of one Airflow; without a token it may only ask for its health."""

    host: str
    port: int
    token: str = ""

    def login(self, user: str, password: str) -> Self:
        """The client that may do what the user may."""
        answer = self._call("POST", "/auth/token", {"username": user, "password": password})
        return replace(self, token=str(answer["access_token"]))

    def is_healthy(self) -> bool:
        """Whether the parts that run DAGs are up."""
        try:
            health = self._call("GET", "/api/v2/monitor/health")
        except (OSError, HTTPException, AirflowApiError):
            return False
        return all(health[part]["status"] == "healthy" for part in _NEEDED)

    def knows(self, dag_id: str) -> bool:
        """Whether the DAG's file was read without an error."""
        try:
            dag = self._call("GET", f"/api/v2/dags/{dag_id}")
        except AirflowApiError as error:
            if error.status == 404:  # noqa: PLR2004 - HTTP's own number
                return False
            raise
        return not dag["has_import_errors"]

    def import_errors(self) -> list[str]:
        """What went wrong where DAG files were read."""
        errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return [f"{error['filename']}: {error['stack_trace']}" for error in errors]

    def switch(self, dag_id: str, *, on: bool) -> None:
        """Lets the runs of the DAG start, or keeps them waiting."""
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": not on})

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> str:
        """The id of a new run with these values of the form.

        Raises:
            AirflowApiError: the form refuses a value; `detail` says which and why.
        """
        body = {"logical_date": None, "conf": conf}
        return str(self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def end_runs(self, dag_id: str) -> None:
        """Marks the runs that are not over as failed."""
        runs = f"/api/v2/dags/{dag_id}/dagRuns"
        for run in self._call("GET", f"{runs}?state=queued&state=running")["dag_runs"]:
            self._call("PATCH", f"{runs}/{run['dag_run_id']}", {"state": "failed"})

    def run_state(self, dag_id: str, run_id: str) -> str:
        """`queued`, `running`, `success` or `failed`."""
        return str(self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def task_states(self, dag_id: str, run_id: str) -> list[TaskState]:
        """The run's tasks as they are now."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=100"
        return [
            TaskState(
                task_id=task["task_id"],
                map_index=task["map_index"],
                stream=task["rendered_map_index"],
                state=task["state"] or "waiting",
            )
            for task in self._call("GET", path)["task_instances"]
        ]

    def answer(self, dag_id: str, run_id: str, task_id: str, *, option: str) -> None:
        """Answers what a task asks a person, as the user who is logged in."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        self._call("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def task_log(self, dag_id: str, run_id: str, task: TaskState) -> list[str]:
        """What the task said in its first try, in lines."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task.task_id}/logs/1"
        query = f"?map_index={task.map_index}&full_content=true"
        return [entry["event"] for entry in self._call("GET", path + query)["content"]]

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        connection = HTTPConnection(self.host, self.port, timeout=_TIMEOUT_SECONDS)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, body=text, headers=headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        if response.status >= 400:  # noqa: PLR2004 - HTTP's own number
            raise AirflowApiError(f"{method} {path}", response.status, _detail(raw))
        answer: dict[str, Any] = json.loads(raw)  # Any: the answers are Airflow's, not ours
        return answer


def _detail(raw: bytes) -> object:
    try:
        return json.loads(raw)["detail"]
    except (ValueError, KeyError, TypeError):
        return raw.decode(errors="replace")[:500]
