"""A command of the night as Airflow's task runs it: `python -m tests.cluster.airflow_task COMMAND`.

By its connection and what the environment says. A process of its own: to import Airflow needs a
home that is set before.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from typing import Any

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="shardaudit-airflow-")

from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.planned_jobs import planned_run

FORM = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"}


def main(command: str) -> None:
    """Raises what the task would fail with."""
    [planned] = planned_run(FORM, run_after=datetime(2026, 11, 2, 0, 30, tzinfo=UTC))
    context: Any = {}  # Any: a small part of Airflow's
    ShardauditJob(task_id=command, command=command, planned=planned).execute(context)


if __name__ == "__main__":
    main(sys.argv[1])
