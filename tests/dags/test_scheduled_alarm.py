"""`backfill_on_alarm` under a real scheduler: what the watch publishes becomes a question."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.dags.fake_spark import install_fake_spark
from tests.dags.news import news
from tests.dags.receivers import Web
from tests.dags.scheduled_backfills import (
    SUBMIT,
    answer,
    asks,
    backfills,
    listening,
    planned,
    runs,
)
from tests.dags.scheduling import call, ended, until
from tests.dags.stored_plans import store
from tools.airflow_processes import LocalAirflow


def watched(airflow: LocalAirflow) -> int:
    """Runs the watch; how many events it and those before it have published."""
    assert ended(airflow, airflow.api().trigger("retention_watch", {})) == "success"
    found: list[Any] = []

    def is_answered() -> bool:
        """Airflow 3.3.2 answers with a 500 while a run that an event starts is queued."""
        with suppress(HTTPError):
            found.append(call(airflow, "assets/events")["asset_events"])
        return bool(found)

    until(is_answered)
    return len(found[0])


@pytest.mark.drill
def test_an_alarm_becomes_a_question_and_the_next_alarms_question_replaces_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Web, "got", [])
    calls = install_fake_spark(tmp_path / "bin", python=sys.executable, name=SUBMIT)
    store(config)  # what the fake does not plan
    monkeypatch.setenv("FAKE_PLAN", "p")
    news(config.with_name("warehouse"), "s1")
    with listening(config, calls.parent) as airflow:
        assert watched(airflow) == 1
        until(lambda: asks(airflow, 0), seconds=240)
        confs = [run["conf"] for run in runs(airflow)]
        assert (confs, backfills(calls)) == ([{"stream": "events"}], [planned(airflow, 0)])

        assert watched(airflow) == 1  # the same alarm: nothing is published
        news(config.with_name("warehouse"), "s2")
        assert watched(airflow) == 2
        until(lambda: asks(airflow, 1), seconds=240)
        assert len(runs(airflow)) == len(runs(airflow, "backfill_on_alarm")) == 2

        answer(airflow, 0)  # before it looked whether it is still asked
        until(lambda: runs(airflow)[0]["state"] == "failed", seconds=240)
        plans = [planned(airflow, 0), planned(airflow, 1)]
        assert (asks(airflow, 1), backfills(calls)) == (True, plans)
        answer(airflow, 1)
        until(lambda: runs(airflow)[1]["state"] == "success", seconds=240)
    _, _, (*replay, approval), verify = backfills(calls)
    assert (replay, verify) == (["replay", "--plan=p"], ["verify", "--plan=p"])
    assert approval.startswith("--approve-as=")
