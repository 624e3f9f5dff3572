"""The oracle's cells of which all was known until the stream had none of their messages any more.

Rows of those that are deleted later were not lost.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from tests.oracle_places import counting_order


@dataclass(frozen=True)
class Seen:
    """What an audit saw in a cell: the ids sent, those of the rows, its numbers."""

    sent: list[str]
    rows: list[str]
    result: CellResult

    def is_of(self, ids: list[str], past: "_Past", *, since: datetime) -> bool:
        """Whether it saw these ids, none on its way, beside rows that stayed beyond that time.

        Or saw the rows that are there now, and knew then that others had been deleted.
        """
        if self.sent != ids or self.result.pending:
            return False
        is_now = self.rows == past.before(None) and self.result.vanished > 0
        return is_now or self.rows in past.states(since=since)


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
        rows: dict[Cell, list[str]] = defaultdict(list)
        for row in history.rows:
            rows[row.shard_id, question.bucket_start(row.sent_at)].append(row.message_id)
        for cell, result in outcome.cells.items():
            self.cells[cell] = Seen(sorted(sent.get(cell, [])), sorted(rows[cell]), result)
        self.missing = {
            message_id
            for (message_id, kind), finding in findings.items()
            if kind is Kind.MISSING and finding.state not in {State.RECOVERED, State.FALSE_ALARM}
        }


def known_cells(history: History, question: Question, memory: Memory) -> dict[Cell, bool]:
    """The cells of which all was known when or after the last of it left the stream.

    True: they held just what was sent, each id once. False: an audit saw them so, and nothing of
    them was on its way. Rows that do not say where they belong are in no cell of the ledger.
    """
    pasts: dict[Cell, _Past] = defaultdict(_Past)
    for row in (*history.rows, *(gone.row for gone in history.left)):
        if not row.lacks:
            pasts[row.shard_id, question.bucket_start(row.sent_at)].rows.append(row)
    for gone in history.left:
        if not gone.row.lacks:
            start = question.bucket_start(gone.row.sent_at)
            pasts[gone.row.shard_id, start].left.append(gone)
    sent, last = _sent(history, question)
    found: dict[Cell, bool] = {}
    for cell, ids in sent.items():
        by, seen = question.deadline(last[cell]), memory.cells.get(cell)
        if by < question.as_of and sorted(ids) in pasts[cell].states(since=by):
            found[cell] = True
        elif by < question.as_of and seen and seen.is_of(sorted(ids), pasts[cell], since=by):
            found[cell] = False
    return found


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
        changes |= {(row.batch, row.seen_at) for row in self.rows if row.seen_at}
        return [self.before(batch) for batch, seen_at in changes if seen_at > since]


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
