"""A stream with empty inputs, and a warehouse for it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.adapters.delta import Warehouse
from tests.spark.jobs.lake import Lake


@pytest.fixture
def lake(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> Lake:
    """A stream whose sink is an empty Delta table."""
    found = Lake(spark, warehouse, tmp_path)
    found.land()
    return found
