"""An S3 that is silent, cuts or says 503 for ever: an audit ends with 75, whoever asks it what."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.s3proxy import REGION, S3Endpoint, s3_proxy
from shardaudit.store.lock import Holder
from shardaudit.store.lock_files import FOLDER
from tests.conftest import SPARK_KEYS
from tests.engines.commands import AS_OF, STREAM, WINDOW, reaching, run
from tests.faults.stormy_proxy import BUSY, CUT, SILENT, Weather, stormy

log = logging.getLogger(__name__)

# Issue 15: without progress. To come as far as that takes as long as the machine has others to do.
LIMIT_S, TO_IT_S = 180, 400
# So many traces are read by the engine itself, and not by the driver.
MESSAGES = 6_000
# The first request of each client: boto3's (the lock), pyarrow's (inputs), delta-rs', and those of
# the engines for data and for a table.
LOCK, INPUTS, TABLES = "Boto3/.* PUT ", "aws-sdk-cpp/", "object_store/"
EMBEDDED = "object_store/.*(warehouse/./kept_files|events/sink)"
APACHE = "aws-sdk-java/"
CONFIG = """
warehouse = "s3a://lake/{folder}"
aws = {{ region = "{region}", endpoints = {{ s3 = "{url}" }} }}
embedded = {{ shared_machine = true }}

[streams.events]
stream_name = "events"
retention = "24h"
traces = {{ path = "s3a://lake/events/traces", format = "parquet" }}
sink = {{ path = "s3a://lake/events/sink" }}

[spark]
{spark}
"""


@dataclass(frozen=True)
class Case:
    """An audit with a warehouse of its own, at work, and the weather of its S3."""

    process: "subprocess.Popen[str]"
    said: Path
    weather: Weather
    warehouse: Path

    def told(self) -> str:
        return f"{self.weather.sick_from}: {self.said.read_text()[-3000:]}"

    def seconds(self) -> float:
        """Between the beginning of the sickness and the end of the audit, waited for."""
        began = time.monotonic()
        while self.process.poll() is None:
            at = time.monotonic()
            sick_at = self.weather.sick_at
            if at > (began + TO_IT_S if sick_at is None else sick_at + LIMIT_S):
                os.killpg(self.process.pid, signal.SIGKILL)
                raise AssertionError(f"not done in time: {self.told()}")
            time.sleep(0.1)
        assert self.weather.sick_at is not None, self.told()
        return time.monotonic() - self.weather.sick_at

    def ends_with_75(self) -> None:
        seconds = self.seconds()
        log.info("%s after %.0f s: %s", self.process.returncode, seconds, self.told())
        assert self.process.returncode == ExitCode.RETRY, self.told()
        assert self.said.read_text().splitlines()[-1].startswith("error: "), self.told()
        newest = max((self.warehouse / FOLDER).glob("*.json"), default=None)
        if newest is not None:  # or it never got the lock
            holder = Holder(**json.loads(newest.read_text()))
            assert holder.released or holder.is_gone()


@contextmanager
def lake_in(folder: Path) -> Iterator[S3Endpoint]:
    """An S3 with traces and a sink."""
    made = ["simulate", "files", "--out", str(folder / "s3/lake/events"), "--fault=lost=5"]
    assert run([*made, f"--messages={MESSAGES}"], dict(os.environ)).returncode == 0
    with s3_proxy(folder / "s3") as endpoint:
        yield endpoint


def all_end_with_75(folder: Path, sickness: str, *, engine: str, starts: list[str]) -> None:
    """One audit for each of what the sickness starts with, all at the same time."""
    with lake_in(folder) as endpoint, ExitStack() as stack:
        cases = []
        for n, sick_from in enumerate(starts):
            weather = Weather(0, sickness=sickness, sick_from=sick_from)
            url = stack.enter_context(stormy(endpoint.url, weather))
            config, said = folder / f"{n}.toml", folder / f"{n}.said"
            told = {"folder": f"warehouse/{n}", "region": REGION, "url": url}
            config.write_text(CONFIG.format(**told, spark=SPARK_KEYS))
            words = ["--config", str(config), f"--engine={engine}", "audit"]
            process = subprocess.Popen(
                [sys.executable, "-m", "shardaudit.cli.main", *words, *STREAM, *WINDOW, *AS_OF],
                env=reaching(endpoint),
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(said.open("w")),
                text=True,
                process_group=0,
            )
            stack.callback(process.wait)
            cases.append(Case(process, said, weather, folder / "s3/lake/warehouse" / str(n)))
        for case in cases:
            case.ends_with_75()


@pytest.mark.parametrize("sickness", [BUSY, pytest.param(CUT, marks=[pytest.mark.drill]), SILENT])
def test_an_audit_ends_with_75_when_storage_is_sick(tmp_path: Path, sickness: str) -> None:
    all_end_with_75(tmp_path, sickness, engine="embedded", starts=[LOCK, INPUTS, TABLES, EMBEDDED])


@pytest.mark.drill
@pytest.mark.parametrize("sickness", [BUSY, CUT, SILENT])
def test_an_audit_on_apache_spark_ends_with_75_when_storage_is_sick(
    tmp_path: Path, sickness: str
) -> None:
    all_end_with_75(tmp_path, sickness, engine="spark", starts=[APACHE])
