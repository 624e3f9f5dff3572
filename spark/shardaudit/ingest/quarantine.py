"""The quarantine: what was refused, each line, row or whole file with the reason."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.ingest.batches import Batch, stored_rows
from shardaudit.model.tables.audit_tables import QUARANTINE
from shardaudit.store.warehouse import Warehouse

_PLACE = ("file", "line", "reason")


@dataclass(frozen=True, slots=True)
class Refuser:
    """Who refuses, and when."""

    batch_id: str
    stream: str
    side: str
    at: datetime


def quarantine_rows(refused: DataFrame, by: Refuser) -> DataFrame:
    """The rows as the quarantine stores them.

    Input:
        refused: `file, line` (NULL for a whole file), `raw`, `reason`.
    """
    return refused.select(
        F.lit(by.batch_id).alias("batch_id"),
        F.lit(by.stream).alias("stream"),
        F.lit(by.side).alias("source"),
        "file",
        "line",
        "raw",
        "reason",
        F.lit(by.at).alias("quarantined_at"),
    ).select(QUARANTINE.names)


def quarantine(warehouse: Warehouse, refused: DataFrame, batch: Batch, *, most: int) -> None:
    """Stores the refused rows of a batch, each once; after a crash, those that came since.

    Input:
        most: how many there are at most.
    """
    if batch.is_resumed:
        stored = quarantined(warehouse, batch).select(*_PLACE)
        # Presence only; a whole file has no line.
        same = [F.col(f"r.{name}").eqNullSafe(F.col(f"s.{name}")) for name in _PLACE]
        refused = refused.alias("r").join(stored.alias("s"), same, how="left_anti")
    by = Refuser(batch.batch_id, batch.stream, batch.side, batch.planned_at)
    warehouse.append(quarantine_rows(refused, by), QUARANTINE, most=most)


def quarantined(warehouse: Warehouse, batch: Batch) -> DataFrame:
    """What is stored of a batch's refused rows: QUARANTINE."""
    return stored_rows(warehouse, QUARANTINE, batch)
