"""A shard is warn or worse: the backfill is planned at once, and a person asked, not only at night.

Where messages are missing behind a consumer, or more landed than was sent, an audit names them
first: the DAG `nightly_audit` over that time alone. Then the DAG `backfill` is started once for
each stream that the watch's event has in alarm. A stuck tail is in its plan as soon as it must be
read within hours; nothing is read before somebody approved it there.
The next alarm asks anew, and its question replaces the one before it: its plan holds what that one
holds, as long as nobody has answered. What a person asked for by times, shards or with the stuck
tail stays asked beside it. A message in two approved plans lands once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, TriggerRule, task

from shardaudit.airflow.backfill_steps import audits_of_alarms, forms_of_alarms
from shardaudit.airflow.dag_definitions.watch_dag import ALARMS

_POLL_S = 30
_TO_NAME = timedelta(hours=1)  # no longer: the next alarm must not wait for an audit that hangs


def backfill_on_alarm(tasks: Mapping[str, str] | None = None) -> DAG:
    """The DAG of that name: asks for a plan of each stream in danger.

    Input:
        tasks: default arguments of its tasks.
    """
    with DAG(
        "backfill_on_alarm",
        schedule=[ALARMS],
        catchup=False,
        max_active_runs=1,
        default_args=dict(tasks or {}),
        dagrun_timeout=_TO_NAME,  # the server knows no time limit of a task that is deferred
        tags=["shardaudit"],
        doc_md=__doc__,
    ) as made:
        _tasks()
    return made


def _tasks() -> None:
    @task
    def audits(triggering_asset_events: Any = None) -> list[dict[str, str]]:
        return audits_of_alarms(event.extra for event in triggering_asset_events[ALARMS])

    @task
    def streams(triggering_asset_events: Any = None) -> list[dict[str, str]]:
        return forms_of_alarms(event.extra for event in triggering_asset_events[ALARMS])

    wanted: Any = audits()  # Any: Airflow gives the operator the value, not the XComArg that it is
    audited = TriggerDagRunOperator.partial(
        task_id="audit",
        trigger_dag_id="nightly_audit",
        map_index_template="{{ task.conf.stream }}",
        wait_for_completion=True,
        deferrable=True,
        # Not in a pool that counts who waits: it would keep out the audit that it waits for.
        pool="default_pool",
        poke_interval=_POLL_S,
        fail_when_dag_is_paused=True,  # then it is asked without
        # Its last task is red when something is missing: that is why it was asked for.
        allowed_states=["success", "failed"],
        failed_states=[],
    ).expand(conf=wanted)
    forms: Any = streams()  # Any: as above
    asked = TriggerDagRunOperator.partial(
        task_id="ask",
        trigger_dag_id="backfill",
        map_index_template="{{ task.conf.stream }}",
        trigger_rule=TriggerRule.ALL_DONE,  # also when the audit was not needed, or came to no end
    ).expand(conf=forms)
    audited >> asked
