"""The DAG as Airflow finds it, and whole runs with a spark-submit that starts no Spark."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException
from deltalake import write_deltalake

from shardaudit.adapters.clock import now
from shardaudit.airflow.planned_jobs import PlanRefusedError, planned_watches
from shardaudit.airflow.watch_news import alarm_extra
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.watch_tables import SHARDS
from tests.dags.fake_spark import read_calls
from tests.dags.news import NOON, news, states
from tests.dags.warehouses import arrow

DAGS = Path(__file__).parents[2] / "dags"


pytestmark = pytest.mark.usefixtures("_airflow_warns")


@pytest.fixture
def dag(dags: dict[str, DAG]) -> DAG:
    """The DAG as Airflow finds it."""
    return dags["retention_watch"]


def test_it_runs_every_quarter_and_never_twice_at_once(dag: DAG) -> None:
    timetable: Any = dag.timetable  # Any: the base class has no cron
    assert (timetable.expression, str(timetable.timezone)) == ("*/15 * * * *", "UTC")
    assert timetable.run_immediately == timedelta(0)
    assert dag.catchup is False
    assert (dag.max_active_runs, dag.max_active_tasks) == (1, 1)
    for name in ("watch", "tell"):
        mapped: Any = dag.get_task(name)  # Any: a mapped operator
        assert mapped.execution_timeout == timedelta(hours=1)


@pytest.mark.parametrize("task", ["watch", "tell"])
def test_what_does_not_answer_keeps_no_stream_from_being_told_or_watched_again(
    dag: DAG, task: str
) -> None:
    """Its tries, each over by itself within three minutes, end before the next run is due."""
    mapped: Any = dag.get_task(task)  # Any: a mapped operator
    waits = mapped.retries * 2 * mapped.retry_delay  # twice: Airflow adds up to as much by chance
    assert waits + (1 + mapped.retries) * timedelta(minutes=3) < timedelta(minutes=14)
    assert mapped.retries > 0


def test_a_run_that_is_late_is_an_alarm_itself(dag: DAG) -> None:
    deadlines: Any = dag.deadline  # Any: one or a list of them
    (deadline,) = deadlines if isinstance(deadlines, list) else [deadlines]
    assert deadline.interval == timedelta(minutes=14)
    assert deadline.callback.path == "shardaudit.airflow.watch_news.tell_late"


def test_each_stream_is_watched_as_of_the_moment_it_comes_to_it(config: Path) -> None:
    events, orders = planned_watches()
    assert [events["stream"], orders["stream"]] == ["events", "orders"]
    assert events["arguments"]["watch"] == ["--config", str(config), "watch", "--stream=events"]
    assert events["driver"] == {"spark.driver.memory": "5g"}


def test_the_plan_refuses_what_cannot_be_used(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('warehouse = "w"\n[streams]\n')
    with pytest.raises(PlanRefusedError, match="has no streams"):
        planned_watches()
    config.write_text("nonsense")
    with pytest.raises(PlanRefusedError, match="TOML"):
        planned_watches()
    monkeypatch.delenv("SHARDAUDIT_CONFIG")
    with pytest.raises(PlanRefusedError, match="SHARDAUDIT_CONFIG is not set"):
        planned_watches()


def run() -> tuple[str, dict[str, str]]:
    """The state of a run, and of its tasks by `task` or `task stream`."""
    dag = DagBag(str(DAGS)).dags["retention_watch"]
    dag.deadline = None  # Airflow 3.3.2: dag.test() fails over it when a run succeeds
    dag_run = dag.test()
    found = {
        " ".join(filter(None, (ti.task_id, ti.rendered_map_index))): str(ti.state)
        for ti in dag_run.get_task_instances()
    }
    return str(dag_run.state), found


@pytest.mark.usefixtures("_database")
def test_what_is_pending_is_told_marked_and_published(config: Path, spark_calls: Path) -> None:
    warehouse = config.with_name("warehouse")
    news(warehouse, "s1", "s2")
    state, found = run()
    assert set(found.values()) == {"success"}
    assert state == "success"
    assert sorted(call[-2:] for call in read_calls(spark_calls)) == [  # the order is Airflow's
        ["watch", "--stream=events"],
        ["watch", "--stream=orders"],
    ]
    assert states(warehouse) == {"s1": "sent", "s2": "sent"}
    assert run()[1]["publish"] == "skipped"  # the last event has them


@pytest.mark.usefixtures("_database")
def test_a_failed_watch_makes_the_run_red_and_what_is_pending_is_told_all_the_same(
    config: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"watch events": 1}))
    warehouse = config.with_name("warehouse")
    news(warehouse, "s1")
    state, found = run()
    assert state == "failed"
    assert found["watch events"] == "failed"
    assert found["tell events"] == "success"
    assert found["publish"] == "success"
    assert found["all_watched"] == "upstream_failed"
    assert states(warehouse) == {"s1": "sent"}
    assert len(read_calls(spark_calls)) == 2


@pytest.mark.usefixtures("_database", "config")
def test_nothing_is_published_when_nothing_is_new(spark_calls: Path) -> None:
    state, found = run()
    assert (state, found["publish"]) == ("success", "skipped")
    assert len(read_calls(spark_calls)) == 2


def test_the_event_names_every_shard_that_is_still_in_alarm(config: Path) -> None:
    warehouse = config.with_name("warehouse")
    news(warehouse, "s1", "s2")
    later = NOON + timedelta(hours=1)
    news(warehouse, "s2", kind="clear", level="none", notification_id="z", observed_at=later)
    news(warehouse, "o1", stream="orders", level="warn")
    extra = alarm_extra(planned_watches(), {})
    assert [(a["stream"], a["shard_id"], a["level"]) for a in extra["alarms"]] == [
        ("events", "s1", "urgent"),
        ("orders", "o1", "warn"),
    ]
    assert (extra["known"], extra["audits"]) == (["id-o1", "id-s1"], [])
    assert states(warehouse)["s1"] == "pending"  # whether anybody was reached is not asked
    with pytest.raises(AirflowSkipException, match="nothing is new"):
        alarm_extra(planned_watches(), extra)
    over: dict[str, Any] = {"kind": "clear", "level": "none", "observed_at": later}
    news(warehouse, "s1", notification_id="y", **over)
    news(warehouse, "o1", stream="orders", notification_id="x", **over)
    with pytest.raises(AirflowSkipException, match="no shard is"):
        alarm_extra(planned_watches(), extra)


def test_what_differs_behind_a_consumer_is_audited_at_once_when_its_deadline_is_near(
    config: Path,
) -> None:
    warehouse, seen_at = config.with_name("warehouse"), now() - timedelta(minutes=1)
    row = {"stream": "events", "state": "ok", "level": "none", "observed_at": seen_at}
    near = {"audit_level": "warn", "unnamed_since": NOON, "unnamed_until": NOON + timedelta(0, 60)}
    rows = [
        row | near | {"shard_id": "s1"},
        row | near | {"shard_id": "s2", "unnamed_since": NOON - timedelta(hours=1)},
        row | near | {"shard_id": "s3", "audit_level": "notice", "unnamed_until": seen_at},
        row | {"shard_id": "s4", "audit_level": "none"},
    ]
    write_deltalake(str(warehouse / "shards"), arrow(SHARDS, rows))
    news(warehouse, "s1")
    told = {"known": ["id-s1"]}
    extra = alarm_extra(planned_watches(), told)
    asked = {"stream": "events", "from": "2026-11-20T11:00:00+00:00"}
    assert extra == told | {"alarms": [], "audits": [asked | {"to": "2026-11-20T12:01:00+00:00"}]}
    an_hour = timedelta(hours=1)
    ahead = {"unnamed_since": seen_at - an_hour, "unnamed_until": seen_at + 6 * an_hour}  # a clock
    rows = [row | near | ahead | {"shard_id": "s5"}]
    write_deltalake(str(warehouse / "shards"), arrow(SHARDS, rows), mode="overwrite")
    [wanted] = alarm_extra(planned_watches(), told)["audits"]
    assert datetime.fromisoformat(wanted["from"]) == seen_at - an_hour
    assert seen_at <= datetime.fromisoformat(wanted["to"]) <= now()
    tried = {"audit_id": "a", "stream": "events", "status": "failed", "as_of": seen_at}
    over = {"window_start": NOON - timedelta(days=1), "window_end": seen_at, "started_at": seen_at}
    write_deltalake(str(warehouse / "audits"), arrow(AUDITS, [tried | over]))
    with pytest.raises(AirflowSkipException):  # not again within the hour
        alarm_extra(planned_watches(), told)


def test_an_alarm_beside_an_audit_that_runs_is_asked_for_again_behind_another(
    config: Path,
) -> None:
    """A night's, say: no plan has what it names before it is over, and nobody asks then."""
    warehouse, seen_at = config.with_name("warehouse"), now() - timedelta(minutes=1)
    row = {"stream": "events", "shard_id": "s1", "observed_at": seen_at, "state": "ok"}
    row |= {"audit_level": "warn", "unnamed_since": NOON, "unnamed_until": seen_at}
    write_deltalake(str(warehouse / "shards"), arrow(SHARDS, [row]))
    news(warehouse, "s1")
    night = {"audit_id": "a", "stream": "events", "as_of": seen_at, "started_at": seen_at}
    night |= {"window_start": NOON - timedelta(days=1), "window_end": seen_at}

    def asked(status: str) -> list[str]:
        rows = arrow(AUDITS, [night | {"status": status}])
        write_deltalake(str(warehouse / "audits"), rows, mode="overwrite")
        return [form["stream"] for form in alarm_extra(planned_watches(), {})["audits"]]

    assert [asked(status) for status in ("running", "failed")] == [["events"], []]
    asked("running")
    with pytest.raises(AirflowSkipException):  # the alarm is no news: it was asked for
        alarm_extra(planned_watches(), {"known": ["id-s1"]})
