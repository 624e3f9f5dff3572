"""The backfill: puts right what was lost or doubled, once a person has seen the plan and let it.

plan → propose (what it costs, until when) → approve (a person, unless policy does) → decide →
repair (reads and merges the windows, the most urgent first; or removes what is doubled) → verify →
gates.
It is started by hand, with the form behind "Trigger". A rejection, or no answer within a day,
cancels the plan: nothing is done. Questions wait side by side, but of those for the same part of a
stream (the same form: all that is open, or the same times, shards and stuck tail) the newest alone:
it replaces the one before it, which goes within ten minutes. Of the tasks that run a command one of
a kind runs at a time, over all runs. What writes into the sink (`repair`) always goes to Apache
Spark; `plan` and `verify` run on the configuration's engine.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TriggerRule, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from shardaudit.adapters.clock import now
from shardaudit.airflow.backfill_steps import (
    PLAN,
    REPAIR,
    VERIFY,
    Proposed,
    planning_job,
    proposed,
    running_job,
)
from shardaudit.airflow.forms import BACKFILL_FORM
from shardaudit.airflow.gate_check import check_backfill
from shardaudit.airflow.launch import OF_TASKS, ShardauditJob
from shardaudit.airflow.plan_question import PlanQuestion
from shardaudit.airflow.planned import PlannedJob

TO_ANSWER = timedelta(hours=24)
TO_READ = timedelta(days=7)  # below a share of each shard's limits a day takes longer than a day
RUNS = 16  # at once: most wait for a person, and no stream is to wait for another's answer
PLAN_ID = "{{ ti.xcom_pull(task_ids='propose')['plan_id'] }}"
BODY = "{{ ti.xcom_pull(task_ids='propose')['markdown'] }}"


@task
def prepare() -> PlannedJob:
    """What makes the plan that the form asks for."""
    context = get_current_context()
    return planning_job(context["params"], request_id=context["run_id"])


@task
def propose() -> Proposed:
    """The plan that was made for this run, for a person to read."""
    context = get_current_context()
    asker = context["dag_run"].triggering_user_name
    return proposed(context["params"], request_id=context["run_id"], asker=asker, now=now())


@task.branch
def who_approves(plan: Proposed) -> str:
    """A person, or the policy."""
    return "approve" if plan["needs_person"] else "decide"


@task(trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
def decide(plan: Proposed) -> PlannedJob:
    """Acts on the answer."""
    context = get_current_context()
    answer = context["ti"].xcom_pull(task_ids="approve")
    return running_job(context["params"], plan, answer, now=now())


@task(trigger_rule=TriggerRule.ALL_DONE)
def gates(plan: Proposed | None) -> None:
    """Is red when a gate is shut."""
    if plan is None:
        raise AirflowSkipException("there was nothing to run")
    check_backfill(plan["plan_id"])


@dag(
    schedule=None,
    catchup=False,
    max_active_runs=RUNS,
    max_active_tasks=1,
    params=BACKFILL_FORM,
    default_args=OF_TASKS,
    tags=["shardaudit"],
    doc_md=__doc__,
)
def backfill() -> None:
    """Plans, asks, runs."""
    planning: Any = prepare()  # Any: Airflow gives the tasks the value, not the XComArg that it is
    approve = PlanQuestion(
        task_id="approve",
        subject=f"Run the plan {PLAN_ID}?",
        body=BODY,
        answer_within=TO_ANSWER,
    )
    made = ShardauditJob(task_id="plan", command=PLAN, planned=planning, max_active_tis_per_dag=1)
    plan: Any = propose()
    branch: Any = who_approves(plan)
    running: Any = decide(plan)
    made >> plan
    branch >> [approve, running]
    approve >> running

    repair, verify = (
        ShardauditJob(task_id=command, command=command, planned=running, max_active_tis_per_dag=1)
        for command in (REPAIR, VERIFY)
    )
    repair.execution_timeout = TO_READ
    # The proof is also of a repair that failed: what it left is open again.
    verify.trigger_rule = TriggerRule.ALL_DONE_MIN_ONE_SUCCESS
    judged = gates(plan)
    repair >> verify >> judged
    # Red when one of them is: the gates go on after a failure.
    [repair, verify, judged] >> EmptyOperator(
        task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED
    )


backfill()
