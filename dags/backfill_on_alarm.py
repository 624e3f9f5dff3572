"""A shard is warn or worse: the backfill is planned at once, and a person asked, not only at night.

Starts the DAG `backfill` once for each stream that the watch's event names. A stuck tail is in its
plan as soon as it must be read within hours; nothing is read before somebody approved it there.
The next alarm asks anew: its plan holds what the one before it holds, if that is still unanswered,
and a message in two approved plans lands once.
"""

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Asset, dag, task

from backfill_steps import forms_of_alarms

# As in retention_watch.py: an asset is known by its name and address.
ALARMS = Asset(name="shardaudit_alarms", uri="shardaudit://alarms")


@dag(
    schedule=[ALARMS],
    catchup=False,
    max_active_runs=1,
    tags=["shardaudit"],
    doc_md=__doc__,
)
def backfill_on_alarm() -> None:
    """Asks for a plan of each stream in danger."""

    @task
    def streams(triggering_asset_events: Any = None) -> list[dict[str, str]]:
        return forms_of_alarms(event.extra for event in triggering_asset_events[ALARMS])

    forms: Any = streams()  # Any: Airflow gives the operator the value, not the XComArg that it is
    TriggerDagRunOperator.partial(
        task_id="ask", trigger_dag_id="backfill", map_index_template="{{ task.conf.stream }}"
    ).expand(conf=forms)


backfill_on_alarm()
