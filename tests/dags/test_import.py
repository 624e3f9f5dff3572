import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = (
    *("pyspark", "delta", "deltalake", "duckdb", "pyarrow", "pandas"),
    *("boto3", "botocore", "great_expectations"),
)
PROGRAM = """
import json, sys, time
import airflow.sdk, airflow.models.serialized_dag
import airflow.providers.standard.operators.trigger_dagrun
import airflow.providers.apache.spark.operators.spark_submit
airflows = time.process_time()
import backfill, backfill_on_alarm, maintenance, nightly_audit, retention_watch
import shardaudit.page.plugin
ours = time.process_time() - airflows
print(json.dumps([ours, airflows, sorted(set(sys.argv[1:]) & set(sys.modules))]))
"""


def test_the_scheduler_pays_little_when_it_reads_the_dag_files() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *HEAVY],
        env=os.environ | {"PYTHONPATH": f"{root / 'spark'}:{root / 'dags'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    ours, airflows, heavy = json.loads(done.stdout.splitlines()[-1])
    assert heavy == []
    assert ours < airflows / 3  # seconds of CPU: as slow as the machine is, both are
