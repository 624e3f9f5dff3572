"""The backfill: puts right what was lost or doubled, once a person has seen the plan and let it.

plan → propose (what it costs, until when) → approve (a person, unless policy does) → decide → run
(replay, merge, verify; of duplicates: remove, verify) → gates. It is started by hand, with the form
behind "Trigger". A rejection, or no answer within a day, cancels the plan: nothing is done.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import TriggerRule, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from audit_plan import PlannedJob
from backfill_form import FORM
from backfill_steps import (
    APPROVE,
    PLAN,
    REJECT,
    RUN,
    Proposed,
    planning_job,
    proposed,
    running_job,
)
from gate_check import check_backfill
from launch import RETRIES, ShardauditJob
from shardaudit.adapters.clock import now

TO_ANSWER = timedelta(hours=24)
PLAN_ID = "{{ ti.xcom_pull(task_ids='propose')['plan_id'] }}"
BODY = "{{ ti.xcom_pull(task_ids='propose')['markdown'] }}"


@dag(
    schedule=None,
    catchup=False,
    max_active_runs=1,
    max_active_tasks=1,
    params=FORM,
    default_args=RETRIES,
    tags=["shardaudit"],
    doc_md=__doc__,
)
def backfill() -> None:
    """Plans, asks, runs."""

    @task
    def prepare() -> PlannedJob:
        return planning_job(get_current_context()["params"])

    @task
    def propose() -> Proposed:
        context = get_current_context()
        run = context["dag_run"]
        since = run.start_date or run.run_after  # what was planned earlier is not this run's
        return proposed(context["params"], since=since, now=now())

    @task.branch
    def who_approves(plan: Proposed) -> str:
        return "approve" if plan["needs_person"] else "decide"

    @task(trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
    def decide(plan: Proposed) -> PlannedJob:
        context = get_current_context()
        answer = context["ti"].xcom_pull(task_ids="approve")
        return running_job(context["params"], plan, answer, now=now())

    @task(trigger_rule=TriggerRule.ALL_DONE)
    def gates(plan: Proposed | None) -> None:
        if plan is None:
            raise AirflowSkipException("there was nothing to run")
        check_backfill(plan["plan_id"])

    planning: Any = prepare()  # Any: Airflow gives the tasks the value, not the XComArg that it is
    approve = _approval()
    made = ShardauditJob(task_id="plan", command=PLAN, planned=planning)
    plan: Any = propose()
    branch: Any = who_approves(plan)
    running: Any = decide(plan)
    made >> plan
    branch >> [approve, running]
    approve >> running
    ShardauditJob(task_id="run", command=RUN, planned=running) >> gates(plan)


def _approval() -> HITLOperator:
    """The question. Never tried again by itself: each try would ask the person anew."""
    return HITLOperator(
        task_id="approve",
        subject=f"Run the plan {PLAN_ID}?",
        body=BODY,
        options=[APPROVE, REJECT],
        defaults=REJECT,
        response_timeout=TO_ANSWER,
        retries=0,
    )


backfill()
