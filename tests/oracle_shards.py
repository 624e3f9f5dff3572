"""The oracle's shards: where each consumer provably is and how long its messages may take."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.history import Question, SinkRow, number_order

LAST_LATENCY_BIN = 21  # bin i ends at 2^i seconds; this one has no end


@dataclass(frozen=True, slots=True)
class Shard:
    """What the rows of one shard say of its consumer."""

    allowance: timedelta
    settled_frontier: tuple[int, str] | None
    is_silent: bool
    is_stalled: bool


def shard_facts(rows: list[SinkRow], question: Question, *, produced: bool) -> Shard:
    """The facts of one shard from all rows that its consumer ever landed on it.

    What a backfill landed says nothing of the consumer. A cell landed when its last row did.
    Records of one aggregate share a number and may sit in two cells: the cell that landed last is
    the one that counts.
    """
    rows = [row for row in rows if not row.own]
    cells: dict[datetime, list[SinkRow]] = defaultdict(list)
    for row in rows:
        cells[question.bucket_start(row.sent_at)].append(row)
    numbers_at = [
        (number_order(row.sequence_number), max(r.landed_at for r in cell))
        for cell in cells.values()
        for row in cell
        if row.sequence_number
    ]
    allowance = _allowance([r for r in rows if question.covers(r.sent_at)], question)
    settled_by = question.as_of - question.settle_grace
    frontier_at = max(numbers_at)[1] if numbers_at else None
    return Shard(
        allowance=allowance,
        settled_frontier=max((n for n, at in numbers_at if at <= settled_by), default=None),
        is_silent=produced and not rows,
        is_stalled=frontier_at is not None and frontier_at < question.as_of - allowance,
    )


def _allowance(rows: list[SinkRow], question: Question) -> timedelta:
    if not rows:
        return question.settle_grace
    bins = sorted(_latency_bin(row.landed_at - row.sent_at) for row in rows)
    p99_bin = bins[-(-99 * len(bins) // 100) - 1]
    cap = question.retention / 10
    p99 = cap if p99_bin == LAST_LATENCY_BIN else timedelta(seconds=2**p99_bin)
    return max(question.settle_grace, min(p99, cap))


def _latency_bin(latency: timedelta) -> int:
    edges = range(LAST_LATENCY_BIN)
    return next((i for i in edges if latency <= timedelta(seconds=2**i)), LAST_LATENCY_BIN)
