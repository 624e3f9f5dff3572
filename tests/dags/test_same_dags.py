"""The repository's DAGs, as others know them: by ids, times, tasks and forms.

The DAG `backfill_on_alarm` names two of them, links name all, people's runs are under them.
"""

from typing import Any

import pytest
from airflow.sdk import DAG

# id: (when, runs at once, fields of the form, each task and what it waits for)
DAGS: dict[str, tuple[str | None, int, str, dict[str, str]]] = {
    "backfill": (
        None,
        1_000,
        "stream what from to shards include_stuck dry_run as_of",
        {
            "prepare": "",
            "plan": "prepare",
            "propose": "plan",
            "who_approves": "propose",
            "approve": "who_approves",
            "decide": "approve propose who_approves",
            "repair": "decide",
            "verify": "decide repair",
            "gates": "propose verify",
            "all_done": "gates repair verify",
        },
    ),
    "backfill_on_alarm": (
        "shardaudit://alarms",
        1_000,
        "",
        {
            "streams": "",
            "ask": "streams",
            "audits": "",
            "audit": "audits",
            "audited": "",
            "ask_again": "audit audited",
        },
    ),
    "maintenance": ("30 5 * * *", 1, "", {"plan": "", "maintain": "plan"}),
    "nightly_audit": (
        "0 2 * * *",
        1,
        "stream from to as_of",
        {
            "plan": "",
            "audit": "plan",
            "gates": "audit plan",
            "publish": "audit plan",
            "tell": "audit plan",
            "verdict": "gates plan publish tell",
            "all_told": "audit gates publish tell verdict",
        },
    ),
    "retention_watch": (
        "*/15 * * * *",
        1,
        "",
        {
            "plan": "",
            "watch": "plan",
            "tell": "plan watch",
            "publish": "plan watch",
            "all_watched": "tell watch",
        },
    ),
}


def starts(dag: DAG) -> str | None:
    """The cron of a DAG, or the asset that starts it."""
    timetable: Any = dag.timetable  # Any: the base class has neither
    if assets := getattr(timetable, "asset_condition", None):
        return " ".join(asset.uri.rstrip("/") for asset in assets.objects)
    return getattr(timetable, "expression", None)


@pytest.mark.parametrize("name", DAGS)
def test_a_dag_is_what_it_was(dags: dict[str, DAG], name: str) -> None:
    dag = dags[name]
    waits = {task.task_id: " ".join(sorted(task.upstream_task_ids)) for task in dag.tasks}
    assert (starts(dag), dag.max_active_runs, " ".join(dag.params), waits) == DAGS[name]
    assert dag.tags == {"shardaudit"}
    assert dag.doc_md


def test_there_is_no_other(dags: dict[str, DAG]) -> None:
    assert sorted(dags) == sorted(DAGS)
