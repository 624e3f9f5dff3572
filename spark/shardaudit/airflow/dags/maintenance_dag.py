"""The warehouse's upkeep, each morning after the night's audits; no row changes.

Small files are merged, and those that have not been part of a table for a week are deleted. Without
it an ingest every quarter of an hour leaves ever more files that every audit has to open.
"""

from typing import Any, Unpack

from airflow.sdk import DAG, task

from shardaudit.airflow.dag_arguments import Scheduled, scheduled
from shardaudit.airflow.launch import OF_TASKS, ShardauditJob
from shardaudit.airflow.planned import PlannedJob, planned_upkeep


def maintenance(**given: Unpack[Scheduled]) -> DAG:
    """The DAG of that name: plans, maintains.

    Raises:
        ConfigError: a wrong argument.
    """
    when, where = scheduled("maintenance", given, every="30 5 * * *")
    with DAG(
        "maintenance",
        schedule=when,
        catchup=False,
        max_active_runs=1,
        default_args=OF_TASKS | where,
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
