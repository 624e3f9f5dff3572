"""The oracle's cells before the window of which something lacks that came within it."""

from collections.abc import Mapping
from datetime import datetime

from tests.history import Cell, History, Question, number_order
from tests.oracle_shards import Shard
from tests.oracle_vanished import last_arrivals
from tests.oracle_watermark import contents


def unseen_cells(
    history: History, question: Question, shards: Mapping[str, Shard]
) -> frozenset[Cell]:
    """What no nightly audit ever sees: its producer held it back until its window was over.

    Once all of a cell has left the stream, rows that went from it are no loss. Where rows do not
    say where they belong nobody knows what lacks, nor what a file holds that cannot be read.
    """
    if any(row.lacks for row in history.rows):
        return frozenset()
    last = last_arrivals(history, question)
    cleared = {
        (gone.row.shard_id, question.bucket_start(gone.row.sent_at)) for gone in history.left
    }
    return frozenset(
        cell
        for cell, inside in contents(history, question).items()
        if cell[1] < question.start
        and inside.sent != inside.landed
        and cell in last
        and question.start + 2 * question.bucket <= last[cell]
        and _is_landed_or_never(cell, history, question, by=last[cell], shard=shards[cell[0]])
        and not (cell in cleared and _has_left(last[cell], question))
        and not any(
            d.start < cell[1] + question.bucket and cell[1] < d.end for d in history.damaged
        )
    )


def _is_landed_or_never(
    cell: Cell, history: History, question: Question, *, by: datetime, shard: Shard
) -> bool:
    """Whether the consumer, as it goes on, will not land it any more."""
    numbers = [
        number_order(trace.sequence_number)
        for trace in history.traces
        if (trace.shard_id, question.bucket_start(trace.sent_at)) == cell and trace.sequence_number
    ]
    if numbers and shard.settled_frontier and max(numbers) <= shard.settled_frontier:
        return True
    is_overdue = question.as_of - by >= shard.patience
    stands = shard.is_silent or shard.is_stalled or not shard.has_position or not numbers
    return is_overdue and stands


def _has_left(by: datetime, question: Question) -> bool:
    longer = [min(by + was.length, was.ended_by) for was in question.longer]
    return question.deadline(by) < question.as_of and all(at <= question.as_of for at in longer)
