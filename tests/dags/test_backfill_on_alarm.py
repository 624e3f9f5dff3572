from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset

from shardaudit.airflow.backfill_steps import audits_of_alarms, forms_of_alarms, forms_to_ask_again
from shardaudit.airflow.dag_definitions.watch_dag import ALARMS
from shardaudit.airflow.planned_jobs import plan_audits


def test_watchs_own_event_starts_it(dags: dict[str, DAG]) -> None:
    dag: Any = dags["backfill_on_alarm"]  # Any: of the kinds that it may be, it is these
    assert [str(asset.uri) for asset in dag.timetable.asset_condition.objects] == [ALARMS.uri]
    assert isinstance(ALARMS, Asset)
    ask, again = dag.get_task("ask"), dag.get_task("ask_again")
    assert (
        ask.partial_kwargs["trigger_dag_id"] == "backfill" == again.partial_kwargs["trigger_dag_id"]
    )
    assert ask.partial_kwargs["fail_when_dag_is_paused"] is True
    assert ask.upstream_task_ids == {"streams"}  # an audit of hours keeps nobody from being asked
    assert again.upstream_task_ids == {"audited", "audit"}
    audit = dag.get_task("audit")
    assert audit.partial_kwargs["trigger_dag_id"] == "nightly_audit"
    assert audit.partial_kwargs["allowed_states"] == ["success", "failed"]  # red: it found some


def test_each_stream_is_asked_for_once_however_many_shards_it_has() -> None:
    extras = [
        {"alarms": [{"stream": "b", "shard_id": "1"}, {"stream": "a", "shard_id": "1"}]},
        {"alarms": [{"stream": "b", "shard_id": "2"}]},
    ]
    assert forms_of_alarms(extras) == [{"stream": "a"}, {"stream": "b"}]


def test_what_is_to_be_named_is_audited_once_a_stream_over_the_time_that_was_asked_last() -> None:
    first = {"stream": "b", "from": "2026-11-20T02:00:00+00:00", "to": "2026-11-20T03:00:00+00:00"}
    last = first | {"to": "2026-11-20T04:00:00+00:00"}
    extras: list[dict[str, Any]] = [
        {"alarms": [], "audits": [first]},
        {"alarms": [], "audits": [last]},
        {"alarms": []},
    ]
    assert audits_of_alarms(extras) == [last]
    assert forms_of_alarms(extras) == []


def test_after_an_audit_the_streams_that_it_looked_at_are_asked_for_again() -> None:
    audit = {"stream": "b", "from": "2026-11-20T02:00:00+00:00", "to": "2026-11-20T03:00:00+00:00"}
    told = {"alarms": [{"stream": "a"}, {"stream": "b"}], "audits": [audit]}
    more = {"alarms": [], "audits": [audit | {"stream": "c"}]}
    assert forms_of_alarms([told]) == [{"stream": "a"}, {"stream": "b", "asked_again": True}]
    assert forms_to_ask_again([told]) == [{"stream": "b"}]
    assert forms_to_ask_again([told, more]) == [{"stream": "b"}, {"stream": "c"}]


def test_the_form_of_an_audit_is_one_that_the_audit_takes(config: Path) -> None:
    form = {"stream": "events", "from": "2026-11-20T02:00:00+00:00", "to": "2026-11-20T03:00:00Z"}
    (asked,) = audits_of_alarms([{"audits": [form | {"level": "warn"}]}])
    (audit,) = plan_audits(config, asked, run_after=datetime(2026, 11, 20, 5, tzinfo=UTC))
    assert "--from=2026-11-20T02:00:00+00:00" in audit["arguments"]["audit"]
