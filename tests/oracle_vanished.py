"""The oracle's cells of which all was known until the stream had none of their messages any more.

Rows of those that are deleted later were not lost.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

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
    """Up to which batch of traces all is known of a cell; None: of no message.

    `by_ledger`: it held just what was sent. `by_audit`: an audit saw it so. `seen_at`: as of when
    the newest audit saw it so, or as it is.
    """

    by_ledger: int | None
    by_audit: int | None
    seen_at: datetime | None


@dataclass
class Memory:
    """What the newest audit of each cell saw; the missing messages that did not end well.

    Where that saw a message on its way, the newest one before that did not.
    """

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
            if result.pending and cell in self.cells:
                continue
            ids = sorted(sent.get(cell, []))
            self.cells[cell] = Seen(ids, sorted(rows[cell]), result, question.as_of)
        self.missing = {
            message_id
            for (message_id, kind), finding in findings.items()
            if kind is Kind.MISSING and finding.state not in {State.RECOVERED, State.FALSE_ALARM}
        }


def placed(history: History, question: Question) -> History:
    """The history in which each row has its place; those that lacked it are of batch 0.

    A landing time that is cut to the day lies up to a day before the landing.
    """
    read_from = question.start - question.settle_grace - timedelta(days=1)
    return with_places(history, read_from=read_from)


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
    sent, _ = _sent(history, question)
    batches: dict[Cell, set[int]] = defaultdict(set)
    for trace in history.traces:
        batches[trace.shard_id, question.bucket_start(trace.sent_at)].add(trace.batch)
    upto = {
        number: _sent(
            replace(history, traces=tuple(t for t in history.traces if t.batch <= number)), question
        )
        for number in {trace.batch for trace in history.traces}
    }
    return {
        cell: _known(
            {
                number: (sorted(ids[cell]), question.may_be_there_until(last[cell]))
                for number, (ids, last) in upto.items()
                if number in batches[cell] and cell in ids
            },
            memory.cells.get(cell),
            pasts[cell],
            question,
        )
        for cell in sent
    }


def _known(
    sent: Mapping[int, tuple[list[str], datetime]],
    seen: Seen | None,
    past: "_Past",
    question: Question,
) -> Known:
    """What is known of a cell.

    An audit knows the ids that it saw where none was on its way, and the rows stayed until the
    stream had none of these; or where it saw the rows that are there now, and others deleted.

    Input:
        sent: up to each batch of traces, the ids and until when the stream may have had them.
    """
    ledger, audit, seen_at = set(), set(), set()
    is_same = seen is not None and (
        (seen.sent, seen.rows) == (sent[max(sent)][0], past.before(None))
    )
    for number, (ids, until) in sent.items():
        states = past.states(since=until)
        if ids in states:
            ledger.add(number)
        if seen is None or seen.result.pending:
            continue
        is_over = until < max(question.as_of, seen.as_of)
        stayed = seen.sent == ids and seen.rows in states
        if stayed or (is_over and is_same and seen.result.vanished > 0):
            audit.add(number)
        if stayed or is_same:
            seen_at.add(seen.as_of)
    return Known(max(ledger, default=None), max(audit, default=None), max(seen_at, default=None))


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
