"""The DAGs. A file in Airflow's DAG folder calls those that it wants, each once.

    from shardaudit.airflow import dags

    dags.nightly_audit(schedule="0 3 * * *", pool="spark")
    dags.retention_watch()

Each takes Airflow's own words: `pool`, `queue`, `conn_id` (the Spark connection) and `owner`; those
that the clock starts take `schedule`, too.
"""

from shardaudit.airflow.dags.alarm_dag import backfill_on_alarm as backfill_on_alarm
from shardaudit.airflow.dags.audit_dag import nightly_audit as nightly_audit
from shardaudit.airflow.dags.backfill_dag import backfill as backfill
from shardaudit.airflow.dags.maintenance_dag import maintenance as maintenance
from shardaudit.airflow.dags.watch_dag import retention_watch as retention_watch
