"""An Airflow of the tests' own: its home is a folder that is thrown away, set before any import."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dags.fake_spark import install_fake_command, install_fake_spark

HOME = tempfile.mkdtemp(prefix="shardaudit-airflow-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parents[2] / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
    AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}',
)
# Airflow reads its home while it is imported.
from airflow.dag_processing.dagbag import DagBag  # noqa: E402
from airflow.sdk import DAG  # noqa: E402
from airflow.utils.db import initdb  # noqa: E402

LEAKY = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CONFIG = """
warehouse = "warehouse"
[spark]
"spark.driver.memory" = "5g"
"spark.sql.shuffle.partitions" = 64
[streams.events]
stream_name = "events"
audit_window = "2d"
traces = { path = "traces/events" }
sink = { path = "sink/events" }
[streams.orders]
stream_name = "orders"
traces = { path = "traces/orders" }
sink = { path = "sink/orders" }
"""


@pytest.fixture
def _airflow_warns() -> Iterator[None]:
    """Airflow's own deprecations are not ours to fix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def _database() -> None:
    """Airflow's tables, in the home of the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        initdb()


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    """The DAGs by their names, as Airflow finds them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pathspec, used by Airflow
        bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    assert bag.import_errors == {}
    return bag.dags


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shardaudit.toml with two streams, named to Airflow."""
    file = tmp_path / "shardaudit.toml"
    file.write_text(CONFIG)
    monkeypatch.setenv("SHARDAUDIT_CONFIG", str(file))
    monkeypatch.delenv("SHARDAUDIT_JARS", raising=False)
    monkeypatch.delenv("SHARDAUDIT_ENGINE", raising=False)
    return file


@pytest.fixture
def embedded(config: Path) -> Path:
    """The same for the embedded engine."""
    config.write_text(f'engine = "embedded"\n{config.read_text()}')
    return config


@pytest.fixture
def spark_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file into which a fake spark-submit, first on the PATH, writes its arguments."""
    folder = tmp_path / "bin"
    calls = install_fake_spark(folder, python=sys.executable)
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
    yield calls
    gc.collect()  # here, where LEAKY holds: the provider leaves its end of a pipe open


@pytest.fixture
def command_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the calls of a fake command; there is no connection, and nothing on the PATH."""
    calls = install_fake_command(tmp_path / "fake")
    monkeypatch.setenv("PYTHONPATH", str(calls.parent))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    return calls


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks this folder's tests; a fake spark-submit leaves the provider's pipe open."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.dags)
        if "spark_calls" in getattr(item, "fixturenames", ()):
            item.add_marker(LEAKY)
