"""The retention watch: shardaudit/airflow/dag_definitions/ has it."""

from shardaudit.airflow.dag_definitions.watch_dag import retention_watch

retention_watch()
