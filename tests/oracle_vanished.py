"""The oracle's cells of which all was known until the stream had none of their messages any more.

Rows of those that are deleted later were not lost.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from shardaudit.model.verdict import Kind, State
from tests.history import (
    Cell,
    CellResult,
    Departure,
    Finding,
    FindingKey,
    History,
    Outcome,
    Question,
    SinkRow,
    Trace,
)
from tests.oracle_places import counting_order, with_places

_Sent = tuple[dict[Cell, list[str]], dict[Cell, datetime]]


@dataclass(frozen=True)
class Seen:
    """What an audit saw in a cell: the ids sent, those of the rows, its numbers."""

    sent: list[str]
    rows: list[str]
    result: CellResult
    as_of: datetime


@dataclass(frozen=True)
class Known:
    """By what all is known of a cell.

    `by_ledger`: it held just what was sent, until `late_from`: when the first of what came later
    arrived. `by_audit`: an audit saw it so. `seen_at`: as of when the newest audit saw it as it is.
    """

    by_ledger: bool
    late_from: datetime | None
    by_audit: bool
    seen_at: datetime | None


@dataclass
class Memory:
    """What the newest audit of each cell saw; the missing messages that did not end well."""

    cells: dict[Cell, Seen] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def note(
        self,
        history: History,
        question: Question,
        outcome: Outcome,
        findings: Mapping[FindingKey, Finding],
    ) -> None:
        """One more audit, with the findings after it."""
        sent, _ = _sent(history, question)
        history = placed(history, question)
        rows: dict[Cell, list[str]] = defaultdict(list)
        for row in history.rows:
            rows[row.shard_id, question.bucket_start(row.sent_at)].append(row.message_id)
        for cell, result in outcome.cells.items():
            ids = sorted(sent.get(cell, []))
            self.cells[cell] = Seen(ids, sorted(rows[cell]), result, question.as_of)
        self.missing = {
            message_id
            for (message_id, kind), finding in findings.items()
            if kind is Kind.MISSING and finding.state not in {State.RECOVERED, State.FALSE_ALARM}
        }


def placed(history: History, question: Question) -> History:
    """The history in which each row has its place; those that lacked it are of batch 0."""
    return with_places(history, read_from=question.start - question.settle_grace)


def known_cells(history: History, question: Question, memory: Memory) -> dict[Cell, Known]:
    """The cells of which all was known when or after the last of it left the stream.

    They held just what was sent, each id once; or an audit saw them so, and nothing of them was on
    its way. Rows that do not say where they belong are in no cell of the ledger: those that are
    there now stood beside all that it held.
    """
    history = placed(history, question)
    pasts: dict[Cell, _Past] = defaultdict(_Past)
    for row in (*history.rows, *(gone.row for gone in history.left)):
        if not row.lacks:
            pasts[row.shard_id, question.bucket_start(row.sent_at)].rows.append(row)
    for gone in history.left:
        if not gone.row.lacks:
            start = question.bucket_start(gone.row.sent_at)
            pasts[gone.row.shard_id, start].left.append(gone)
    sent, last = _sent(history, question)
    traces: dict[Cell, list[Trace]] = defaultdict(list)
    for trace in history.traces:
        traces[trace.shard_id, question.bucket_start(trace.sent_at)].append(trace)
    upto = {
        number: _sent(
            replace(history, traces=tuple(t for t in history.traces if t.batch <= number)), question
        )
        for number in {trace.batch for trace in history.traces}
    }
    return {
        cell: Known(
            *_by_ledger(cell, pasts[cell], traces[cell], upto, question),
            *_by_audit(sorted(ids), last[cell], memory.cells.get(cell), pasts[cell], question),
        )
        for cell, ids in sent.items()
    }


def _by_ledger(
    cell: Cell,
    past: "_Past",
    traces: list[Trace],
    upto: Mapping[int, _Sent],
    question: Question,
) -> tuple[bool, datetime | None]:
    """Whether it was complete, and from when on what came after that arrived.

    Input:
        traces: the cell's; upto: batch -> `_sent` of all that had come with it.
    """
    late: list[datetime] = []
    for number in {trace.batch for trace in traces}:
        sent, last = upto[number]
        after = min((t.arrived_at for t in traces if t.batch > number), default=None)
        by = question.may_be_there_until(last[cell])
        is_complete = cell in sent and sorted(sent[cell]) in past.states(since=by)
        if is_complete and by < question.as_of and after is None:
            return True, None
        if is_complete and by < question.as_of and after is not None and after >= last[cell]:
            late.append(after)
    return bool(late), max(late, default=None)


def _by_audit(
    ids: list[str], last: datetime, seen: Seen | None, past: "_Past", question: Question
) -> tuple[bool, datetime | None]:
    """Whether an audit saw these ids, none on its way, beside rows that stayed; and as of when.

    Or saw the rows that are there now, and knew then that others had been deleted.
    """
    if seen is None or seen.sent != ids or seen.result.pending:
        return False, None
    by = question.may_be_there_until(last)
    is_over, is_now = by < question.as_of, seen.rows == past.before(None)
    stayed = is_over and seen.rows in past.states(since=by)
    is_known = stayed or (is_over and is_now and seen.result.vanished > 0)
    return is_known, seen.as_of if stayed or is_now else None


@dataclass
class _Past:
    """All rows that a cell ever had, and those that left it."""

    rows: list[SinkRow] = field(default_factory=list)
    left: list[Departure] = field(default_factory=list)

    def before(self, batch: int | None) -> list[str]:
        """The ids of the rows that were there before an ingest; None: that are there now."""
        there = [row.message_id for row in self.rows if batch is None or row.batch < batch]
        for gone in self.left:
            if batch is None or gone.batch < batch:
                there.remove(gone.row.message_id)
        return sorted(there)

    def states(self, *, since: datetime) -> list[list[str]]:
        """What it held until an ingest after that time was the first to see something else."""
        changes = {(gone.batch, gone.seen_at) for gone in self.left}
        changes |= {(row.batch, row.seen_at) for row in self.rows if row.seen_at and row.batch}
        return [self.before(batch) for batch, seen_at in changes if seen_at > since]


def _sent(history: History, question: Question) -> _Sent:
    """The ids that count in each cell, and the end of the bucket in which its last trace came."""
    counted: dict[str, Trace] = {}
    for trace in sorted(history.traces, key=counting_order):
        counted.setdefault(trace.message_id, trace)
    sent: dict[Cell, list[str]] = defaultdict(list)
    for trace in counted.values():
        sent[trace.shard_id, question.bucket_start(trace.sent_at)].append(trace.message_id)
    return sent, last_arrivals(history, question)


def last_arrivals(history: History, question: Question) -> dict[Cell, datetime]:
    """The end of the bucket in which the last trace of each cell came."""
    last: dict[Cell, datetime] = {}
    for trace in history.traces:
        cell = (trace.shard_id, question.bucket_start(trace.sent_at))
        end = question.bucket_start(trace.arrived_at) + question.bucket
        last[cell] = max(last.get(cell, end), end)
    return last
