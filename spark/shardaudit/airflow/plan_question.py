"""The question whether a plan may run: it stands until who may has answered, or it is replaced.

Airflow has no way to take a question of another run back. So each looks itself, every ten minutes,
whether a newer one replaced it; an answer that comes meanwhile is not lost.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import TaskAwaitingInput

from shardaudit.adapters.clock import now
from shardaudit.airflow.backfill_steps import APPROVE, REJECT, Proposed, is_replaced

LOOK = timedelta(minutes=10)
# Airflow 3.3.2 fails a task that is answered in the seconds in which it begins to wait: then it is
# asked anew. No answer and no rejection fails it.
_TRIES_AGAIN = 2


class PlanQuestion(HITLOperator):
    """Asks for the plan of the task `propose`; no answer within `answer_within` is a rejection."""

    def __init__(self, *, answer_within: timedelta, **kwargs: Any) -> None:
        super().__init__(
            options=[APPROVE, REJECT],
            response_timeout=LOOK,
            retries=_TRIES_AGAIN,
            retry_delay=timedelta(seconds=10),
            execution_timeout=None,
            **kwargs,
        )
        self.answer_within = answer_within

    def execute(self, context: Context) -> None:
        """Puts the question and waits."""
        self._ask(context, until=now() + self.answer_within)

    def execute_complete(self, context: Context, event: dict[str, Any], *, until: str = "") -> Any:
        """The answer, or another wait; Airflow calls it after a person, or a `LOOK`, has passed.

        Output:
            as of HITLOperator: `chosen_options`, `responded_by_user` and others.
        """
        plan, ends = _plan(context), datetime.fromisoformat(until)
        if event.get("error_type") == "timeout":
            if now() < ends and not is_replaced(plan["request_id"]):
                raise _waiting(ends)
            return {"chosen_options": [REJECT], "params_input": {}, "responded_by_user": None}
        answer = super().execute_complete(context, event)
        if _is_own_approval(answer, plan):
            self.log.warning("%s asked for the plan: another person must approve", plan["not_by"])
            self._ask(context, until=ends)
        return answer

    def _ask(self, context: Context, *, until: datetime) -> None:
        approvers = _plan(context)["approvers"]
        self.assigned_users = [{"id": one, "name": one} for one in approvers]
        try:
            super().execute(context)
        except TaskAwaitingInput:
            raise _waiting(until) from None


def _plan(context: Context) -> Proposed:
    found: Proposed = context["ti"].xcom_pull(task_ids="propose")
    return found


def _waiting(until: datetime) -> TaskAwaitingInput:
    left = max(min(LOOK, until - now()), timedelta(seconds=1))
    kwargs = {"until": until.isoformat()}
    return TaskAwaitingInput(method_name="execute_complete", kwargs=kwargs, timeout=left)


def _is_own_approval(answer: Mapping[str, Any], plan: Proposed) -> bool:
    user = answer["responded_by_user"]
    approved = answer["chosen_options"] == [APPROVE]
    return bool(approved and plan["not_by"] and user and user["name"] == plan["not_by"])
