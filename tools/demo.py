"""`make demo`: a stream with planted faults, audited and repaired by our DAGs in Airflow.

Says what was planted against what was found, and against what the repair left of it, on which hop a
stream by way of a router lost its messages, and whether both engines find the same of the repaired
day; leaves 1 when anything differs.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Group
from rich.text import Text

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import has_values
from shardaudit.cli.command import Reply, Terminal
from shardaudit.model.audit_id import audit_id
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, EVIDENCE, FINDINGS
from shardaudit.report.progress import Progress
from shardaudit.report.render import audit_view
from shardaudit.simulate.job import STREAM_STAGES, Endpoints, simulate_stream
from shardaudit.simulate.scenario import DEFAULT_MESSAGES, Scenario, default_faults
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from shardaudit.store.audits import read_rows
from shardaudit.store.published import published_audit
from tools.airflow_api import AirflowApi
from tools.airflow_home import ROOT
from tools.airflow_processes import LocalAirflow
from tools.demo_engines import (
    Agreement,
    agreement,
    engines_view,
    night_engine,
    proving_engines,
)
from tools.demo_repair import DemoRepair, repair_view, repaired
from tools.demo_result import FoundPlanted, comparison_view, match_planted
from tools.demo_route import NamedHops, add_orders, named_hops, route_view
from tools.demo_runs import DemoFailedError, Run, followed

FOLDER = ROOT / ".demo"
HOME = ROOT / ".airflow"
AUDIT = ("plan", "audit", "gates", "publish", "tell", "verdict")
REPAIR = ("plan", "approve", "repair", "verify")
STAGES = STREAM_STAGES + 1 + len(AUDIT) + 2 * len(REPAIR) + 2
APPROVE = "Approve"
# What has just landed counts as settled by then (settle_grace).
SETTLED = timedelta(minutes=15)
SCENARIO = Scenario(
    stream="events",
    seed=7,
    messages=DEFAULT_MESSAGES,
    shards=8,
    start=datetime.fromisoformat("2026-11-01T00:00:00+00:00"),
    hours=24,
    faults=default_faults(DEFAULT_MESSAGES),
)
# What Apache Spark is asked here is many small questions: Java written for each costs more than it
# saves (docs/performance.md).
_SMALL = """
[spark]
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"""
# The stand-in takes any; the user's own must not even be offered to it.
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo"}


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The comparisons with what was planted, of the route, too, and that of the engines."""

    found: FoundPlanted
    repair: DemoRepair
    route: NamedHops
    engines: Agreement


def demo(
    scenario: Scenario, folder: Path, *, home: Path, night: EngineName, progress: Progress
) -> Reply:
    """Simulates, audits and repairs in Airflow, compares.

    Input:
        night: what runs all that writes into no sink.

    Raises:
        AirflowRunningError: an Airflow already runs on `home`.
        DemoFailedError: a task failed that must not.
    """
    config = folder / "shardaudit.toml"
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | _CREDENTIALS
    airflow = LocalAirflow(home, config, env)
    airflow.require_free()
    shutil.rmtree(folder, ignore_errors=True)
    with kinesis_stand_in() as kinesis:
        _simulate(scenario, config, kinesis, progress=progress)
        with progress.stage("put orders by way of a router"):
            orders = add_orders(kinesis, config)
        # The demo's now: or what it takes minutes to repair would expire meanwhile.
        StandInControl(kinesis).hold(scenario.as_of)
        with progress.stage("start Airflow"):
            airflow.start()
        try:
            api, settings = airflow.api(), load_settings(config)
            run_id = _audited(api, scenario, progress=progress)
            first_id = _audit_id(settings, scenario, scenario.as_of)
            first = published_audit(settings, scenario.stream, first_id)
            found = match_planted(_planted(folder), _findings(settings, scenario))
            _repair(api, scenario, progress=progress)
        finally:
            airflow.stop()
        audit = partial(_audit_by_command, config, env)
        with progress.stage("audit the orders"):
            audit(*orders.asked, engine=night)
        engines = _audit_again(audit, settings, scenario, night=night, progress=progress)
    repair, route = _repaired(scenario, settings, folder), named_hops(settings, orders)
    is_good = found.is_equal and repair.is_done and route.is_equal and engines.is_equal
    parts = (
        *(comparison_view(found), repair_view(repair), route_view(route)),
        engines_view(str(first.engine), engines),
    )
    return Reply(
        document=DemoResult(found, repair, route, engines),
        view=Group(audit_view(first), *parts, _next(run_id)),
        exit_code=ExitCode.DONE if is_good else ExitCode.FAILED,
    )


def _simulate(scenario: Scenario, config: Path, kinesis: str, *, progress: Progress) -> None:
    """A lake of the scenario, and a configuration that suits its size."""
    simulate_stream(scenario, config.parent, endpoints=Endpoints(kinesis), progress=progress)
    with config.open("a", encoding="utf-8") as file:
        file.write(_SMALL)


