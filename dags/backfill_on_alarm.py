"""The backfill that an alarm asks for: shardaudit/airflow/dag_definitions/ has it."""

from shardaudit.airflow.dag_definitions.alarm_dag import backfill_on_alarm

backfill_on_alarm()
