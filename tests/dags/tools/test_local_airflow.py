"""The local Airflow's home and the client of its REST interface, without starting it."""

import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tools.airflow_api import AirflowApi, AirflowApiError, TaskState
from tools.airflow_home import (
    AirflowRunningError,
    environment,
    lock_home,
    password,
    password_file,
)

PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
HEALTH = {part: {"status": "healthy"} for part in PARTS}


class FakeAirflow(BaseHTTPRequestHandler):
    """Answers what a test put into `answers`; keeps what it was asked."""

    answers: ClassVar[dict[str, tuple[int, object]]] = {}
    asked: ClassVar[list[tuple[str, str | None, object]]] = []

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((f"{self.command} {self.path}", self.headers["Authorization"], body))
        status, said = self.answers[f"{self.command} {self.path}"]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def api() -> Iterator[AirflowApi]:
    FakeAirflow.answers.clear()
    FakeAirflow.asked.clear()
    with HTTPServer(("127.0.0.1", 0), FakeAirflow) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield AirflowApi("127.0.0.1", server.server_port, "token")
        server.shutdown()


def test_a_login_gives_the_token_of_later_calls(api: AirflowApi) -> None:
    FakeAirflow.answers["POST /auth/token"] = (201, {"access_token": "new"})
    assert api.login("admin", "word").token == "new"
    assert FakeAirflow.asked[0][2] == {"username": "admin", "password": "word"}


def test_the_reason_of_a_refused_form_is_told(api: AirflowApi) -> None:
    reason = "Invalid input for param from: 'yesterday' is not a 'date-time'"
    FakeAirflow.answers["POST /api/v2/dags/a/dagRuns"] = (400, {"detail": reason})
    with pytest.raises(AirflowApiError, match="'yesterday' is not a 'date-time'") as refused:
        api.trigger("a", {"from": "yesterday"})
    assert (refused.value.status, refused.value.detail) == (400, reason)


def test_a_run_is_triggered_with_the_form_s_values(api: AirflowApi) -> None:
    FakeAirflow.answers["POST /api/v2/dags/a/dagRuns"] = (200, {"dag_run_id": "manual__1"})
    assert api.trigger("a", {"stream": "events"}) == "manual__1"
    assert FakeAirflow.asked[0][1:] == (
        "Bearer token",
        {"logical_date": None, "conf": {"stream": "events"}},
    )


def test_a_question_is_answered_once_in_its_own_place(api: AirflowApi) -> None:
    path = "/api/v2/dags/a/dagRuns/manual__1/taskInstances/approve/-1/hitlDetails"
    FakeAirflow.answers[f"PATCH {path}"] = (200, {})
    api.answer("a", "manual__1", "approve", option="Approve")
    assert FakeAirflow.asked == [
        (f"PATCH {path}", "Bearer token", {"chosen_options": ["Approve"], "params_input": {}})
    ]


def test_runs_that_are_not_over_are_ended(api: AirflowApi) -> None:
    runs = "/api/v2/dags/a/dagRuns"
    left = (200, {"dag_runs": [{"dag_run_id": "manual__1"}]})
    FakeAirflow.answers[f"GET {runs}?state=queued&state=running"] = left
    FakeAirflow.answers[f"PATCH {runs}/manual__1"] = (200, {})
    api.end_runs("a")
    assert FakeAirflow.asked[-1][2] == {"state": "failed"}


def test_a_task_that_nobody_looked_at_is_waiting(api: AirflowApi) -> None:
    path = "GET /api/v2/dags/a/dagRuns/manual__1/taskInstances?limit=100"
    mapped = {"task_id": "stream.audit", "map_index": 0, "rendered_map_index": "events"}
    plain = {"task_id": "publish", "map_index": -1, "rendered_map_index": None, "state": None}
    FakeAirflow.answers[path] = (200, {"task_instances": [mapped | {"state": "running"}, plain]})
    assert api.task_states("a", "manual__1") == [
        TaskState("stream.audit", 0, "events", "running"),
        TaskState("publish", -1, None, "waiting"),
    ]


def test_it_is_healthy_only_when_every_part_is(api: AirflowApi) -> None:
    FakeAirflow.answers["GET /api/v2/monitor/health"] = (200, HEALTH)
    assert api.is_healthy()
    unhealthy = HEALTH | {"scheduler": {"status": "unhealthy"}}
    FakeAirflow.answers["GET /api/v2/monitor/health"] = (200, unhealthy)
    assert not api.is_healthy()


def test_it_is_not_healthy_when_nobody_answers() -> None:
    assert not AirflowApi("127.0.0.1", 1).is_healthy()


def test_an_unknown_dag_is_not_known(api: AirflowApi) -> None:
    FakeAirflow.answers["GET /api/v2/dags/a"] = (404, {"detail": "not found"})
    assert not api.knows("a")


def test_the_password_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    made = password(tmp_path)
    assert len(made) >= 12
    assert password(tmp_path) == made
    assert stat.S_IMODE(password_file(tmp_path).stat().st_mode) == 0o600


def test_everything_listens_on_this_machine_alone(tmp_path: Path) -> None:
    env = environment(tmp_path, 1234, config=Path("shardaudit.toml"), given={})
    assert env["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:1234/execution/"
    assert env["SHARDAUDIT_CONFIG"] == str(Path.cwd() / "shardaudit.toml")
    assert env["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_where_spark_runs_is_the_user_s_to_say(tmp_path: Path) -> None:
    given = {"AIRFLOW_CONN_SPARK_DEFAULT": "spark://cluster:7077", "SHARDAUDIT_JARS": "/opt/jars"}
    env = environment(tmp_path, 1, config=Path("c"), given=given)
    assert {key: env[key] for key in given} == given
    assert "SPARK_LOCAL_IP" not in env
    default = environment(tmp_path, 1, config=Path("c"), given={})
    assert json.loads(default["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[*]"


def test_the_database_is_the_home_s_own_whatever_the_user_s_airflow_is(tmp_path: Path) -> None:
    given = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://prod", "AIRFLOW_HOME": "/prod"}
    env = environment(tmp_path, 1, config=Path("c"), given=given)
    assert env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == f"sqlite:///{tmp_path}/airflow.db"
    assert env["AIRFLOW_HOME"] == str(tmp_path)


def test_a_home_in_use_is_refused_until_it_is_free(tmp_path: Path) -> None:
    lock = lock_home(tmp_path)
    os.write(lock, b"12 34")
    with pytest.raises(AirflowRunningError, match="processes 12 34"):
        lock_home(tmp_path)
    os.close(lock)
    os.close(lock_home(tmp_path))
