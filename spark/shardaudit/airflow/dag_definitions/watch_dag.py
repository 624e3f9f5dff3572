"""The retention watch: every quarter of an hour, which shards stand still, and by when to act.

watch (per stream) → tell (per stream: Slack, mail, webhook), and publish (an asset event when a
shard became warn or worse), which waits for no receiver. One run at a time, and none is made up
for: a late watch is worth nothing. A run that is not done in time, or failed, is an alarm itself:
the deadline's callback tells it.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, TriggerRule, task
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from shardaudit.airflow.cron import by_clock
from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.planned_jobs import PlannedJob, planned_watches
from shardaudit.airflow.task_defaults import OF_WATCHES
from shardaudit.airflow.watch_news import alarm_extra, tell

ALARMS = Asset(name="shardaudit_alarms", uri="shardaudit://alarms")
_NAME = "{{ task.op_kwargs.planned.stream }}"
_IN_TIME = timedelta(minutes=14)  # before the next run is due


def retention_watch(tasks: Mapping[str, str] | None = None) -> DAG:
    """The DAG of that name: plans, watches, tells, publishes.

    Input:
        tasks: default arguments of its tasks.
    """
    with DAG(
        "retention_watch",
        schedule=by_clock("*/15 * * * *"),
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        # In the triggerer: Airflow 3.3 lets no callback of an executor read connections (#66141).
        deadline=DeadlineAlert(
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=_IN_TIME,
            callback=AsyncCallback("shardaudit.airflow.watch_news.tell_late"),
        ),
        default_args=OF_WATCHES | dict(tasks or {}),
        tags=["shardaudit"],
        doc_md=__doc__,
    ) as made:
        _tasks()
    return made


def _tasks() -> None:
    @task
    def plan() -> list[PlannedJob]:
        return planned_watches()

    @task(task_id="tell", map_index_template=_NAME, trigger_rule=TriggerRule.ALL_DONE)
    def tell_people(planned: PlannedJob) -> int:
        return tell(planned)

    @task(inlets=[ALARMS], outlets=[ALARMS], trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def publish(
        planned: list[PlannedJob], inlet_events: Any = None, outlet_events: Any = None
    ) -> None:
        newest = inlet_events[ALARMS].ascending(False).limit(1)
        last = newest[0].extra if newest else {}
        outlet_events[ALARMS].extra = alarm_extra(planned, last)

    jobs: Any = plan()  # Any: Airflow gives the tasks the value, not the XComArg that this is
    watched = ShardauditJob.partial(
        task_id="watch",
        command="watch",
        map_index_template="{{ task.planned.stream }}",
        max_active_tis_per_dag=1,
    ).expand(planned=jobs)
    told = tell_people.expand(planned=jobs)
    watched >> [told, publish(jobs)]
    # Red when a watch or its telling failed: the tasks above go on after failures.
    [watched, told] >> EmptyOperator(task_id="all_watched")
