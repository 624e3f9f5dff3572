"""The backfill that an alarm asks for, as the package has it: shardaudit/airflow/dags/."""

from shardaudit.airflow import dags

dags.backfill_on_alarm()
