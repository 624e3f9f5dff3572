"""What a batch's files tell of the numbers of sessions: which came, or were dropped.

By it an audit knows which traces never came, see `producer_numbers.py`.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.adapters.files.sources import read_told_numbers, storage_errors
from shardaudit.ingest.batches import Batch
from shardaudit.model.number_spans import (
    MOST_RUNS,
    Numbering,
    NumberSpan,
    Told,
    around,
    greatest,
    united,
)
from shardaudit.model.source import KeptFiles
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.window import EPOCH
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

_MOST_ROWS = 200_000  # of a batch: who has more has a session for each trace
_Row = tuple[object, ...]  # of TRACE_SESSIONS, without `batch_id` and `stream`


def append_trace_sessions(warehouse: Warehouse, told: DataFrame, batch: Batch) -> None:
    """Writes what the files of a batch tell; nothing where no line has a session.

    Input:
        told: `raw`: of `ToldNumbers.as_text`, a row for each file.
    """
    texts = collected(told.where(F.col("raw").isNotNull()).select("raw"))
    rows = session_rows(row.raw for row in texts)
    if not rows:
        return
    own = [(batch.batch_id, batch.stream, *row) for row in rows]
    frame = own_rows(warehouse.spark, own, TRACE_SESSIONS.ddl)
    warehouse.append(frame, TRACE_SESSIONS, most=len(own), retried=batch.retried)


def append_kept_sessions(warehouse: Warehouse, kept: KeptFiles | None, batch: Batch) -> None:
    """The same of the files that a batch keeps; they are read for it once."""
    columns = {name: column for name, (column, _) in (kept.columns if kept else {}).items()}
    if kept is None or not {"session", "session_seq"} <= columns.keys():
        return
    folder = warehouse.kept_folder
    files = [replace(file, path=f"{folder}/{file.path}") for file in kept.files]
    with storage_errors():
        told = read_told_numbers(warehouse.spark, files, warehouse.access, columns)
        append_trace_sessions(warehouse, told, batch)


def session_rows(texts: Iterable[str]) -> list[_Row]:
    """What several files tell, together.

    Input:
        texts: of `ToldNumbers.as_text`.
    """
    spans = spans_told(texts)
    rows = [row for (who, told), some in spans.items() for row in _rows(who, told, some)]
    if len(rows) <= _MOST_ROWS:
        return rows
    log.warning("%d sessions of traces: too many, their numbers are not looked at", len(spans))
    producers = {who._replace(session=None) for who, _ in spans}
    return [_row(who, Told.SPARSE, NumberSpan(0, 0)) for who in producers]


def spans_told(texts: Iterable[str]) -> dict[tuple[Numbering, Told], list[NumberSpan]]:
    """The spans of each session and kind, of the same texts."""
    spans: dict[tuple[Numbering, Told], list[NumberSpan]] = {}
    for text in texts:
        for *who, told, first, last, since, until in json.loads(text):
            span = NumberSpan(first, last, _instant(since), _instant(until))
            spans.setdefault((Numbering(*who), Told(told)), []).append(span)
    return spans


def _rows(who: Numbering, told: Told, spans: list[NumberSpan]) -> list[_Row]:
    if told in (Told.HEALTH, Told.WHOLE):
        return [_row(who, told, greatest(spans))]
    joined = united(spans)
    if len(joined) <= MOST_RUNS:
        is_gap = told is Told.GAP
        return [_row(who, told, one, dropped=one.size if is_gap else None) for one in joined]
    if told is Told.GAP:
        return [_row(who, told, around(joined), dropped=sum(one.size for one in joined))]
    return [_row(who, Told.SPARSE, around(joined))]


def _row(who: Numbering, told: Told, span: NumberSpan, *, dropped: int | None = None) -> _Row:
    return (*who, told.value, *span, dropped)


def _instant(micros: int | None) -> datetime | None:
    try:
        return None if micros is None else EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # a time beyond all calendars: none
        return None
