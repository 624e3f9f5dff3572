from typing import Any

import pytest
from airflow.sdk import DAG, Asset
from airflow.sdk.exceptions import AirflowSkipException

from backfill_steps import forms_of_alarms
from retention_watch import ALARMS


def test_watchs_own_event_starts_it(dags: dict[str, DAG]) -> None:
    dag: Any = dags["backfill_on_alarm"]  # Any: of the kinds that it may be, it is these
    assert [str(asset.uri) for asset in dag.timetable.asset_condition.objects] == [ALARMS.uri]
    assert isinstance(ALARMS, Asset)
    ask = dag.get_task("ask")
    assert ask.partial_kwargs["trigger_dag_id"] == "backfill"
    assert ask.upstream_task_ids == {"streams"}


def test_each_stream_is_asked_for_once_however_many_shards_it_has() -> None:
    extras = [
        {"alarms": [{"stream": "b", "shard_id": "1"}, {"stream": "a", "shard_id": "1"}]},
        {"alarms": [{"stream": "b", "shard_id": "2"}]},
    ]
    assert forms_of_alarms(extras) == [{"stream": "a"}, {"stream": "b"}]


def test_nothing_is_asked_for_when_no_event_names_a_stream() -> None:
    with pytest.raises(AirflowSkipException):
        forms_of_alarms([{"alarms": []}])
