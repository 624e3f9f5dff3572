"""Conditions over many spans of time: an engine takes no plan of any depth."""

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import is_damaged
from shardaudit.columns.instants import in_windows
from shardaudit.model.window import Window
from tests.builders import T0

MINUTE = timedelta(minutes=1)
SPANS = tuple((T0 + 2 * n * MINUTE, T0 + (2 * n + 1) * MINUTE) for n in range(300))


@pytest.mark.both_engines
@pytest.mark.parametrize("asks", ["windows", "damage"])
def test_every_span_is_looked_into(spark: SparkSession, asks: str) -> None:
    start = F.lit(T0) + F.col("id") * F.expr("INTERVAL '1' MINUTE")
    windows = [Window(*span) for span in SPANS]
    condition = in_windows(start, windows) if asks == "windows" else is_damaged(SPANS, start)
    inside = spark.range(700).where(condition)
    assert {row.id for row in inside.collect()} == {2 * n for n in range(300)}


@pytest.mark.parametrize("asks", ["windows", "damage"])
def test_no_span_holds_nothing(spark: SparkSession, asks: str) -> None:
    condition = in_windows(F.lit(T0), []) if asks == "windows" else is_damaged((), F.lit(T0))
    assert spark.range(3).where(condition).count() == 0
