"""The nightly audit: shardaudit/airflow/dag_definitions/ has it."""

from shardaudit.airflow.dag_definitions.audit_dag import nightly_audit

nightly_audit()