def _audited(api: AirflowApi, scenario: Scenario, *, progress: Progress) -> str:
    """The id of a run of the nightly audit, after its last task."""
    form = {
        "stream": scenario.stream,
        "from": scenario.window.start.isoformat(),
        "to": scenario.window.end.isoformat(),
        "as_of": scenario.as_of.isoformat(),
    }
    # The verdict is red, as it should be.
    run = Run("nightly_audit", form, AUDIT, may_fail="verdict")
    return followed(api, run, approve=APPROVE, progress=progress)


def _repair(api: AirflowApi, scenario: Scenario, *, progress: Progress) -> None:
    """A backfill and a dedupe, each approved as a person does it."""
    form = {"stream": scenario.stream, "as_of": scenario.as_of.isoformat()}
    missing = {"what": "missing", "include_stuck": True}
    for asked in (missing, {"what": "duplicates"}):
        run = Run("backfill", form | asked, REPAIR)
        followed(api, run, approve=APPROVE, progress=progress)


def _audit_by_command(
    config: Path, env: Mapping[str, str], *asked: str, engine: EngineName
) -> None:
    """Ingests and audits what is asked.

    Raises:
        DemoFailedError: it could not.
    """
    command = [sys.executable, "-m", "shardaudit.cli.main", "--config", str(config), "audit"]
    done = subprocess.run(
        [*command, f"--engine={engine}", *asked],
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        state = f"ended with {done.returncode}"
        raise DemoFailedError(f"audit on {engine}", state, done.stderr.splitlines())


def _audit_again(
    audit: Callable[..., None],
    settings: Settings,
    scenario: Scenario,
    *,
    night: EngineName,
    progress: Progress,
) -> Agreement:
    """The same window audited by each engine, when what was repaired has settled."""
    proofs, tables = [], DeltaRs(settings.warehouse, settings.aws)
    asked = (
        f"--stream={scenario.stream}",
        f"--from={scenario.window.start.isoformat()}",
        f"--to={scenario.window.end.isoformat()}",
        f"--as-of={(scenario.as_of + SETTLED).isoformat()}",
    )
    for engine in proving_engines(night):
        # What an audit before it looked up is forgotten: each engine reads the ids itself.
        tables.delete(EVIDENCE, where=has_values({"stream": [scenario.stream]}))
        with progress.stage(f"audit once more ({engine})"):
            audit(*asked, engine=engine)
        proofs.append(_audit_row(settings, scenario))
    return agreement(proofs)


def _audit_row(settings: Settings, scenario: Scenario) -> Row:
    """The row of the newest audit: one on another engine takes the place of the one before it."""
    audit = _audit_id(settings, scenario, scenario.as_of + SETTLED)
    [row] = read_rows(settings, AUDITS, where=pc.field("audit_id") == audit)
    return row


def _repaired(scenario: Scenario, settings: Settings, folder: Path) -> DemoRepair:
    audit = _audit_id(settings, scenario, scenario.as_of + SETTLED)
    return repaired(
        _planted(folder),
        _findings(settings, scenario),
        read_rows(settings, CELLS, where=pc.field("audit_id") == audit),
        bucket=settings.stream(scenario.stream).bucket,
    )


def _planted(folder: Path) -> list[dict[str, Any]]:
    planted: list[dict[str, Any]] = pq.read_table(folder / "planted.parquet").to_pylist()
    return planted


def _findings(settings: Settings, scenario: Scenario) -> list[dict[str, Any]]:
    return read_rows(settings, FINDINGS, where=pc.field("stream") == scenario.stream)


def _audit_id(settings: Settings, scenario: Scenario, as_of: datetime) -> str:
    stream = settings.stream(scenario.stream)
    window = scenario.window.aligned(stream.bucket)
    return audit_id(scenario.stream, window, as_of, stream.digest())


def _next(run_id: str) -> Text:
    command = f".venv/bin/shardaudit --config {FOLDER.name}/shardaudit.toml"
    listing = f"{command} findings list --stream {SCENARIO.stream}"
    return Text(
        "\nIn Airflow the task `verdict` of this run is red, as it should be: messages are missing."
        "\nWhat has expired by now does not come back: the last audit names it, too."
        f"\n\n{listing} --state expired --limit 20\n    the findings that are left"
        f"\n{listing} --kind duplicated\n    those of one kind"
        "\nmake airflow\n    Airflow's address and login; there open"
        f" /dags/nightly_audit/runs/{run_id}"
        "\n    and the log of its task verdict: shards, numbers, deadlines"
        "\n    /dags/backfill has what was asked before anything was read, and who approved it"
    )


def main() -> int:
    """Runs the demo at a terminal or in a pipe."""
    terminal = Terminal(as_json=False, debug=False)
    try:
        night = night_engine(os.environ)
        progress = terminal.progress(STAGES + len(proving_engines(night)))
        reply = demo(SCENARIO, FOLDER, home=HOME, night=night, progress=progress)
        return terminal.tell(reply)
    except ShardauditError as error:
        return terminal.fail(error, error.exit_code)
    except KeyboardInterrupt as error:
        return terminal.fail(error, ExitCode.FAILED)


if __name__ == "__main__":
    sys.exit(main())
