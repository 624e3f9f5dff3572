"""What Airflow's own processes do in a warehouse: `python -m tests.aws.airflow_steps WHO AUDIT`.

WHO is `worker` (the steps between the commands) or `page` (the api-server). A process of its own:
to import Airflow needs a home that is set before.
"""

import os
import sys
import tempfile
from contextlib import suppress

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="shardaudit-airflow-")

from airflow.sdk.exceptions import AirflowException

from shardaudit.adapters.clock import now
from shardaudit.airflow.audit_verdict import event_extra, judge, keep_report
from shardaudit.airflow.backfill_steps import REJECT, act_on_answer, is_replaced, propose
from shardaudit.airflow.gate_check import check_audit
from shardaudit.airflow.planned_jobs import PlannedAudit, configured
from shardaudit.airflow.watch_news import alarm_extra, tell, tell_audits
from shardaudit.page.airflow_door import Rights
from shardaudit.page.site import Site

FORM = {"stream": "events"}
RUN = "asked"  # the run that asks, by `backfill plan --request`


def work(audit_id: str) -> None:
    """Each step that reads or writes tables; what it thinks of the stream is not asked here."""
    planned = PlannedAudit(stream="events", driver={}, arguments={}, engines={}, audit_id=audit_id)
    keep_report(planned)
    for step in (
        lambda: judge(planned),
        lambda: event_extra([planned]),
        lambda: check_audit(audit_id),
        lambda: tell(planned),
        lambda: tell_audits(planned),
        lambda: alarm_extra([planned], {}),
        _answered,
    ):
        with suppress(AirflowException):
            step()


def _answered() -> None:
    plan = propose(FORM, request_id=RUN, asker="ann", now=now())
    assert not is_replaced(RUN)
    answer = {"chosen_options": [REJECT], "responded_by_user": {"id": "1", "name": "bob"}}
    act_on_answer(FORM, plan, answer, now=now())


def look() -> None:
    """Each page and the download."""
    rights, pages = Rights(may_backfill=True, may_see=lambda _: True), Site(configured, now).pages()
    shard = {"first": "shardId-000000000000", "last": "shardId-000000000000"}
    pages.by_path["/"]({}, rights)
    pages.by_path["/stream"](FORM, rights)
    pages.by_path["/shard"](FORM | shard, rights)
    list(pages.by_path["/findings.csv"](FORM, rights).body)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(sys.argv[2])
    else:
        look()
