"""A session on this machine, whatever the environment says of others."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from grpc._common import deserialize
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.door import Engine
from shardaudit.adapters.engine.engine_errors import LET_GO, is_passing

COUNTED = """
import os
from shardaudit.adapters.engine.door import started
from tests.conftest import engine_settings

with started(engine_settings("embedded"), app="counted") as engine:
    print("rows:", engine.session.range(3).count(), os.environ["SPARK_CONNECT_MODE_ENABLED"])
print("after:", [name for name in os.environ if name.startswith("SPARK_CONNECT")])
"""


def test_a_proxy_and_a_token_of_somebody_else_are_not_for_our_server() -> None:
    nobody = "http://127.0.0.1:9"
    of_others = {"https_proxy": nobody, "grpc_proxy": nobody, "no_proxy": ""}
    done = subprocess.run(
        [sys.executable, "-c", COUNTED],
        env=os.environ | of_others | {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "somebody-else"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["rows: 3 1", "after: []"], done.stderr


@pytest.mark.both_engines
def test_session_never_ends_for_want_of_a_question(engine: Engine) -> None:
    of_spark = "spark.connect.session.manager.defaultSessionTimeout"
    told = engine.session.conf.get(of_spark, None) or os.environ["SAIL_SPARK__SESSION_TIMEOUT_SECS"]
    assert told in ("-1", "31536000")  # Spark: never; Sail: a year


@pytest.mark.both_engines
@pytest.mark.parametrize("part", range(6))
def test_an_answer_that_could_not_be_read_is_asked_for_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """But one that the embedded engine has let go of meanwhile, which another try may cure."""
    seen: list[str] = []

    def torn(message: bytes, reader: Callable[[bytes], Any]) -> Any:
        answer = deserialize(message, reader)
        seen.append(type(answer).__name__)
        return None if len(seen) == part + 1 else answer

    frame = spark.range(20_000)
    monkeypatch.setattr("grpc._common.deserialize", torn)
    assert frame.select("id").columns == ["id"]
    try:
        assert sorted(row.id for row in frame.collect()) == list(range(20_000))
    except PySparkException as error:
        assert LET_GO in str(error)
        assert is_passing(error)
    monkeypatch.undo()
    assert len(seen) > part  # or none was torn
    assert {"AnalyzePlanResponse", "ExecutePlanResponse"} <= set(seen)
