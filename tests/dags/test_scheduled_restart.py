"""A backfill whose Airflow is restarted while it asks, and whose worker dies while it repairs."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.dags.fake_spark import install_fake_spark
from tests.dags.scheduled_backfills import SUBMIT, answer, asks, backfills, listening, runs
from tests.dags.scheduling import until
from tests.dags.stored_plans import store


def words(pid: int) -> str:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text()


def workers(pid: int) -> list[int]:
    """A command and its parents below the scheduler: all that runs its task."""
    found = [pid]
    while True:
        stat = Path(f"/proc/{found[-1]}/stat").read_text()
        parent = int(stat.rpartition(")")[2].split()[1])
        assert parent > 1
        if "scheduler" in words(parent):
            return found
        found.append(parent)


@pytest.mark.drill
def test_a_run_ends_right_over_a_restart_at_its_question_and_a_worker_killed_in_its_repair(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = install_fake_spark(tmp_path / "bin", python=sys.executable, name=SUBMIT)
    store(config)  # what the fake does not plan
    monkeypatch.setenv("FAKE_PLAN", "p")
    monkeypatch.setenv("FAKE_SECONDS", "15")
    monkeypatch.setenv("AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT", "30")
    with listening(config, calls.parent) as airflow:
        airflow.api().trigger("backfill", {"stream": "events"})
        until(lambda: asks(airflow, 0), seconds=240)
        airflow.stop()
        airflow.start()
        assert asks(airflow, 0)
        answer(airflow, 0)
        until(lambda: len(backfills(calls)) == 2, seconds=240)
        noted = calls.with_name("pid")  # written just after
        until(lambda: "replay" in words(int(noted.read_text())), seconds=10)
        for worker in workers(int(noted.read_text())):
            os.kill(worker, signal.SIGKILL)
        until(lambda: runs(airflow)[0]["state"] in {"success", "failed"}, seconds=900)
        assert runs(airflow)[0]["state"] == "success"
    _, first, again, verify = backfills(calls)
    assert first == again
    assert first[:2] == ["replay", "--plan=p"]
    assert verify == ["verify", "--plan=p"]
