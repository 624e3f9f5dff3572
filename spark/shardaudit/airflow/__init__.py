"""What a DAG needs: operators, forms, steps. Reaches no engine while a file is parsed.

A file in anybody's DAG folder:

    from shardaudit.airflow import dags

    globals().update(dags(config="/etc/shardaudit.toml", schedule="0 3 * * *", pool="spark"))
"""

from shardaudit.airflow.all_dags import dags as dags
