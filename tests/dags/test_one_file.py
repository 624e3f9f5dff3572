"""A user's DAG folder with one file, as Airflow reads it: our DAGs, placed as the file says."""

import inspect
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from shardaudit.airflow import all_dags
from shardaudit.model.config.parts import CONFIG
from tests.dags.fake_spark import read_calls

ROOT = Path(__file__).parents[2]
ALL = ["backfill", "backfill_on_alarm", "maintenance", "nightly_audit", "retention_watch"]
PLACED = {"pool": "drivers", "queue": "big", "connection": "our_spark", "owner": "ann, lake"}
# It waits for an audit, which may have to wait for the pool.
NOT_IN_POOL = {("backfill_on_alarm", "audit")}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file sets is its process's own; here all is one process."""
    monkeypatch.setenv(CONFIG, os.environ.get(CONFIG, ""))


def bag(folder: Path, **given: object) -> DagBag:
    """What Airflow makes of a folder with one file that calls `dags`."""
    arguments = {"config": "/etc/shardaudit.toml"} | given
    said = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return bag_of(
        folder, f"from shardaudit.airflow import dags\n\nglobals().update(dags({said}))\n"
    )


def bag_of(folder: Path, text: str) -> DagBag:
    (folder / "ours.py").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pathspec, used by Airflow
        return DagBag(str(folder))


def timing(dag: DAG) -> tuple[str, str]:
    timetable: Any = dag.timetable  # Any: the base class has no cron
    return timetable.expression, str(timetable.timezone)


def test_one_file_brings_all_five(tmp_path: Path, dags: dict[str, DAG]) -> None:
    found = bag(tmp_path)
    assert found.import_errors == {}
    assert sorted(found.dags) == sorted(dags) == ALL
    assert os.environ[CONFIG] == "/etc/shardaudit.toml"
    for name, dag in found.dags.items():
        assert dag.fileloc == str(tmp_path / "ours.py")  # where a task looks for it again
        assert sorted(dag.task_ids) == sorted(dags[name].task_ids)
        assert dag.default_args == dags[name].default_args


def test_the_file_of_the_docs_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "installing.md").read_text()
    [file] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    found = bag_of(tmp_path, file)
    assert found.import_errors == {}
    assert sorted(found.dags) == ALL
    arguments = set(re.findall(r"^\| `(\w+)` \|", page.partition("## 3.")[2], flags=re.MULTILINE))
    assert arguments == set(inspect.signature(all_dags.dags).parameters)


def test_each_task_is_where_the_file_says_and_whose(tmp_path: Path) -> None:
    found = bag(tmp_path, **PLACED)
    assert found.import_errors == {}
    for name in ALL:
        tasks: list[Any] = found.dags[name].tasks  # Any: mapped ones have a class of their own
        for task in tasks:
            assert (task.queue, task.owner) == (PLACED["queue"], PLACED["owner"])
            pool = "default_pool" if (name, task.task_id) in NOT_IN_POOL else PLACED["pool"]
            assert task.pool == pool, task.task_id
        assert found.dags[name].owner == PLACED["owner"]


@pytest.mark.usefixtures("_airflow_warns", "_database")
@pytest.mark.parametrize("run", [("maintenance", 1), ("nightly_audit", 2)])
def test_spark_is_asked_where_the_connection_of_the_file_says(
    tmp_path: Path,
    config: Path,
    spark_calls: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: tuple[str, int],
) -> None:
    name, jobs = run
    monkeypatch.setenv("AIRFLOW_CONN_OUR_SPARK", '{"conn_type": "spark", "host": "local[7]"}')
    monkeypatch.setenv(CONFIG, "/of/somebody/else.toml")
    folder = tmp_path / "dags"
    folder.mkdir()
    bag(folder, config=str(config), connection="our_spark").dags[name].test()
    calls = read_calls(spark_calls)
    assert [call[:2] for call in calls] == jobs * [["--master", "local[7]"]]
    assert all(str(config) in call for call in calls)


def test_the_clock_starts_the_audit_when_the_file_says(tmp_path: Path) -> None:
    found = bag(tmp_path, schedule="30 */6 * * 1-5").dags
    assert timing(found["nightly_audit"]) == ("30 */6 * * 1-5", "UTC")
    assert found["nightly_audit"].max_active_runs == 1
    assert timing(found["retention_watch"]) == ("*/15 * * * *", "UTC")
    daily = bag(tmp_path, schedule="@daily").dags["nightly_audit"]
    assert timing(daily) == ("0 0 * * *", "UTC")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"pool": ""},
            "dags(pool=…): found '', wanted the name of one of Airflow's pools, as a text. "
            "Correct it in this file",
        ),
        ({"config": " "}, "dags(config=…): found ' ', wanted the path of the shardaudit.toml"),
        ({"queue": " "}, "dags(queue=…): found ' ', wanted the name of a queue"),
        ({"connection": 7}, "dags(connection=…): found 7, wanted the id of a Spark connection"),
        (
            {"owner": ["ann"]},
            "found ['ann'], wanted who is shown as the owner of the tasks, as a text. Correct",
        ),
        ({"schedule": "every hour"}, "dags(schedule=…): found 'every hour', wanted five fields of"),
        ({"schedule": "61 * * * *"}, "found '61 * * * *', wanted five fields"),
        ({"schedule": "0 0 30 2 *"}, "found '0 0 30 2 *', wanted five fields"),
        ({"schedule": "@once"}, "found '@once', wanted five fields"),
        ({"schedule": None}, "dags(schedule=…): found None, wanted five fields"),
        ({"pol": "x"}, "dags() got an unexpected keyword argument 'pol'"),
    ],
)
def test_a_wrong_argument_is_refused_while_the_file_is_parsed(
    tmp_path: Path, given: dict[str, object], said: str
) -> None:
    [error] = bag(tmp_path, **given).import_errors.values()
    assert said in error.strip().splitlines()[-1]
