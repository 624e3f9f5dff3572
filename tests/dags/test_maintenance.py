from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from shardaudit.airflow.planned_jobs import PlanRefusedError, planned_upkeep
from tests.dags.fake_spark import read_calls


def test_it_runs_each_morning_and_makes_up_for_nothing(dags: dict[str, DAG]) -> None:
    dag = dags["maintenance"]
    timetable: Any = dag.timetable  # Any: the base class has no cron
    assert (timetable.expression, str(timetable.timezone)) == ("30 5 * * *", "UTC")
    assert (dag.catchup, dag.max_active_runs) == (False, 1)


@pytest.mark.usefixtures("_airflow_warns", "_database")
def test_the_whole_warehouse_is_maintained_by_one_job(
    dags: dict[str, DAG], config: Path, spark_calls: Path
) -> None:
    run = dags["maintenance"].test()
    assert str(run.state) == "success"
    [call] = read_calls(spark_calls)
    assert call[-3:] == ["--config", str(config), "maintain"]


def test_the_plan_refuses_what_cannot_be_used(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("nonsense")
    with pytest.raises(PlanRefusedError, match="TOML"):
        planned_upkeep()
    monkeypatch.delenv("SHARDAUDIT_CONFIG")
    with pytest.raises(PlanRefusedError, match="SHARDAUDIT_CONFIG is not set"):
        planned_upkeep()
