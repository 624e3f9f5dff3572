"""The whole way of a lost message: seen on the map, asked for, approved, back in the sink.

Nothing is made up but the stream: our commands audit and repair, Airflow runs the DAG, a person
clicks.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urljoin

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, expect

from shardaudit.adapters.clock import now
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import ENGINE
from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.browser.conftest import Site, logged_in
from tests.browser.steps import frame, opened, point, wait_until_known
from tools.airflow_processes import LocalAirflow

NAME, DAG, HOURS = "events", "backfill", 2
# Small plans, each run once: the second compiler never pays here (as in tests/conftest.py).
SPARK = """
[spark]
"spark.master" = "local[2]"
"spark.sql.shuffle.partitions" = 1
"spark.databricks.delta.snapshotPartitions" = 1
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""
JOB_SECONDS = 600
# As tools/demo_runs.py has it: Airflow 3.3.2 fails a task that is answered too soon.
BEFORE_ANSWER_MS = 4000


@dataclass(frozen=True)
class Lost:
    """A stream that lost messages, audited, and an Airflow over it. `start`: of its window."""

    folder: Path
    start: datetime
    airflow: LocalAirflow

    def ids(self) -> dict[str, list[tuple[datetime, str]]]:
        """The lost messages of each shard, the oldest first."""
        found: dict[str, list[tuple[datetime, str]]] = {}
        for row in pq.read_table(self.folder / "planted.parquet").to_pylist():
            found.setdefault(row["shard_id"], []).append((row["sent_at"], row["message_id"]))
        return {shard: sorted(messages) for shard, messages in sorted(found.items())}


@pytest.fixture(
    params=[EngineName.EMBEDDED, pytest.param(EngineName.SPARK, marks=pytest.mark.drill)]
)
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lost]:
    """Two hours until one hour ago: all of it has settled, nothing has expired.

    The engine audits and verifies. It is Apache Spark that repairs, whatever the engine.
    """
    start = now().replace(second=0, microsecond=0) - timedelta(hours=HOURS + 1)
    scenario = Scenario(NAME, 7, 400, 2, start, HOURS, {"lost": 6})
    own = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    env = own | keys | {ENGINE: str(request.param)}
    folder = tmp_path / "simulated"
    config = folder / "shardaudit.toml"
    with kinesis_stand_in() as kinesis:
        simulate_stream(scenario, folder, endpoints=Endpoints(kinesis))
        StandInControl(kinesis).run_from(now())
        config.write_text(config.read_text() + SPARK)
        audit(config, scenario, env)
        with LocalAirflow(tmp_path / "home", config, env) as airflow:
            yield Lost(folder, start, airflow)


def audit(config: Path, scenario: Scenario, env: dict[str, str]) -> None:
    """The audit of the simulated time, by the command."""
    window = scenario.window
    command = [sys.executable, "-m", "shardaudit.cli.main", "--config", str(config), "audit"]
    words = [f"--from={window.start.isoformat()}", f"--to={window.end.isoformat()}"]
    subprocess.run([*command, f"--stream={NAME}", *words], env=env, check=True, timeout=JOB_SECONDS)


def test_a_lost_message_is_back_when_its_backfill_was_approved(
    lost: Lost, chromium: Browser
) -> None:
    site = logged_in(lost.airflow, chromium)
    wait_until_known(site)
    site.api.switch(DAG, on=True)
    (shard, mine), (_, others) = lost.ids().items()
    sent_at, message_id = mine[0]
    hour = (sent_at - lost.start) / timedelta(hours=1)

    opened(site, f"stream?stream={NAME}")
    point(site, row=0, hour=hour, click=True)
    inside = frame(site.page)
    expect(inside.locator("h1")).to_contain_text(shard)
    expect(state_of(inside, message_id)).to_have_text("open")
    site.page.wait_for_url(re.compile(r"/plugin/shardaudit/shardaudit/shard\?"))
    cell = site.page.url
    run_id = asked(inside, messages=len(mine))
    approved(site, run_id)
    until(site, run_id, lambda: site.api.run_state(DAG, run_id) in {"success", "failed"})
    assert site.api.run_state(DAG, run_id) == "success"

    link = site.page.get_by_role("link", name="the map of shardaudit")
    back = urljoin(site.url, link.get_attribute("href"))
    assert back == cell  # where the backfill was asked for
    site.page.goto(back)
    expect(state_of(frame(site.page), message_id)).to_have_text("recovered")
    inside = opened(site, f"shard?stream={NAME}&first={shard}&last={shard}")
    expect(inside.locator("td .state")).to_have_text(["recovered"] * len(mine))
    inside = opened(site, f"stream?stream={NAME}")
    expect(inside.locator(".number", has_text="Open findings")).to_contain_text(str(len(others)))
    point(site, row=0, hour=hour)
    expect(inside.locator(".tip")).to_contain_text("ok: each acknowledged message landed")
    assert site.wrong == []
    site.context.close()


def state_of(inside: FrameLocator, message_id: str) -> Locator:
    """The state of the message's finding, as the page says it."""
    return inside.locator("table.findings tr", has_text=message_id).locator(".state")


def asked(inside: FrameLocator, *, messages: int) -> str:
    """The id of the run that "backfill this" started; its link was followed."""
    inside.get_by_role("button", name="Backfill this").click()
    dialog = inside.get_by_role("dialog")
    expect(dialog).to_contain_text(f"the {messages} open missing messages of this shard")
    dialog.get_by_role("button", name="Start the backfill").click()
    link = dialog.locator(".done a")
    expect(link).to_contain_text("manual__")
    run_id = link.inner_text()
    link.click()
    return run_id


def approved(site: Site, run_id: str) -> None:
    """A person reads the plan in Airflow's own page of the run, and approves it."""
    until(site, run_id, lambda: "awaiting_input" in states(site, run_id).values())
    site.page.wait_for_timeout(BEFORE_ANSWER_MS)
    site.page.get_by_text("Required Actions").first.click()
    expect(site.page.get_by_text("are to be read again from 1 shard")).to_be_visible()
    site.page.get_by_role("button", name="Approve").click()
    until(site, run_id, lambda: "awaiting_input" not in states(site, run_id).values())
    site.page.keyboard.press("Escape")


def states(site: Site, run_id: str) -> dict[str, str]:
    """The states of the run's tasks."""
    return {task.task_id: task.state for task in site.api.task_states(DAG, run_id)}


def until(site: Site, run_id: str, holds: Callable[[], bool]) -> None:
    """Waits until it holds, unless a task fails before."""
    for _ in range(JOB_SECONDS * 2):
        if holds():
            return
        assert "failed" not in states(site, run_id).values(), states(site, run_id)
        time.sleep(0.5)
    raise AssertionError(states(site, run_id))
