"""Backfills under a real scheduler, with a Spark that is none."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import HTTPServer
from pathlib import Path
from typing import Any

from tests.dags.fake_spark import read_calls
from tests.dags.receivers import Web, running
from tests.dags.scheduling import call, scheduled, until
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
