"""The oracle's shards: where each consumer provably is and how long its messages may take."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.history import EPOCH, Cell, History, Question, SinkRow, number_order

LAST_LATENCY_BIN = 21  # bin i ends at 2^i seconds; this one has no end


@dataclass(frozen=True, slots=True)
class Shard:
    """What the rows of one shard say of its consumer."""

    patience: timedelta
    settled_frontier: tuple[int, str] | None
    untimed_frontier: tuple[int, str] | None
    has_position: bool
    has_not_started: bool
    is_resting: bool
    has_more: bool


def shard_facts(
    there: list[SinkRow],
    left: list[SinkRow],
    question: Question,
    *,
    produced: bool,
    sent: Iterable[str],
) -> Shard:
    """The facts of one shard from all rows that its consumer ever landed on it.

    `sent`: the sequence numbers of all attempts on it.

    Those that left the sink landed once; but how long a landing takes say those that are there.
    What a backfill landed says nothing of the consumer. A cell landed when its last row did.
    Records of one aggregate share a number and may sit in two cells: the cell that landed last is
    the one that counts. A consumer rests since the first ingest that brought its frontier, and a
    cell is settled by the first that brought its greatest number.
    """
    there = [row for row in there if not row.own]
    rows = there + [row for row in left if not row.own]
    cells: dict[datetime, list[SinkRow]] = defaultdict(list)
    for row in rows:
        cells[question.bucket_start(row.sent_at)].append(row)
    numbers_at = [
        (number_order(row.sequence_number), max(r.landed_by for r in cell))
        for cell in cells.values()
        for row in cell
        if row.sequence_number
    ]
    timed = {question.bucket_start(row.sent_at) for row in there if row.landed_at}
    untimed = [
        number_order(row.sequence_number)
        for start in {question.bucket_start(row.sent_at) for row in there} - timed
        for row in cells[start]
        if row.sequence_number
    ]
    patience = _patience(there, question)
    settled_by = question.as_of - question.settle_grace
    frontier_at = max(numbers_at)[1] if numbers_at else None
    reached = [_reached(cell) for cell in cells.values() if any(r.sequence_number for r in cell)]
    unnumbered = [row.landed_by for row in rows if not row.sequence_number]
    has_position = frontier_at is not None and all(at <= frontier_at for at in unnumbered)
    return Shard(
        patience=patience,
        settled_frontier=max((n for n, at in reached if at <= settled_by), default=None),
        untimed_frontier=max(untimed, default=None),
        has_position=has_position,
        has_not_started=produced and not rows,
        is_resting=bool(reached) and _rests_since(reached) < question.as_of - patience,
        has_more=bool(numbers_at)
        and max(map(number_order, sent), default=(0, "")) > max(numbers_at)[0],
    )


def is_passed(number: str | None, frontier: tuple[int, str] | None, shard: Shard) -> bool:
    """A consumer that stopped may have stopped between two messages of one record."""
    if number is None or frontier is None:
        return False
    order = number_order(number)
    return order < frontier or (order == frontier and not (shard.is_resting and shard.has_more))


def passed_cells(
    history: History, shards: Mapping[str, Shard], question: Question
) -> frozenset[Cell]:
    """The cells of which nothing is still to land: what lacks of them is lost."""
    numbers: dict[Cell, list[str]] = defaultdict(list)
    for trace in history.traces:
        cell = (trace.shard_id, question.bucket_start(trace.sent_at))
        numbers[cell] += [trace.sequence_number] if trace.sequence_number else []
    found = set()
    for cell, of in numbers.items():
        shard, last = shards[cell[0]], max(of, key=number_order, default=None)
        frontiers = (shard.settled_frontier, shard.untimed_frontier)
        is_nowhere = last is None or not shard.has_position
        if not shard.has_not_started and (
            is_nowhere or any(is_passed(last, f, shard) for f in frontiers)
        ):
            found.add(cell)
    return frozenset(found)


def _reached(cell: list[SinkRow]) -> tuple[tuple[int, str], datetime]:
    """A cell's greatest number, and when it first landed: an ingest's rows with the last one."""
    batches: dict[int, list[SinkRow]] = defaultdict(list)
    for row in cell:
        batches[row.batch].append(row)
    greatest = max(number_order(row.sequence_number) for row in cell if row.sequence_number)
    return greatest, min(
        max(row.landed_by for row in batch)
        for batch in batches.values()
        if any(r.sequence_number and number_order(r.sequence_number) == greatest for r in batch)
    )


def _rests_since(reached: Sequence[tuple[tuple[int, str], datetime]]) -> datetime:
    """When the greatest number of all first landed."""
    frontier = max(number for number, _ in reached)
    return min(at for number, at in reached if number == frontier)


def _patience(rows: list[SinkRow], question: Question) -> timedelta:
    """What the hours of the last seven days make usual, by when their messages were sent."""
    hour = max(timedelta(hours=1), question.bucket)
    hours: dict[int, list[int]] = defaultdict(lambda: [0] * (LAST_LATENCY_BIN + 1))
    for row in rows:
        start = question.bucket_start(row.sent_at)
        is_recent = question.as_of - timedelta(days=7) <= start < question.as_of
        if row.landed_at and is_recent:
            hours[(start - EPOCH) // hour][_latency_bin(row.landed_at - row.sent_at)] += 1
    return usual_patience(hours.values(), question.settle_grace, question.retention)


def usual_patience(
    hours: Iterable[Sequence[int]], settle_grace: timedelta, retention: timedelta
) -> timedelta:
    """What a third of the hours keep; each is how many rows had a latency of each bin."""
    cap = retention / 10
    known = [_p99_bin(counts) for counts in hours if sum(counts)]
    if not known:
        return settle_grace
    edges = [timedelta(seconds=2**i) for i in known if i < LAST_LATENCY_BIN]
    usual = sorted(edge for edge in edges if edge <= cap)
    return max(settle_grace, usual[(len(usual) - 1) // 3] if usual else cap)


def _p99_bin(counts: Sequence[int]) -> int:
    rank = -(-99 * sum(counts) // 100)
    return next(i for i in range(len(counts)) if sum(counts[: i + 1]) >= rank)


def _latency_bin(latency: timedelta) -> int:
    edges = range(LAST_LATENCY_BIN)
    return next((i for i in edges if latency <= timedelta(seconds=2**i)), LAST_LATENCY_BIN)
