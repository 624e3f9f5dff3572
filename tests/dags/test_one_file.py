"""A user's DAG folder with one file, as Airflow reads it: our DAGs, placed as the file says."""

import re
import tomllib
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from shardaudit.airflow import dags as our_dags
from tests.dags.fake_spark import read_calls

ROOT = Path(__file__).parents[2]
CONTRACT = (ROOT / "docs" / "contract.md").read_text()
PAGE = (ROOT / "docs" / "installing.md").read_text()
IMPORT = "from shardaudit.airflow import dags\n"
ALL = ["backfill", "backfill_on_alarm", "maintenance", "nightly_audit", "retention_watch"]
PLACED = {"pool": "drivers", "queue": "big", "conn_id": "our_spark", "owner": "ann, lake"}
# It waits for an audit, which may have to wait for the pool.
NOT_IN_POOL = {("backfill_on_alarm", "audit")}


def bag(folder: Path, *calls: str) -> DagBag:
    """What Airflow makes of a folder with one file of these calls."""
    (folder / "ours.py").write_text(IMPORT + "".join(f"dags.{call}\n" for call in calls))
    return bag_of(folder)


def bag_of(folder: Path) -> DagBag:
    """What Airflow makes of a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pathspec, used by Airflow
        return DagBag(str(folder))


def refusal(folder: Path, call: str) -> str:
    """The last line of what Airflow shows of the file that it could not read."""
    [error] = bag(folder, call).import_errors.values()
    return error.strip().splitlines()[-1]


def timing(dag: DAG) -> tuple[str, str]:
    timetable: Any = dag.timetable  # Any: the base class has no cron
    return timetable.expression, str(timetable.timezone)


def deadline(dag: DAG) -> timedelta:
    deadlines: Any = dag.deadline  # Any: one or a list of them
    (one,) = deadlines if isinstance(deadlines, list) else [deadlines]
    interval: timedelta = one.interval
    return interval


def test_one_file_brings_all_five(tmp_path: Path, dags: dict[str, DAG]) -> None:
    found = bag(tmp_path, *(f"{name}()" for name in ALL))
    assert found.import_errors == {}
    assert sorted(found.dags) == sorted(dags) == ALL
    for name, dag in found.dags.items():
        assert dag.fileloc == str(tmp_path / "ours.py")  # where a task looks for it again
        assert sorted(dag.task_ids) == sorted(dags[name].task_ids)
        assert dag.default_args == dags[name].default_args


def test_a_file_has_those_alone_that_it_calls(tmp_path: Path) -> None:
    found = bag(tmp_path, "retention_watch()")
    assert found.import_errors == {}
    assert list(found.dags) == ["retention_watch"]


def test_the_file_of_the_document_is_one(tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(PAGE.partition("```python\n")[2].partition("```")[0])
    found = bag_of(tmp_path)
    assert found.import_errors == {}
    assert sorted(found.dags) == ALL
    assert timing(found.dags["nightly_audit"]) == ("0 3 * * *", "UTC")


def test_each_call_takes_what_the_contract_promises_and_no_more() -> None:
    promised = re.findall(r"(?m)^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", CONTRACT)
    for name, arguments in promised:
        hints = get_type_hints(getattr(our_dags, name))
        (given,) = get_args(hints["given"])
        assert set(re.findall(r"\w+", arguments)) == set(given.__annotations__), name
    assert sorted(name for name, _ in promised) == ALL


def test_the_document_names_the_versions_that_are_wanted() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for package in ("apache-airflow", "pyspark"):
        named = set(re.findall(rf"\b{package}==([\d.]+)", PAGE))
        assert named == set(re.findall(rf'"{package}(?:\[\w+\])?==([\d.]+)"', text))
    assert set(re.findall(r"shardaudit-([\d.]+)-py3", PAGE)) == {
        tomllib.loads(text)["project"]["version"]
    }


@pytest.mark.parametrize("name", ALL)
def test_each_task_is_where_the_file_says_and_whose(tmp_path: Path, name: str) -> None:
    given = ", ".join(f"{key}={value!r}" for key, value in PLACED.items())
    found = bag(tmp_path, f"{name}({given})")
    assert found.import_errors == {}
    tasks: list[Any] = found.dags[name].tasks  # Any: mapped ones have a class of their own
    for task in tasks:
        assert (task.queue, task.owner) == (PLACED["queue"], PLACED["owner"])
        pool = "default_pool" if (name, task.task_id) in NOT_IN_POOL else PLACED["pool"]
        assert task.pool == pool, task.task_id
    assert found.dags[name].owner == PLACED["owner"]


@pytest.mark.usefixtures("_airflow_warns", "_database", "config")
@pytest.mark.parametrize(("name", "jobs"), [("maintenance", 1), ("nightly_audit", 4)])
def test_spark_is_asked_where_the_connection_of_the_file_says(
    tmp_path: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch, name: str, jobs: int
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OUR_SPARK", '{"conn_type": "spark", "host": "local[7]"}')
    folder = tmp_path / "dags"
    folder.mkdir()
    bag(folder, f"{name}(conn_id='our_spark')").dags[name].test()
    assert [call[:2] for call in read_calls(spark_calls)] == jobs * [["--master", "local[7]"]]


@pytest.mark.parametrize("name", ["maintenance", "nightly_audit", "retention_watch"])
def test_the_clock_starts_it_when_the_file_says(tmp_path: Path, name: str) -> None:
    dag = bag(tmp_path, f"{name}(schedule='30 */6 * * 1-5')").dags[name]
    assert timing(dag) == ("30 */6 * * 1-5", "UTC")
    assert dag.max_active_runs == 1
    assert timing(bag(tmp_path, f"{name}(schedule='@daily')").dags[name]) == ("0 0 * * *", "UTC")


@pytest.mark.parametrize(
    ("schedule", "minutes"),
    [("*/15 * * * *", 14), ("*/30 * * * *", 28), ("0,45 * * * *", 14), ("0 * * * 1-5", 56)],
)
def test_a_watch_is_late_shortly_before_the_next_is_due(
    tmp_path: Path, schedule: str, minutes: int
) -> None:
    dag = bag(tmp_path, f"retention_watch(schedule={schedule!r})").dags["retention_watch"]
    assert deadline(dag) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "nightly_audit(pool='')",
            "nightly_audit(pool=…): found '', wanted the name of one of Airflow's pools. "
            "Correct it in this file, or leave it out",
        ),
        ("backfill(queue=' ')", "backfill(queue=…): found ' ', wanted the name of a queue"),
        ("backfill(conn_id=None)", "backfill(conn_id=…): found None, wanted the id of a Spark"),
        ("maintenance(owner=['ann'])", "maintenance(owner=…): found ['ann'], wanted who is shown"),
        (
            "retention_watch(schedule='every hour')",
            "retention_watch(schedule=…): found 'every hour', wanted five fields of cron such as",
        ),
        ("nightly_audit(schedule='61 * * * *')", "found '61 * * * *', wanted five fields"),
        ("nightly_audit(schedule='0 0 30 2 *')", "found '0 0 30 2 *', wanted five fields"),
        ("retention_watch(schedule='* * * * * */30')", "found '* * * * * */30', wanted five"),
        ("retention_watch(schedule='0 0 1 1 * 0 2027')", "found '0 0 1 1 * 0 2027', wanted five"),
        ("nightly_audit(schedule='@once')", "found '@once', wanted five fields"),
        ("nightly_audit(schedule=None)", "nightly_audit(schedule=…): found None, wanted five"),
        (
            "nightly_audit(pol='x')",
            "nightly_audit(…): found 'pol', wanted only pool, queue, conn_id, owner, schedule. "
            "Correct it in this file, or leave it out",
        ),
        (
            "backfill(schedule='@daily')",
            "backfill(…): found 'schedule', wanted only pool, queue, conn_id, owner. ",
        ),
        ("backfill_on_alarm(schedule='@daily')", "backfill_on_alarm(…): found 'schedule'"),
    ],
)
def test_a_wrong_argument_is_refused_while_the_file_is_parsed(
    tmp_path: Path, call: str, said: str
) -> None:
    assert said in refusal(tmp_path, call)
