"""shardaudit's five DAGs."""

from shardaudit.airflow import dags

globals().update(dags(config="/etc/shardaudit/shardaudit.toml"))
