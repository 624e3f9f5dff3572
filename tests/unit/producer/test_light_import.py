"""What the emitters load where they are imported: nothing that a producer would feel."""

import pytest

from tests.unit.producer.puts import python

HEAVY = {
    *("pyspark", "airflow", "pandas", "numpy", "pyarrow", "duckdb", "deltalake", "pysail"),
    *("boto3", "botocore", "pydantic", "orjson", "great_expectations", "rich"),
}
CODE = """
import sys, time
at = time.process_time()
import shardaudit.{room}
print(time.process_time() - at, *sys.modules)
"""
MOST_SECONDS = 0.3


@pytest.mark.parametrize("room", ["producer", "consumer"])
def test_import_is_light_when_the_process_is_cold(room: str) -> None:
    done = python(CODE.format(room=room))
    assert done.returncode == 0, done.stderr
    seconds, *modules = done.stdout.split()
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)
    rooms = {name.split(".")[1] for name in modules if name.startswith("shardaudit.")}
    assert rooms <= {"adapters", "model", "producer", room}
    assert float(seconds) < MOST_SECONDS
