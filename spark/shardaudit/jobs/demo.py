"""`make demo`: a stream with planted faults, audited by the DAG `nightly_audit` in Airflow.

Says what was planted against what was found; leaves 1 when they differ.
"""

import os
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Group, RenderableType
from rich.text import Text

from shardaudit.adapters.airflow import LocalAirflow
from shardaudit.adapters.airflow_api import AirflowApi, TaskState
from shardaudit.adapters.airflow_home import ROOT
from shardaudit.adapters.published import read_rows
from shardaudit.adapters.stand_in import kinesis_stand_in
from shardaudit.jobs.command import Reply
from shardaudit.jobs.demo_result import Comparison, compared, comparison_view
from shardaudit.jobs.published import published_audit
from shardaudit.jobs.simulate import STREAM_STAGES, Endpoints, simulate_stream
from shardaudit.jobs.terminal import Terminal
from shardaudit.model.audit_id import audit_id
from shardaudit.model.config import load_settings
from shardaudit.model.errors import ExitCode, FinalError, ShardauditError
from shardaudit.model.tables import FINDINGS
from shardaudit.report.progress import Progress
from shardaudit.report.render import audit_view
from shardaudit.simulate.scenario import DEFAULT_MESSAGES, Scenario, default_faults

FOLDER = ROOT / ".demo"
HOME = ROOT / ".airflow"
DAG = "nightly_audit"
TASKS = ("plan", "stream.ingest", "stream.audit", "gates", "publish", "tell", "verdict")
STAGES = STREAM_STAGES + 1 + len(TASKS)
SCENARIO = Scenario(
    stream="events",
    seed=7,
    messages=DEFAULT_MESSAGES,
    shards=8,
    start=datetime.fromisoformat("2026-11-01T00:00:00+00:00"),
    hours=24,
    faults=default_faults(DEFAULT_MESSAGES),
)
_ENDED = {"success", "failed", "skipped", "upstream_failed", "up_for_retry"}
_TASK_SECONDS = 600
# The stand-in takes any; the user's own must not even be offered to it.
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo"}


class DemoFailedError(FinalError, RuntimeError):
    """A task of the run did not do its work."""

    def __init__(self, task_id: str, state: str, log: list[str]) -> None:
        # What a command says at its end, or else whatever was said last.
        said = [line for line in log if line.startswith("error: ")] or log[-5:]
        super().__init__(
            f"Airflow's task {task_id} is {state}: {' '.join(said)} (its log: `make airflow`)"
        )


def demo(scenario: Scenario, folder: Path, *, home: Path, progress: Progress) -> Reply:
    """Simulates, audits in Airflow, compares.

    Raises:
        AirflowRunningError: an Airflow already runs on `home`.
        DemoFailedError: a task before the verdict failed.
    """
    config = folder / "shardaudit.toml"
    own = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    airflow = LocalAirflow(home, config, own | _CREDENTIALS)
    airflow.require_free()
    shutil.rmtree(folder, ignore_errors=True)
    with kinesis_stand_in() as kinesis:  # the audit asks it for the shards
        simulate_stream(scenario, folder, endpoints=Endpoints(kinesis), progress=progress)
        with progress.stage("start Airflow"):
            airflow.start()
        try:
            run_id = _audited(airflow.api(), scenario, progress=progress)
        finally:
            airflow.stop()
    comparison = _comparison(scenario, folder)
    return Reply(
        document=comparison,
        view=Group(_report_view(scenario, config), comparison_view(comparison), _next(run_id)),
        exit_code=ExitCode.DONE if comparison.is_equal else ExitCode.FAILED,
    )


def _audited(api: AirflowApi, scenario: Scenario, *, progress: Progress) -> str:
    """The id of a run of the DAG, after its last task."""
    form = {
        "stream": scenario.stream,
        "from": scenario.window.start.isoformat(),
        "to": scenario.window.end.isoformat(),
        "as_of": scenario.as_of.isoformat(),
    }
    _wait_until_known(api)
    api.end_runs(DAG)  # what a demo left behind that was cut off: one run at a time goes
    api.switch(DAG, on=True)
    try:
        run_id = api.trigger(DAG, form)
        for task_id in TASKS:
            with progress.stage(f"Airflow runs {task_id}"):
                ended = _ended(api, run_id, task_id)
            if ended.state != "success" and task_id != "verdict":  # that one is red, as it should
                log = api.task_log(DAG, run_id, ended)
                raise DemoFailedError(task_id, ended.state, log)
        _wait_until_over(api, run_id)  # a run of a DAG that is switched off stays "running"
    finally:
        api.switch(DAG, on=False)  # or the next Airflow would audit the demo every night
    return run_id


def _ended(api: AirflowApi, run_id: str, task_id: str) -> TaskState:
    for _ in range(_TASK_SECONDS):
        (task,) = [t for t in api.task_states(DAG, run_id) if t.task_id == task_id]
        if task.state in _ENDED:
            return task
        time.sleep(1)
    raise DemoFailedError(task_id, f"still {task.state} after {_TASK_SECONDS} s", [])


def _wait_until_over(api: AirflowApi, run_id: str) -> None:
    for _ in range(_TASK_SECONDS):
        if api.run_state(DAG, run_id) in {"success", "failed"}:
            return
        time.sleep(1)


def _wait_until_known(api: AirflowApi) -> None:
    for _ in range(_TASK_SECONDS):
        if api.knows(DAG):
            return
        errors = api.import_errors()
        if errors:
            raise DemoFailedError("(none)", "not there", errors)
        time.sleep(1)


def _comparison(scenario: Scenario, folder: Path) -> Comparison:
    settings = load_settings(folder / "shardaudit.toml")
    planted: list[dict[str, Any]] = pq.read_table(folder / "planted.parquet").to_pylist()
    found = read_rows(settings, FINDINGS, where=pc.field("stream") == scenario.stream)
    return compared(planted, found)


def _report_view(scenario: Scenario, config: Path) -> RenderableType:
    settings = load_settings(config)
    stream = settings.stream(scenario.stream)
    window = scenario.window.aligned(stream.bucket)
    run = audit_id(scenario.stream, window, scenario.as_of, stream.digest())
    return audit_view(published_audit(settings, scenario.stream, run))


def _next(run_id: str) -> Text:
    command = f".venv/bin/shardaudit --config {FOLDER.name}/shardaudit.toml"
    listing = f"{command} findings list --stream {SCENARIO.stream}"
    return Text(
        "\nIn Airflow the task `verdict` of this run is red, as it should be: messages are missing."
        f"\n\n{listing} --limit 20\n    the findings, the nearest deadline first"
        f"\n{listing} --kind duplicated\n    those of one kind"
        "\nmake airflow\n    Airflow's address and login; there open"
        f" /dags/{DAG}/runs/{run_id}"
        "\n    and the log of its task verdict: shards, numbers, deadlines"
    )


def main() -> int:
    """Runs the demo at a terminal or in a pipe."""
    terminal = Terminal(as_json=False, debug=False)
    try:
        reply = demo(SCENARIO, FOLDER, home=HOME, progress=terminal.progress(STAGES))
        return terminal.tell(reply)
    except ShardauditError as error:
        return terminal.fail(error, error.exit_code)
    except KeyboardInterrupt as error:
        return terminal.fail(error, ExitCode.FAILED)


if __name__ == "__main__":
    sys.exit(main())
