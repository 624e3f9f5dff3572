"""The nightly audit: every stream's last days, compared again with what landed.

ingest → audit (per stream) → gates (per stream; red when one is shut), publish (an asset event),
tell (per stream: what changed, to Slack, mail, webhook) → verdict (per stream; red when it is bad).
One task at a time, one run at a time: one run writes a warehouse. What runs ingest and audit is the
configuration's `engine`: a Spark driver by the Spark connection, or a process of the task itself.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import (
    Asset,
    CronTriggerTimetable,
    TriggerRule,
    dag,
    get_current_context,
    task,
    task_group,
)

from shardaudit.airflow.audit_verdict import event_extra, judge, keep_report
from shardaudit.airflow.forms import AUDIT_FORM
from shardaudit.airflow.gate_check import check_audit
from shardaudit.airflow.launch import OF_TASKS, ShardauditJob
from shardaudit.airflow.planned import PlannedAudit, planned_run
from shardaudit.airflow.watch_news import tell_audits

AUDITS = Asset(name="shardaudit_audits", uri="shardaudit://audits")
NAME = "{{ task.op_kwargs.planned.stream }}"
# No start date, or switching the DAG on would at once audit as of last night.
TONIGHT = CronTriggerTimetable("0 2 * * *", timezone="UTC", run_immediately=timedelta(0))


@task(map_index_template=NAME, trigger_rule=TriggerRule.ALL_DONE)
def gates(planned: PlannedAudit) -> None:
    """Is red when a gate is shut."""
    check_audit(planned["audit_id"])


@task(task_id="tell", map_index_template=NAME, trigger_rule=TriggerRule.ALL_DONE)
def tell_people(planned: PlannedAudit) -> int:
    """Sends what changed."""
    return tell_audits(planned)


@task(map_index_template=NAME, trigger_rule=TriggerRule.ALL_DONE)
def verdict(planned: PlannedAudit) -> None:
    """Is red when the verdict is bad."""
    keep_report(planned)
    judge(planned)


@dag(
    schedule=TONIGHT,
    catchup=False,
    max_active_runs=1,
    max_active_tasks=1,
    params=AUDIT_FORM,
    default_args=OF_TASKS,
    tags=["shardaudit"],
    doc_md=__doc__,
)
def nightly_audit() -> None:
    """Plans, ingests, audits, publishes, judges."""

    @task
    def plan() -> list[PlannedAudit]:
        context = get_current_context()
        return planned_run(context["params"], run_after=context["dag_run"].run_after)

    @task_group
    def stream(planned: PlannedAudit) -> None:
        jobs = [
            ShardauditJob(
                task_id=command,
                command=command,
                planned=planned,
                map_index_template="{{ task.planned.stream }}",
                max_active_tis_per_dag=1,  # also over the runs of an Airflow backfill
            )
            for command in ("ingest", "audit")
        ]
        jobs[0] >> jobs[1]

    @task(outlets=[AUDITS], trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def publish(planned: list[PlannedAudit], outlet_events: Any = None) -> None:
        outlet_events[AUDITS].extra = event_extra(planned)

    audits: Any = plan()  # Any: Airflow gives the tasks the value, not the XComArg that this is
    checked, told = gates.expand(planned=audits), tell_people.expand(planned=audits)
    audited = stream.expand(planned=audits)
    audited >> [checked, publish(audits), told] >> verdict.expand(planned=audits)


nightly_audit()
