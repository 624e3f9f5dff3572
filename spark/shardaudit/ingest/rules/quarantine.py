"""Refused rows and files → rows of the quarantine. Nothing that was refused gets lost."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.model.tables.audit_tables import QUARANTINE


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
