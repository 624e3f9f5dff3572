"""A stream with empty inputs, one with losses, and a warehouse for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.store.warehouse import Warehouse
from tests.spark.lake import Lake
from tests.spark.losses import Loss, planted_loss


@pytest.fixture
def spark_lake(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> Lake:
    """A stream with neither traces nor a sink."""
    return Lake(spark, warehouse, tmp_path)


@pytest.fixture
def lake(spark_lake: Lake) -> Lake:
    """A stream whose sink is an empty Delta table."""
    spark_lake.land()
    return spark_lake


@pytest.fixture(scope="session")
def audited_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loss:
    """A stream with losses, audited; the stream itself is gone, what was read of it is there."""
    with planted_loss(spark, tmp_path_factory.mktemp("audited") / "demo") as loss:
        loss.audited()
        return loss


@pytest.fixture
def loss(spark: SparkSession, tmp_path: Path, audited_once: Loss) -> Iterator[Loss]:
    """A stream with losses, audited."""
    with planted_loss(spark, tmp_path / "demo") as loss:
        assert loss.planted_messages() == audited_once.planted_messages()
        loss.as_audited(audited_once.folder)
        yield loss
