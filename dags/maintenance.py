"""The warehouse's upkeep: shardaudit/airflow/dag_definitions/ has it."""

from shardaudit.airflow.dag_definitions.maintenance_dag import maintenance

maintenance()
