"""The retention watch, as the package has it: shardaudit/airflow/dags/."""

from shardaudit.airflow import dags

dags.retention_watch()
