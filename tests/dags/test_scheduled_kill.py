"""A task of the embedded engine under a real scheduler: who fails it in the UI ends its command."""

import os
from pathlib import Path

from shardaudit.store.lock import process_start
from tests.dags.scheduling import until
from tools.airflow_processes import LocalAirflow

DAG = "maintenance"
# Keeps our command, as soon as its Python starts, and a child of it that hears no interrupt.
SITE = """
import os, pathlib, subprocess, sys, time
if "shardaudit.cli.main" in sys.orig_argv:
    other = subprocess.Popen(["sh", "-c", "trap '' INT; sleep 600; :"])
    pathlib.Path(os.environ["PIDS"]).write_text(f"{os.getpid()} {other.pid}")
    time.sleep(600)
"""


def test_command_and_its_children_end_when_the_task_is_failed_by_hand(
    embedded: Path, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    pids = tmp_path / "pids"
    own = {"PYTHONPATH": str(tmp_path / "site"), "PIDS": str(pids)}
    env = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_CONN_")} | own
    with LocalAirflow(tmp_path / "airflow", embedded, env) as airflow:
        api = airflow.api()
        until(lambda: api.knows(DAG))
        api.switch(DAG, on=True)
        run_id = api.trigger(DAG, {})
        until(lambda: pids.exists() and len(pids.read_text().split()) > 1)
        ours = [int(pid) for pid in pids.read_text().split()]
        assert all(process_start(pid) for pid in ours)
        api.end_runs(DAG)
        until(lambda: not any(process_start(pid) for pid in ours), seconds=30)
        assert api.run_state(DAG, run_id) == "failed"
