"""A stream with empty inputs, and a warehouse for it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.adapters.delta import Warehouse
from tests.spark.jobs.lake import Lake


@pytest.fixture
def spark_lake(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> Lake:
    """A stream with neither traces nor a sink."""
    return Lake(spark, warehouse, tmp_path)


@pytest.fixture
def lake(spark_lake: Lake) -> Lake:
    """A stream whose sink is an empty Delta table."""
    spark_lake.land()
    return spark_lake
