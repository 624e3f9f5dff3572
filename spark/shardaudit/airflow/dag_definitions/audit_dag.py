"""The nightly audit: every stream's last days, compared again with what landed.

audit (per stream; ingests first, its log says each stage) → gates (per stream; red when one is
shut), publish (an asset event), tell (per stream: what changed, to Slack, mail, webhook) → verdict
(per stream; red when it is bad). A run is red when one of these is, whatever was published. One
task at a time, one run at a time: one run writes a warehouse.
What runs an audit is the configuration's `engine`: a Spark driver by the Spark connection, or a
process of the task itself.
"""

from collections.abc import Mapping
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, TriggerRule, get_current_context, task

from shardaudit.airflow.audit_verdict import event_extra, judge, keep_report
from shardaudit.airflow.cron import by_clock
from shardaudit.airflow.forms import AUDIT_FORM
from shardaudit.airflow.gate_check import check_audit
from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.planned_jobs import PlannedAudit, planned_run
from shardaudit.airflow.task_defaults import OF_TASKS
from shardaudit.airflow.watch_news import tell_audits

NIGHTLY = "0 2 * * *"
_AUDITS = Asset(name="shardaudit_audits", uri="shardaudit://audits")
_NAME = "{{ task.op_kwargs.planned.stream }}"


def nightly_audit(tasks: Mapping[str, str] | None = None, *, schedule: str = NIGHTLY) -> DAG:
    """The DAG of that name: plans, audits, publishes, judges.

    Input:
        tasks: default arguments of its tasks; schedule: cron, in UTC.

    Raises:
        ConfigError: cron cannot read the schedule.
    """
    with DAG(
        "nightly_audit",
        schedule=by_clock(schedule),
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        params=AUDIT_FORM,
        default_args=OF_TASKS | dict(tasks or {}),
        tags=["shardaudit"],
        doc_md=__doc__,
    ) as made:
        _tasks()
    return made


@task(task_id="gates", map_index_template=_NAME, trigger_rule=TriggerRule.ALL_DONE)
def _gates(planned: PlannedAudit) -> None:
    """Is red when a gate is shut."""
    check_audit(planned["audit_id"])


@task(task_id="tell", map_index_template=_NAME, trigger_rule=TriggerRule.ALL_DONE)
def _tell(planned: PlannedAudit) -> int:
    """Sends what changed."""
    return tell_audits(planned)


@task(task_id="verdict", map_index_template=_NAME, trigger_rule=TriggerRule.ALL_DONE)
def _verdict(planned: PlannedAudit) -> None:
    """Is red when the verdict is bad."""
    keep_report(planned)
    judge(planned)


def _tasks() -> None:
    @task
    def plan() -> list[PlannedAudit]:
        context = get_current_context()
        return planned_run(context["params"], run_after=context["dag_run"].run_after)

    @task(outlets=[_AUDITS], trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def publish(planned: list[PlannedAudit], outlet_events: Any = None) -> None:
        outlet_events[_AUDITS].extra = event_extra(planned)

    audits: Any = plan()  # Any: Airflow gives the tasks the value, not the XComArg that this is
    checked, told = _gates.expand(planned=audits), _tell.expand(planned=audits)
    audited = ShardauditJob.partial(
        task_id="audit",
        command="audit",
        map_index_template="{{ task.planned.stream }}",
        max_active_tis_per_dag=1,  # also over the runs of an Airflow backfill
    ).expand(planned=audits)
    before, judged = [checked, publish(audits), told], _verdict.expand(planned=audits)
    audited >> before >> judged
    # Red when a telling, say, failed, though the verdict is good: nobody would know.
    # Not skipped with a gate that no audit came to: that would be green.
    all_told = EmptyOperator(task_id="all_told", trigger_rule=TriggerRule.NONE_FAILED)
    [audited, *before, judged] >> all_told
