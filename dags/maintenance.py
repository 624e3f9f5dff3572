"""The warehouse's upkeep, each morning after the night's audits; no row changes.

Small files are merged, and those that have not been part of a table for a week are deleted. Without
it an ingest every quarter of an hour leaves ever more files that every audit has to open.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, dag, task

from shardaudit.airflow.launch import OF_TASKS, ShardauditJob
from shardaudit.airflow.planned import PlannedJob, planned_upkeep

MORNING = CronTriggerTimetable("30 5 * * *", timezone="UTC", run_immediately=timedelta(0))


@dag(
    schedule=MORNING,
    catchup=False,
    max_active_runs=1,
    default_args=OF_TASKS,
    tags=["shardaudit"],
    doc_md=__doc__,
)
def maintenance() -> None:
    """Plans, maintains."""

    @task
    def plan() -> PlannedJob:
        return planned_upkeep()

    planned: Any = plan()  # Any: Airflow gives the task the value, not the XComArg that this is
    ShardauditJob(task_id="maintain", command="maintain", planned=planned)


maintenance()
