"""The nightly audit, as the package has it: shardaudit/airflow/dags/."""

from shardaudit.airflow import dags

dags.nightly_audit()
