"""A real scheduler, its runs and how to wait for them."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.airflow_processes import LocalAirflow

DAG = "retention_watch"


@contextmanager
def scheduled(config: Path, pager: str, env: Mapping[str, str]) -> Iterator[LocalAirflow]:
    """An Airflow that has the receiver among its own connections, with the DAG switched on."""
    config.write_text(f'{config.read_text()}\n[notify]\nhttp = "pager"\n')
    with LocalAirflow(config.with_name("airflow"), config, env) as airflow:
        call(airflow, "connections", connection_id="pager", conn_type="http", host=pager)
        until(lambda: airflow.api().knows(DAG))
        airflow.api().switch(DAG, on=True)
        yield airflow


def call(airflow: LocalAirflow, path: str, **body: object) -> Any:  # Any: Airflow's answers
    """A call of the REST interface: a POST when there is something to say."""
    request = urllib.request.Request(  # noqa: S310 - our own Airflow
        f"{airflow.url}/api/v2/{path}",
        data=json.dumps(body).encode() if body else None,
        headers={
            "Authorization": f"Bearer {airflow.api().token}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def until(holds: Callable[[], bool], *, seconds: int = 120) -> None:
    """Waits until it holds."""
    for _ in range(seconds * 5):
        if holds():
            return
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s")


def ended(airflow: LocalAirflow, run_id: str) -> str:
    """The state in which the run ends."""
    until(lambda: airflow.api().run_state(DAG, run_id) in {"success", "failed"}, seconds=300)
    return airflow.api().run_state(DAG, run_id)
