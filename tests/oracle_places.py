"""Rows of the sink that lack their shard or time: where the oracle takes them to be."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from tests.history import History, SinkRow, Trace, number_order

UNKNOWN_SHARD = "(unknown)"


def counting_order(trace: Trace) -> tuple[int, str, tuple[int, str], datetime]:
    """The order of an id's traces: the first decides in which cell the id counts."""
    number = trace.sequence_number  # an attempt without one goes before those that have one
    order = (-1, "") if number is None else number_order(number)
    return trace.batch, trace.shard_id, order, trace.sent_at


def with_places(history: History, *, read_from: datetime) -> History:
    """The history as far as it can be known: an id's counted trace says what a row does not.

    Without a trace it is on no known shard, and was sent when the first such row of it landed.
    All such rows count as of one ingest: each audit looks at them together. What landed before
    `read_from` is of messages from before the window: no audit of the window reads it.
    """
    if not any(row.lacks for row in history.rows):
        return history
    read = (row for row in history.rows if not row.lacks or row.landed_by >= read_from)
    history = replace(history, rows=tuple(read))
    homes = {t.message_id: t for t in sorted(history.traces, key=counting_order, reverse=True)}
    first = _first_landings(row for row in history.rows if row.lacks)
    rows = tuple(
        _placed(row, homes.get(row.message_id), first[row.message_id]) if row.lacks else row
        for row in history.rows
    )
    return replace(history, rows=rows)


def _first_landings(rows: Iterable[SinkRow]) -> dict[str, datetime]:
    first: dict[str, datetime] = {}
    for row in rows:
        landed_at = row.landed_at or row.landed_by
        first[row.message_id] = min(landed_at, first.get(row.message_id, landed_at))
    return first


def _placed(row: SinkRow, home: Trace | None, first_landed: datetime) -> SinkRow:
    shard_id = home.shard_id if home else UNKNOWN_SHARD
    sent_at = home.sent_at if home else first_landed
    return replace(
        row,
        shard_id=shard_id if "shard_id" in row.lacks else row.shard_id,
        sent_at=sent_at if "sent_at" in row.lacks else row.sent_at,
        lacks=frozenset(),
        batch=0,
    )
