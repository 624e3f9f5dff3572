"""The backfill: shardaudit/airflow/dag_definitions/ has it."""

from shardaudit.airflow.dag_definitions.backfill_dag import backfill

backfill()
