"""All DAGs at once, as one file of a DAG folder has them.

A wrong argument is refused while Airflow parses the file that calls.
"""

import os

from airflow.sdk import DAG

from shardaudit.airflow.dag_definitions.alarm_dag import backfill_on_alarm
from shardaudit.airflow.dag_definitions.audit_dag import NIGHTLY, nightly_audit
from shardaudit.airflow.dag_definitions.backfill_dag import backfill
from shardaudit.airflow.dag_definitions.maintenance_dag import maintenance
from shardaudit.airflow.dag_definitions.watch_dag import retention_watch
from shardaudit.model.config.parts import CONFIG
from shardaudit.model.errors import ConfigError


def dags(  # noqa: PLR0913 - the contract
    *,
    config: str,
    schedule: str = NIGHTLY,
    pool: str | None = None,
    queue: str | None = None,
    connection: str | None = None,
    owner: str | None = None,
) -> dict[str, DAG]:
    """The five DAGs by their ids: `globals().update(dags(config="/etc/shardaudit.toml"))`.

    Input:
        config: the path of the shardaudit.toml on whatever runs the tasks.
        schedule: when the nightly audit runs: five fields of cron in UTC, or @daily and the like.
        pool, queue, owner: of all tasks, in Airflow's own words; None: as Airflow has it.
        connection: the id of the Spark connection; None: `spark_default`.

    Raises:
        ConfigError: an argument is empty or no text, or no cron that comes again.
    """
    # Parsed anew in each task's process: there it is what the commands and the steps read.
    os.environ[CONFIG] = _text("config", config, "the path of the shardaudit.toml")
    placed = {
        "pool": (pool, "the name of one of Airflow's pools"),
        "queue": (queue, "the name of a queue of the executor"),
        "connection": (connection, "the id of a Spark connection in Airflow"),
        "owner": (owner, "who is shown as the owner of the tasks"),
    }
    tasks = {
        "conn_id" if name == "connection" else name: _text(name, value, wanted)
        for name, (value, wanted) in placed.items()
        if value is not None
    }
    made = [
        nightly_audit(tasks, schedule=_text("schedule", schedule, "five fields of cron")),
        *(one(tasks) for one in (retention_watch, maintenance, backfill, backfill_on_alarm)),
    ]
    return {dag.dag_id: dag for dag in made}


def _text(name: str, value: object, wanted: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ConfigError(f"dags({name}=…)", value, f"{wanted}, as a text. Correct it in this file")
