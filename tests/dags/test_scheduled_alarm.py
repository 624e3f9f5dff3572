"""`backfill_on_alarm` under a real scheduler: what the watch publishes becomes a question."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.dags.fake_spark import install_fake_spark, read_calls
from tests.dags.news import news
from tests.dags.receivers import Web, running
from tests.dags.scheduling import call, ended, scheduled, until
from tests.dags.stored_plans import store
from tools.airflow_processes import LocalAirflow

SUBMIT = "spark3-submit"  # PATH begins with the real spark-submit


@contextmanager
def listening(config: Path, programs: Path) -> Iterator[LocalAirflow]:
    """An Airflow with the watch and its listeners switched on, a receiver, and a fake Spark."""
    spark = {"conn_type": "spark", "host": "local", "extra": {"spark-binary": SUBMIT}}
    env = {
        "PATH": os.pathsep.join((str(programs), os.environ["PATH"])),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }
    with (
        running(HTTPServer(("127.0.0.1", 0), Web)) as port,
        scheduled(config, f"http://127.0.0.1:{port}", os.environ | env) as airflow,
    ):
        for dag_id in ("backfill_on_alarm", "backfill"):
            until(partial(airflow.api().knows, dag_id))
            airflow.api().switch(dag_id, on=True)
        yield airflow


def watched(airflow: LocalAirflow) -> int:
    """Runs the watch; how many events it and those before it have published."""
    assert ended(airflow, airflow.api().trigger("retention_watch", {})) == "success"
    found: list[Any] = []

    def is_answered() -> bool:
        """Airflow 3.3.2 answers with a 500 while a run that an event starts is queued."""
        with suppress(HTTPError):
            found.append(call(airflow, "assets/events")["asset_events"])
        return bool(found)

    until(is_answered)
    return len(found[0])


def runs(airflow: LocalAirflow, dag_id: str = "backfill") -> list[dict[str, Any]]:
    """The runs of a DAG, the oldest first."""
    return list(call(airflow, f"dags/{dag_id}/dagRuns?order_by=id")["dag_runs"])


def asks(airflow: LocalAirflow, number: int) -> bool:
    """Whether the question of that backfill is on somebody's screen."""
    found = runs(airflow)[number:]
    tasks = airflow.api().task_states("backfill", found[0]["dag_run_id"]) if found else []
    return any((task.task_id, task.state) == ("approve", "awaiting_input") for task in tasks)


def answer(airflow: LocalAirflow, number: int) -> None:
    """Approves the plan of that backfill."""
    run_id = runs(airflow)[number]["dag_run_id"]
    airflow.api().answer("backfill", run_id, "approve", option="Approve")


def planned(airflow: LocalAirflow, number: int) -> list[str]:
    """The command that plans for that backfill."""
    run_id = runs(airflow)[number]["dag_run_id"]
    return ["plan", "--stream=events", f"--request={run_id}"]


def backfills(calls: Path) -> list[list[str]]:
    """What was submitted of the command `backfill`, the first first."""
    submitted = [words for words in read_calls(calls) if "backfill" in words]
    return [words[words.index("backfill") + 1 :] for words in submitted]


@pytest.mark.drill
def test_an_alarm_becomes_a_question_and_the_next_alarms_question_replaces_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Web, "got", [])
    calls = install_fake_spark(tmp_path / "bin", python=sys.executable, name=SUBMIT)
    store(config)  # what the fake does not plan
    monkeypatch.setenv("FAKE_PLAN", "p")
    news(config.with_name("warehouse"), "s1")
    with listening(config, calls.parent) as airflow:
        assert watched(airflow) == 1
        until(lambda: asks(airflow, 0), seconds=240)
        assert [run["conf"] for run in runs(airflow)] == [{"stream": "events"}]
        assert backfills(calls) == [planned(airflow, 0)]

        assert watched(airflow) == 1  # the same alarm: nothing is published
        news(config.with_name("warehouse"), "s2")
        assert watched(airflow) == 2
        until(lambda: asks(airflow, 1), seconds=240)
        assert len(runs(airflow)) == len(runs(airflow, "backfill_on_alarm")) == 2

        answer(airflow, 0)  # before it looked whether it is still asked
        until(lambda: runs(airflow)[0]["state"] == "failed", seconds=240)
        assert asks(airflow, 1)
        assert backfills(calls) == [planned(airflow, 0), planned(airflow, 1)]
        answer(airflow, 1)
        until(lambda: runs(airflow)[1]["state"] == "success", seconds=240)
    _, _, (*replay, approval), verify = backfills(calls)
    assert replay == ["replay", "--plan=p"]
    assert approval.startswith("--approve-as=")
    assert verify == ["verify", "--plan=p"]
