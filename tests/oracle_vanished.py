"""The oracle's cells that were complete until the stream had none of their messages any more.

Rows of those that are deleted later were not lost.
"""

from collections import defaultdict
from datetime import datetime

from tests.history import Cell, Departure, History, Question, SinkRow, Trace
from tests.oracle_places import counting_order


def complete_cells(history: History, question: Question) -> frozenset[Cell]:
    """The cells that held just what was sent, each id once, when or after the last of it expired.

    Rows that do not say where they belong are in no cell of the ledger.
    """
    rows: dict[Cell, list[SinkRow]] = defaultdict(list)
    left: dict[Cell, list[Departure]] = defaultdict(list)
    for row in (*history.rows, *(gone.row for gone in history.left)):
        if not row.lacks:
            rows[row.shard_id, question.bucket_start(row.sent_at)].append(row)
    for gone in history.left:
        if not gone.row.lacks:
            left[gone.row.shard_id, question.bucket_start(gone.row.sent_at)].append(gone)
    sent, last = _sent(history, question)
    return frozenset(
        cell
        for cell, ids in sent.items()
        if question.deadline(last[cell]) < question.as_of
        and _was_complete(ids, rows[cell], left[cell], by=question.deadline(last[cell]))
    )


def _sent(
    history: History, question: Question
) -> tuple[dict[Cell, list[str]], dict[Cell, datetime]]:
    """The ids that count in each cell, and the end of the bucket in which its last trace came."""
    counted: dict[str, Trace] = {}
    for trace in sorted(history.traces, key=counting_order):
        counted.setdefault(trace.message_id, trace)
    sent: dict[Cell, list[str]] = defaultdict(list)
    for trace in counted.values():
        sent[trace.shard_id, question.bucket_start(trace.sent_at)].append(trace.message_id)
    last: dict[Cell, datetime] = {}
    for trace in history.traces:
        cell = (trace.shard_id, question.bucket_start(trace.sent_at))
        came = max(trace.sent_at, trace.acked_at or trace.sent_at)
        end = question.bucket_start(came) + question.bucket
        last[cell] = max(last.get(cell, end), end)
    return sent, last


def _was_complete(
    ids: list[str], rows: list[SinkRow], left: list[Departure], *, by: datetime
) -> bool:
    """Whether an ingest after that time was the first to see something else than just the ids."""
    changes = {(gone.batch, gone.seen_at) for gone in left}
    changes |= {(row.batch, row.seen_at) for row in rows if row.seen_at}
    for batch, seen_at in changes:
        gone_before = [gone.row for gone in left if gone.batch < batch]
        there = [row.message_id for row in rows if row.batch < batch]
        for row in gone_before:
            there.remove(row.message_id)
        if seen_at > by and sorted(there) == sorted(ids):
            return True
    return False
