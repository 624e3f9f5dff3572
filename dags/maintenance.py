"""The warehouse's upkeep, as the package has it: shardaudit/airflow/dags/."""

from shardaudit.airflow import dags

dags.maintenance()
