"""A JVM that is killed, as for memory: the command ends so that Airflow tries again."""

import os
import subprocess
import sys

import pytest

KILLED = """
import os, signal
from pathlib import Path
from shardaudit.adapters.engine.door import started
from shardaudit.adapters.engine.engine_errors import SparkInterruptedError, spark_errors
from tests.conftest import engine_settings

def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

try:
    with spark_errors(), started(engine_settings("spark"), app="killed") as engine:
        session = engine.session
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        session.range(10).count()
except SparkInterruptedError as error:
    print("passing:", error.exit_code, error)
"""


@pytest.mark.apache_spark
def test_a_killed_jvm_is_told_and_may_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "passing: 75 Apache Spark's process is gone: killed" in done.stdout, done.stderr
    assert done.returncode == 0
