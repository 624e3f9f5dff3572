"""The warehouse as a command needs it: claimed for this run alone, with a Spark session."""

from collections.abc import Iterator
from contextlib import contextmanager

from shardaudit.adapters.claim import claim
from shardaudit.adapters.claim_store import Tables
from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.spark import spark_session
from shardaudit.adapters.spark_errors import spark_errors
from shardaudit.model.config import Settings
from shardaudit.report.progress import Progress


@contextmanager
def opened(
    settings: Settings, *, owner: str, progress: Progress, on: Tables = Tables.LEDGER
) -> Iterator[Warehouse]:
    """The warehouse, held against other runs; the claim comes first, it costs milliseconds.

    Raises:
        WarehouseBusyError: another run holds it.
        SparkFailedError: Spark failed in the block.
        SparkInterruptedError: the same, but a later try may work.
    """
    with claim(settings, owner=owner, on=on) as held, spark_errors():
        with progress.stage("start Spark"):
            spark = spark_session(settings, app=f"shardaudit {owner}")
        try:
            yield Warehouse(spark, settings.warehouse, aws=settings.aws, check=held.check)
        finally:
            spark.stop()
