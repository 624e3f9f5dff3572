"""No task hangs for ever, and none is ended while it is only slow."""

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from shardaudit.store.lock_files import A_WATCH, AN_AUDIT

OURS = ("backfill", "maintenance", "nightly_audit", "retention_watch")
# A person has a day, by the operator's own limit.
WAITS = {("backfill", "approve")}


@pytest.mark.parametrize("name", OURS)
def test_every_task_has_a_time_limit(dags: dict[str, DAG], name: str) -> None:
    tasks: list[Any] = dags[name].tasks  # Any: mapped ones have a class of their own
    for task in tasks:
        limit = task.execution_timeout
        if (name, task.task_id) in WAITS:
            assert limit is None
            assert task.answer_within == timedelta(hours=24)
            assert timedelta(0) < task.response_timeout <= task.answer_within  # it looks, and waits
        else:
            # First whoever has the warehouse is waited for.
            least = A_WATCH if name == "retention_watch" else AN_AUDIT
            assert 10 * least < limit <= timedelta(days=7), task.task_id


def test_reading_again_may_take_days(dags: dict[str, DAG]) -> None:
    assert dags["backfill"].get_task("repair").execution_timeout == timedelta(days=7)
