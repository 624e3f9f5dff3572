"""A shard is warn or worse: the backfill is planned at once, and a person asked, not only at night.

The DAG `backfill` is started at once for each stream that the watch's event has in alarm. A stuck
tail is in its plan as soon as it must be read within hours; nothing is read before somebody
approved it there. Where messages are missing behind a consumer, or more landed than was sent, an
audit names them: the DAG `nightly_audit` over that time alone, and `backfill` once more after it;
so it does with what waits before a stopped consumer since the last audit. A plan that has nothing
of what is in alarm says so, and its run of `backfill` is red.
The next alarm asks anew, and its question replaces the one before it: its plan holds what that one
holds, as long as nobody has answered. What a person asked for by times, shards or with the stuck
tail stays asked beside it. A message in two approved plans lands once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, TriggerRule, task

from shardaudit.airflow.backfill_steps import audits_of_alarms, forms_of_alarms, forms_to_ask_again
from shardaudit.airflow.dag_definitions.watch_dag import ALARMS
from shardaudit.airflow.task_defaults import OF_TASKS, RUNS_AT_ONCE

_POLL_S = 30
_TO_NAME = timedelta(hours=12)  # what an audit may take
# Of each hour one run audits; the others find that run there, and are skipped.
_ONCE_AN_HOUR = "alarm__{{ task.conf.stream }}__{{ dag_run.run_after.strftime('%Y-%m-%dT%H') }}"


def backfill_on_alarm(tasks: Mapping[str, str] | None = None) -> DAG:
    """The DAG of that name: asks for a plan of each stream in danger.

    Input:
        tasks: default arguments of its tasks.
    """
    with DAG(
        "backfill_on_alarm",
        schedule=[ALARMS],
        catchup=False,
        max_active_runs=RUNS_AT_ONCE,  # the next alarm must not wait for the audit of this one
        default_args=OF_TASKS | dict(tasks or {}),
        # Airflow has no time limit of a task that is deferred; this one SKIPS what still waits.
        dagrun_timeout=_TO_NAME,
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
    def streams(triggering_asset_events: Any = None) -> list[dict[str, str | bool]]:
        return forms_of_alarms([event.extra for event in triggering_asset_events[ALARMS]])

    @task
    def audited(triggering_asset_events: Any = None) -> list[dict[str, str]]:
        return forms_to_ask_again([event.extra for event in triggering_asset_events[ALARMS]])

    forms: Any = streams()  # Any: as below
    _ask("ask").expand(conf=forms)
    wanted: Any = audits()  # Any: Airflow gives the operator the value, not the XComArg that it is
    named = TriggerDagRunOperator.partial(
        task_id="audit",
        trigger_dag_id="nightly_audit",
        map_index_template="{{ task.conf.stream }}",
        trigger_run_id=_ONCE_AN_HOUR,
        skip_when_already_exists=True,
        wait_for_completion=True,
        deferrable=True,
        # Not in a pool that counts who waits: it would keep out the audit that it waits for.
        pool="default_pool",
        poke_interval=_POLL_S,
        fail_when_dag_is_paused=True,
        # Its `verdict` is red when something is missing: that is why it was asked for.
        allowed_states=["success", "failed"],
        failed_states=[],
    ).expand(conf=wanted)
    again: Any = audited()  # Any: as above
    # Not skipped with an audit: of two streams one may have been skipped, as another run has it.
    named >> _ask("ask_again", trigger_rule=TriggerRule.NONE_FAILED).expand(conf=again)


def _ask(task_id: str, **more: Any) -> Any:  # Any: an operator yet to be mapped, and its arguments
    return TriggerDagRunOperator.partial(
        task_id=task_id,
        trigger_dag_id="backfill",
        map_index_template="{{ task.conf.stream }}",
        fail_when_dag_is_paused=True,  # or it would be asked once somebody switches that DAG on
        **more,
    )
