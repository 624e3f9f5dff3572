"""What was refused: rows of the quarantine, and the cells that an unreadable file may have fed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.model.source import SourceFile
from shardaudit.model.tables.audit_tables import QUARANTINE
from shardaudit.model.window import Window

_AFTER = timedelta(seconds=1)  # a file's time may be cut to the second


def damaged_span(
    damaged: Iterable[SourceFile],
    *,
    kept_from: Mapping[str, datetime],
    batch_from: datetime | None,
    audit_window: timedelta,
) -> Window | None:
    """The time that the lost rows of these files may belong to; None when there are no files.

    From the least time that was kept of a file (else of the batch, else the audit window before the
    file was written) until the file was written: what it holds was sent before.

    Input:
        kept_from: path -> least `sent_at` of the rows that were kept of it.
        batch_from: the least `sent_at` of the batch.
    """
    spans: list[tuple[datetime, datetime]] = []
    for file in damaged:
        written = datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        start = kept_from.get(file.path) or batch_from or written - audit_window
        spans.append((start, max(written, start) + _AFTER))
    if not spans:
        return None
    return Window(min(start for start, _ in spans), max(end for _, end in spans))


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
