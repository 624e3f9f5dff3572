"""`retention_watch` under a real scheduler: its deadline is what `dag.test()` leaves out."""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from datetime import timedelta
from http.server import HTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shardaudit.adapters.clock import now
from shardaudit.model.config.settings import Settings
from shardaudit.simulate.job import simulate_files
from shardaudit.simulate.scenario import Scenario
from tests.contenders import Contender
from tests.dags.news import news, states
from tests.dags.receivers import Web, running
from tests.dags.scheduling import DAG, call, ended, scheduled, until
from tools.airflow_processes import LocalAirflow

# Hangs while the file named in HANG is there.
FAKE = """#!{python}
import os, pathlib, time
while pathlib.Path(os.environ["HANG"]).exists():
    time.sleep(0.2)
"""


@pytest.fixture
def pager(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the web receiver listens."""
    monkeypatch.setattr(Web, "got", [])
    monkeypatch.setattr(Web, "status", 200)
    with running(HTTPServer(("127.0.0.1", 0), Web)) as port:
        yield f"http://127.0.0.1:{port}"


def pass_deadlines(airflow: LocalAirflow) -> None:
    """Moves every deadline that is kept into the past."""
    with sqlite3.connect(airflow.home / "airflow.db", timeout=30) as database:
        database.execute("UPDATE deadline SET deadline_time = '2026-01-01 00:00:00.000000'")
    database.close()


def titles() -> list[object]:
    return [document["title"] for _, _, document in Web.got]


def alarmed(airflow: LocalAirflow) -> list[str]:
    """The shards that the one asset event names."""
    (event,) = call(airflow, "assets/events")["asset_events"]
    assert event["name"] == "shardaudit_alarms"
    return [alarm["shard_id"] for alarm in event["extra"]["alarms"]]


def under_way(airflow: LocalAirflow) -> int:
    """How many runs are not over."""
    runs = call(airflow, f"dags/{DAG}/dagRuns?state=queued&state=running")
    return int(runs["total_entries"])


def test_a_run_tells_and_publishes_and_one_that_hangs_is_told_itself(
    config: Path, tmp_path: Path, pager: str
) -> None:
    warehouse, hang = config.with_name("warehouse"), tmp_path / "hang"
    program = tmp_path / "bin" / "spark3-submit"  # PATH begins with the real spark-submit
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    spark = {"conn_type": "spark", "host": "local", "extra": {"spark-binary": program.name}}
    env = {
        "PATH": os.pathsep.join((str(program.parent), os.environ["PATH"])),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
        "HANG": str(hang),
    }
    news(warehouse, "s1")
    with scheduled(config, pager, os.environ | env) as airflow:
        assert ended(airflow, airflow.api().trigger(DAG, {})) == "success"
        assert titles() == ["shardaudit: URGENT: events s1"]
        assert states(warehouse) == {"s1": "sent"}
        assert alarmed(airflow) == ["s1"]

        # The clock's own run, each quarter of an hour, would hang in its stead.
        until(lambda: 1 < now().minute % 15 < 12 and not under_way(airflow), seconds=360)
        hang.touch()
        late = airflow.api().trigger(DAG, {})
        until(lambda: airflow.api().run_state(DAG, late) == "running")
        pass_deadlines(airflow)
        until(lambda: len(Web.got) > 1)
        assert titles()[1:] == ["shardaudit: the retention watch is late"]
        assert late in str(Web.got[1][2]["text"])
        hang.unlink()
        assert ended(airflow, late) == "success"
        assert len(Web.got) == 2


@pytest.mark.drill
def test_a_shard_that_stopped_is_on_somebodys_screen(tmp_path: Path, pager: str) -> None:
    """With Spark, on what the simulator writes: a shard stopped within the last two hours."""
    folder = tmp_path / "simulated"
    start = now().replace(second=0, microsecond=0) - timedelta(hours=2)
    faults = {"stuck_shard": 1}
    scenario = Scenario("events", 7, 2000, 3, start, 2, faults)
    simulate_files(scenario, folder)
    stuck = pq.read_table(folder / "planted.parquet").column("shard_id").unique().to_pylist()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AIRFLOW_CONN_"))}
    with scheduled(folder / "shardaudit.toml", pager, env) as airflow:
        assert ended(airflow, airflow.api().trigger(DAG, {})) == "success"
        assert titles() == [f"shardaudit: WARN: stands still: events {shard}" for shard in stuck]
        assert alarmed(airflow) == stuck
        # An audit of an hour, say: the watch does not wait for it.
        with Contender(Settings(warehouse=str(folder / "warehouse"), streams={})) as audit:
            assert audit.take() == "held"
            assert ended(airflow, airflow.api().trigger(DAG, {})) == "success"
            audit.give()
        assert len(Web.got) == 1
