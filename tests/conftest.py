"""One local Spark session per run, and a warehouse in a folder of its own per test."""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path

import boto3
import botocore.session
import pytest
from botocore.retries.standard import ExponentialBackoff
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.door import Engine, started
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.parts import ENGINE
from shardaudit.model.config.settings import Settings
from shardaudit.store.warehouse import Warehouse

# How long an example takes is the machine's affair: no test here is about its own speed. In CI the
# examples are the same each time; whoever runs the tests by hand tries others.
hypothesis_settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis_settings.load_profile("untimed")
# Of `make check`; `make test` has all examples.
hypothesis_settings.register_profile(
    "fast", hypothesis_settings.get_profile("untimed"), max_examples=20
)

# Or each test's session would read what botocore knows of all services: most of a client's cost.
botocore.session.create_loader = cache(botocore.session.create_loader)


TUNING = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "2g",
    # Hundreds of small plans, each run once: the second compiler never pays here. With the
    # first alone the code cache is 48m, which one audit's plans can fill. What a plan leaves is
    # garbage at once: a large young generation copies little, and one core collects it.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms1g -Xmn500m -XX:TieredStopAtLevel=1 "
    "-XX:ReservedCodeCacheSize=240m",
    # Nobody looks at the plans of a session without a page.
    "spark.sql.ui.explainMode": "simple",
}
# A handful of rows is judged before Java for them is written, compiled and planned anew. Commands
# that are started as people start them, and the processes of tests/engines, which compare the
# engines, do all of that.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Both, as lines of a configuration under [spark].
SPARK_KEYS = "".join(f'"{name}" = "{value}"\n' for name, value in (TUNING | INTERPRETED).items())
# The same of the embedded engine: a plan for one core is planned sooner. It asks for it once.
ONE_CORE = ("SAIL_EXECUTION__DEFAULT_PARALLELISM", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """One engine a process: PySpark's two kinds of session do not mix."""
    parser.addoption("--engine", choices=list(EngineName), default=EngineName.SPARK)


def pytest_configure(config: pytest.Config) -> None:
    """The commands that tests start run on the same engine, whatever their configuration says."""
    os.environ[ENGINE] = config.getoption("engine")
    # All that is imported stays: to look through it for garbage took a seventh of the time.
    gc.set_threshold(50_000, 20, 100)
    # Or what the tests start would not hear Ctrl-C where a shell started them in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs Apache Spark itself where another engine runs."""
    if config.getoption("engine") == EngineName.SPARK:
        return
    apart = [item for item in items if item.get_closest_marker("apache_spark")]
    items[:] = [item for item in items if item not in set(apart)]
    config.hook.pytest_deselected(items=apart)


def engine_settings(name: str) -> Settings:
    """Settings of that engine, as small as tests want it."""
    return Settings.model_validate(
        {
            "warehouse": "unused",
            "engine": name,
            "embedded": {"shared_machine": True},
            "spark": TUNING,
            "streams": {},
        }
    )


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engine of this run of the tests."""
    settings = engine_settings(request.config.getoption("engine"))
    settings.spark.update(INTERPRETED)
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(*ONE_CORE)
            engine = stack.enter_context(started(settings, app="tests"))
        import_module("shardaudit.adapters.quality")  # each audit needs it
        gc.collect()
        gc.freeze()
        yield engine


@pytest.fixture(scope="session")
def spark(engine: Engine) -> SparkSession:
    """Its session."""
    return engine.session


@pytest.fixture(autouse=True)
def _no_credentials_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 keeps those that its first client found, for all that come."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


@pytest.fixture
def _any_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a client of which nothing asks who it is."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture(autouse=True)
def _no_pause_before_boto3_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often it tries is for a test; how long it waits in between is its own affair."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.0)


@pytest.fixture
def warehouse(engine: Engine, tmp_path: Path) -> Warehouse:
    """An empty warehouse."""
    return Warehouse(engine.session, str(tmp_path / "warehouse"), engine=engine.version)
