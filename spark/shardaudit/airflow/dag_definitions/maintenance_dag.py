"""The warehouse's upkeep, each morning after the night's audits.

Rows go that are older than `keep.history` and that nothing reads any more. Small files are merged,
and those that have not been part of a table for a week are deleted. Without it an ingest every
quarter of an hour leaves ever more files that every audit has to open.
"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, task

from shardaudit.airflow.cron import by_clock
from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.planned_jobs import PlannedJob, planned_upkeep
from shardaudit.airflow.task_defaults import OF_TASKS


def maintenance(tasks: Mapping[str, str] | None = None) -> DAG:
    """The DAG of that name: plans, maintains.

    Input:
        tasks: default arguments of its tasks.
    """
    with DAG(
        "maintenance",
        schedule=by_clock("30 5 * * *"),
        catchup=False,
        max_active_runs=1,
        default_args=OF_TASKS | dict(tasks or {}),
        tags=["shardaudit"],
        doc_md=__doc__,
    ) as made:
        _tasks()
    return made


def _tasks() -> None:
    @task
    def plan() -> PlannedJob:
        return planned_upkeep()

    planned: Any = plan()  # Any: Airflow gives the task the value, not the XComArg that this is
    ShardauditJob(task_id="maintain", command="maintain", planned=planned)
