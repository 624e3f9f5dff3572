"""Whole runs of the DAG, in this process, with a spark-submit that starts no Spark."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shardaudit.airflow.planned_jobs import plan_audits
from tests.dags.fake_spark import read_calls
from tests.dags.news import news
from tests.dags.runs import FORM, run
from tests.dags.warehouses import audit, cell, gate, missing, write_result

pytestmark = pytest.mark.usefixtures("_airflow_warns")


@pytest.mark.usefixtures("_database")
def test_each_stream_has_its_own_verdict(config: Path, spark_calls: Path) -> None:
    events, orders = plan_audits(config, FORM, run_after=datetime(2026, 11, 3, tzinfo=UTC))
    lost, fine = events["audit_id"], orders["audit_id"]
    write_result(
        config.with_name("warehouse"),
        audits=[audit(lost, verdict="loss", missing=1), audit(fine, stream="orders")],
        cells=[cell(lost, "shard-1", verdict="loss", missing=1), cell(fine, "shard-1")],
        findings=[missing(lost, "a", shard_id="shard-1")],
        gates=[gate(lost), gate(fine)],
    )
    state, states = run(FORM)
    assert states == {
        "plan": "success",
        "audit events": "success",
        "audit orders": "success",
        "gates events": "success",
        "gates orders": "success",
        "publish": "success",
        "tell events": "success",
        "tell orders": "success",
        "verdict events": "failed",
        "verdict orders": "success",
        "all_told": "upstream_failed",
    }
    assert state == "failed"
    # Which stream comes first is Airflow's choice.
    audited = sorted(
        word for call in read_calls(spark_calls) for word in call if "--stream" in word
    )
    assert audited == ["--stream=events", "--stream=orders"]


@pytest.mark.usefixtures("_database")
def test_a_stream_that_fails_does_not_keep_the_others_from_their_audit(
    config: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": 1}))
    _, orders = plan_audits(config, FORM, run_after=datetime(2026, 11, 3, tzinfo=UTC))
    write_result(
        config.with_name("warehouse"),
        audits=[audit(orders["audit_id"], stream="orders")],
        gates=[gate(orders["audit_id"])],
    )
    state, states = run(FORM)
    assert {name: state for name, state in states.items() if state != "success"} == {
        "audit events": "failed",
        "gates events": "skipped",
        "verdict events": "failed",
        "all_told": "upstream_failed",
    }
    assert state == "failed"
    assert len(read_calls(spark_calls)) == 2


@pytest.mark.usefixtures("_database")
def test_a_shut_gate_is_red_and_the_other_stream_is_published(
    config: Path, spark_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EXIT", json.dumps({"audit events": 1}))
    events, orders = plan_audits(config, FORM, run_after=datetime(2026, 11, 3, tzinfo=UTC))
    shut, fine = events["audit_id"], orders["audit_id"]
    write_result(
        config.with_name("warehouse"),
        audits=[audit(shut, status="rejected"), audit(fine, stream="orders")],
        gates=[gate(shut, state="failed"), gate(fine)],
    )
    _, states = run(FORM)
    assert {name: state for name, state in states.items() if state != "success"} == {
        "audit events": "failed",
        "gates events": "failed",
        "verdict events": "failed",
        "all_told": "upstream_failed",
    }
    assert len(read_calls(spark_calls)) == 2


@pytest.mark.usefixtures("_database", "config")
def test_nothing_runs_when_the_first_task_refuses(spark_calls: Path) -> None:
    state, states = run({"strem": "events"})
    assert states.pop("plan") == "failed"
    assert set(states.values()) == {"upstream_failed"}
    assert state == "failed"
    assert not spark_calls.exists()


@pytest.mark.usefixtures("_database", "spark_calls")
def test_news_that_reached_nobody_makes_the_run_red_and_the_audits_stay_published(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.slack.hooks.slack_webhook", None)
    config.write_text(f'{config.read_text()}\n[notify]\nslack = "oncall"\n')
    events, orders = plan_audits(config, FORM, run_after=datetime(2026, 11, 3, tzinfo=UTC))
    fine = events["audit_id"], orders["audit_id"]
    warehouse = config.with_name("warehouse")
    audits = [audit(fine[0]), audit(fine[1], stream="orders")]
    write_result(warehouse, audits=audits, gates=[gate(one) for one in fine])
    news(warehouse, "night", shard_id=None, kind="audit")
    state, states = run(FORM)
    assert {name: state for name, state in states.items() if state != "success"} == {
        "tell events": "failed",
        "all_told": "upstream_failed",
    }
    assert state == "failed"
