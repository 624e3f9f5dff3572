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

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TriggerRule, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from shardaudit.adapters.clock import now
from shardaudit.airflow.backfill_steps import (
    PLAN,
    PROVE,
    REPAIR,
    Proposed,
    act_on_answer,
    planning_job,
    propose,
)
from shardaudit.airflow.forms import BACKFILL_FORM
from shardaudit.airflow.gate_check import check_backfill
from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.plan_question import PlanQuestion
from shardaudit.airflow.planned_jobs import PlannedJob
from shardaudit.airflow.task_defaults import OF_TASKS, RUNS_AT_ONCE

_TO_ANSWER = timedelta(hours=24)
_TO_READ = timedelta(days=7)  # below a share of each shard's limits a day takes longer than a day
_PLAN_ID = "{{ ti.xcom_pull(task_ids='propose')['plan_id'] }}"
_BODY = "{{ ti.xcom_pull(task_ids='propose')['markdown'] }}"


def backfill(tasks: Mapping[str, str] | None = None) -> DAG:
    """The DAG of that name: plans, asks, runs.

    Input:
        tasks: default arguments of its tasks.
    """
    with DAG(
        "backfill",
        schedule=None,
        catchup=False,
        max_active_runs=RUNS_AT_ONCE,
        max_active_tasks=1,
        params=BACKFILL_FORM,
        default_args=OF_TASKS | dict(tasks or {}),
        tags=["shardaudit"],
        doc_md=__doc__,
    ) as made:
        _tasks()
    return made


@task(task_id="prepare")
def _prepare() -> PlannedJob:
    """What makes the plan that the form asks for."""
    context = get_current_context()
    return planning_job(context["params"], request_id=context["run_id"])


@task(task_id="propose")
def _propose() -> Proposed:
    """The plan that was made for this run, for a person to read."""
    context = get_current_context()
    asker = context["dag_run"].triggering_user_name
    return propose(context["params"], request_id=context["run_id"], asker=asker, now=now())


@task.branch(task_id="who_approves")
def _who_approves(plan: Proposed) -> str:
    """A person, or the policy."""
    return "approve" if plan["needs_person"] else "decide"


@task(task_id="decide", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
def _decide(plan: Proposed) -> PlannedJob:
    """Acts on the answer."""
    context = get_current_context()
    answer = context["ti"].xcom_pull(task_ids="approve")
    return act_on_answer(context["params"], plan, answer, now=now())


@task(task_id="gates", trigger_rule=TriggerRule.ALL_DONE)
def _gates(plan: Proposed | None) -> None:
    """Is red when a gate is shut."""
    if plan is None:
        raise AirflowSkipException("there was nothing to run")
    check_backfill(plan["plan_id"])


def _tasks() -> None:
    planning: Any = _prepare()  # Any: Airflow gives the tasks the value, not the XComArg that it is
    approve = PlanQuestion(
        task_id="approve",
        subject=f"Run the plan {_PLAN_ID}?",
        body=_BODY,
        answer_within=_TO_ANSWER,
    )
    made = ShardauditJob(task_id="plan", command=PLAN, planned=planning, max_active_tis_per_dag=1)
    plan: Any = _propose()
    branch: Any = _who_approves(plan)
    running: Any = _decide(plan)
    made >> plan
    branch >> [approve, running]
    approve >> running

    repair, verify = (
        ShardauditJob(task_id=command, command=command, planned=running, max_active_tis_per_dag=1)
        for command in (REPAIR, PROVE)
    )
    repair.execution_timeout = _TO_READ
    # The proof is also of a repair that failed: what it left is open again.
    verify.trigger_rule = TriggerRule.ALL_DONE_MIN_ONE_SUCCESS
    judged = _gates(plan)
    repair >> verify >> judged
    # Red when one of them is: the gates go on after a failure.
    [repair, verify, judged] >> EmptyOperator(
        task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED
    )
