"""The audit in plain Python, slow and obvious: what the Spark audit is measured against.

Written from the meanings alone (docs/verdicts.md). It knows nothing of fingerprints, ledgers or
pruning: it looks at every trace and every row of every id, with dicts and sets.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from shardaudit.model.verdict import Cause, Kind, State
from tests.history import (
    Cell,
    Finding,
    History,
    Outcome,
    Question,
    SinkRow,
    Trace,
    number_order,
)
from tests.oracle_cells import Tally, audit_verdict, cell_results, coverage, silenced, thin_cells
from tests.oracle_places import counting_order
from tests.oracle_quiet import silent_spans
from tests.oracle_shards import Shard, is_passed, passed_cells, shard_facts
from tests.oracle_vanished import Known, Memory, known_cells, placed

Sides = dict[datetime, set[str]]


def reconcile(history: History, question: Question, memory: Memory | None = None) -> Outcome:
    """What the audit must find in a history. `memory`: of the audits before it."""
    memory = memory or Memory()
    known = known_cells(history, question, memory)
    history = placed(history, question)
    messages = [m.seen_in(question) for m in _messages(history, question)]
    shards = _shards(history, messages, question)
    damaged = _damaged(history, question)
    judge = _Judge(question, shards, damaged, known, frozenset(memory.missing))
    judged = [(m, judge.causes(m)) for m in messages if m.is_told_in(question)]
    tallies = [_tally(m, causes, question, vanished=judge.has_vanished(m)) for m, causes in judged]
    cells, unsettled = cell_results(
        tallies,
        shards,
        question=question,
        history=history,
        damaged=frozenset(damaged),
        landed=_landed_rows(messages, question),
    )
    silent = silent_spans(
        history, question, {name: shard.patience for name, shard in shards.items()}
    )
    doubted, told = silenced(cells, silent, damaged=frozenset(damaged))
    cells = cells | doubted | told
    traced = frozenset(trace.shard_id for trace in history.traces)
    return Outcome(
        cells=cells,
        findings={
            (m.message_id, kind): _finding(m, kind, cause=cause, question=question)
            for m, causes in judged
            for kind, cause in causes.items()
        },
        verdict=audit_verdict(
            cells, tallies, question=question, damaged=frozenset(damaged), quiet=told.keys()
        ),
        held=unsettled
        | told.keys()
        | {cell for cell in cells if cell[1] in damaged}
        | thin_cells(tallies, question=question, traced=traced),
        trace_coverage=coverage(tallies),
        pending=frozenset(
            m.message_id
            for m, causes in judged
            if not m.rows and not causes and not judge.has_vanished(m)
        ),
        damaged=frozenset(start for start, sides in damaged.items() if "sink" in sides),
        quiet=tuple((s.shard_id, s.start, s.end) for s in silent if s.told),
        doubted=tuple((s.shard_id, s.start, s.end) for s in silent if not s.told),
        passed=passed_cells(history, shards, question),
    )


@dataclass(frozen=True)
class _Message:
    """One id with its distinct acknowledged attempts and its deliveries."""

    message_id: str
    traces: tuple[Trace, ...]
    rows: tuple[SinkRow, ...]

    @cached_property
    def counted(self) -> Trace | None:
        """The attempt that decides in which cell the id counts."""
        return min(self.traces, key=counting_order, default=None)

    @cached_property
    def home(self) -> tuple[str, datetime]:
        """Shard and time: of the attempt that counts, else of the least row."""
        if self.counted:
            return self.counted.shard_id, self.counted.sent_at
        return min((row.shard_id, row.sent_at) for row in self.rows)

    def seen_in(self, question: Question) -> "_Message":
        """As the window knows it: without a trace nothing leads to rows outside of it."""
        inside = tuple(row for row in self.rows if question.covers(row.sent_at))
        return self if self.traces or not inside else replace(self, rows=inside)

    def is_told_in(self, question: Question) -> bool:
        """Whether it counts in the window; or is doubled, and another attempt landed in it."""
        if question.covers(self.sent_at):
            return True
        attempts = {question.bucket_start(t.sent_at) for t in self.traces}
        landed = {question.bucket_start(r.sent_at) for r in self.rows}
        return len(self.rows) > 1 and any(map(question.covers, attempts & landed))

    def cell(self, question: Question) -> Cell:
        """The cell that it counts in; where that lies outside, the least in which it landed."""
        if question.covers(self.sent_at):
            return self.shard_id, question.bucket_start(self.sent_at)
        return min(
            (row.shard_id, question.bucket_start(row.sent_at))
            for row in self.rows
            if question.covers(row.sent_at)
        )

    @property
    def shard_id(self) -> str:
        return self.home[0]

    @property
    def sent_at(self) -> datetime:
        return self.home[1]

    @property
    def arrived_at(self) -> datetime:
        """When Kinesis took its last attempt, as far as is known."""
        return max((trace.arrived_at for trace in self.traces), default=self.sent_at)


def _messages(history: History, question: Question) -> list[_Message]:
    traces: dict[str, dict[tuple[str, str | None, datetime], Trace]] = defaultdict(dict)
    for trace in sorted(history.traces, key=lambda trace: (trace.batch, trace.sent_at)):
        start = question.bucket_start(trace.sent_at)
        key = (trace.shard_id, trace.sequence_number, start)
        traces[trace.message_id].setdefault(key, trace)
    rows: dict[str, list[SinkRow]] = defaultdict(list)
    for row in history.rows:
        rows[row.message_id].append(row)
    return [
        _Message(message_id, tuple(traces[message_id].values()), tuple(rows[message_id]))
        for message_id in sorted(traces.keys() | rows.keys())
    ]


def _shards(history: History, messages: list[_Message], question: Question) -> dict[str, Shard]:
    """Every shard that a trace names, that a row landed on, or that Kinesis told of."""
    producing = {m.shard_id for m in messages if m.counted}
    seen = history.known_shards | {trace.shard_id for trace in history.traces}
    sent: dict[str, list[str]] = defaultdict(list)
    for trace in history.traces:
        sent[trace.shard_id] += [trace.sequence_number] if trace.sequence_number else []
    rows: dict[str, list[SinkRow]] = {shard_id: [] for shard_id in seen}
    left: dict[str, list[SinkRow]] = defaultdict(list)
    for row in history.rows:
        rows.setdefault(row.shard_id, []).append(row)
    for gone in history.left:
        rows.setdefault(gone.row.shard_id, [])
        left[gone.row.shard_id].append(gone.row)
    return {
        shard_id: shard_facts(
            own, left[shard_id], question, produced=shard_id in producing, sent=sent[shard_id]
        )
        for shard_id, own in rows.items()
    }


def _landed_rows(messages: list[_Message], question: Question) -> Counter[Cell]:
    """How many rows each cell has.

    Those of an id with attempts on both sides of the window's edge count where it does; where that
    is outside of the window, all but one: with that one it is matched there.
    """
    landed: Counter[Cell] = Counter()
    for message in messages:
        if len({question.covers(trace.sent_at) for trace in message.traces}) < 2:
            landed.update((r.shard_id, question.bucket_start(r.sent_at)) for r in message.rows)
        elif message.is_told_in(question):
            extra = len(message.rows) - (not question.covers(message.sent_at))
            landed[message.cell(question)] += extra
    return landed


def _damaged(history: History, question: Question) -> Sides:
    """The window's damaged buckets with the sides (traces, sink) that are damaged there."""
    sides: Sides = defaultdict(set)
    for damage in history.damaged:
        for start in question.buckets:
            if damage.feeds(start, question.bucket):
                sides[start].add(damage.side)
    return dict(sides)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Says of an id what is wrong with it."""

    question: Question
    shards: dict[str, Shard]
    damaged: Sides
    known: Mapping[Cell, Known]
    missing: frozenset[str]

    def has_vanished(self, message: _Message) -> bool:
        """Whether it landed once, and was deleted when its cell had left the stream."""
        start = self.question.bucket_start(message.sent_at)
        cell = (message.shard_id, start)
        is_dark = "sink" in self.damaged.get(start, set())
        if message.rows or is_dark or cell not in self.known:
            return False
        known, counted = self.known[cell], message.counted
        if counted is None:
            return False
        if known.by_ledger is not None and counted.batch <= known.by_ledger:
            return True
        places = {(t.shard_id, self.question.bucket_start(t.sent_at)) for t in message.traces}
        is_in_time = known.by_audit is None or counted.batch <= known.by_audit
        if len(places) == 1:
            is_known = known.by_audit is not None
        else:
            until = self.question.deadline(message.arrived_at)
            is_known = known.seen_at is not None and known.seen_at > until
        return is_known and is_in_time and message.message_id not in self.missing

    def causes(self, message: _Message) -> dict[Kind, Cause]:
        """One cause per kind; none for an id that is well, or that did not land but still may."""
        damaged_sides = self.damaged.get(self.question.bucket_start(message.sent_at), set())
        if message.rows:
            return _landed_causes(message, damaged_sides)
        if "sink" in damaged_sides or self.has_vanished(message):
            return {}
        cause = self._missing_cause(message)
        return {Kind.MISSING: cause} if cause else {}

    def _missing_cause(self, message: _Message) -> Cause | None:
        cause = self._home_cause(message)
        ahead = [t for t in message.traces if self._is_ahead_elsewhere(t, message)]
        if cause is not Cause.LOST or not ahead:
            return cause
        shards = [self.shards[trace.shard_id] for trace in ahead]
        stopped = (s for s in shards if s.has_not_started or s.is_resting)
        late = [s for s in stopped if self._is_overdue(message, s)]
        return Cause.STUCK if len(late) == len(shards) else None

    def _is_overdue(self, message: _Message, shard: Shard) -> bool:
        return self.question.as_of - message.arrived_at > shard.patience

    def _is_ahead_elsewhere(self, trace: Trace, message: _Message) -> bool:
        """Whether the consumer of another shard may still come to that attempt."""
        shard, number = self.shards[trace.shard_id], trace.sequence_number
        if trace.shard_id == message.shard_id or not number:
            return False
        if shard.has_not_started or not shard.has_position:
            return shard.has_not_started
        if self._is_overdue(message, shard) and is_passed(number, shard.untimed_frontier, shard):
            return False
        return not is_passed(number, shard.settled_frontier, shard)

    def _home_cause(self, message: _Message) -> Cause | None:
        shard = self.shards[message.shard_id]
        number = message.counted.sequence_number if message.counted else None
        attempts = [t.sequence_number for t in message.traces if t.shard_id == message.shard_id]
        numbered = [n for n in attempts if n]
        overdue = self._is_overdue(message, shard)
        if shard.has_not_started:
            return Cause.STUCK if overdue else None
        # The consumer may still land an attempt that it has not come to.
        last = max(numbered, key=number_order) if number else None
        if is_passed(last, shard.settled_frontier, shard):
            return Cause.LOST
        if overdue and is_passed(last, shard.untimed_frontier, shard):
            return Cause.LOST
        if number is None or not shard.has_position:
            return Cause.LOST if overdue else None
        return Cause.STUCK if shard.is_resting and overdue else None


def _landed_causes(message: _Message, damaged_sides: set[str]) -> dict[Kind, Cause]:
    causes: dict[Kind, Cause] = {}
    if len(message.rows) >= 2:
        causes[Kind.DUPLICATED] = _duplicate_cause(message.rows)
    if not message.traces:
        causes[Kind.UNTRACED] = Cause.UNKNOWN if "traces" in damaged_sides else Cause.TRACE_LOSS
    elif {row.shard_id for row in message.rows}.isdisjoint(t.shard_id for t in message.traces):
        causes[Kind.MOVED] = Cause.RESHARD
    return causes


def _duplicate_cause(rows: tuple[SinkRow, ...]) -> Cause:
    if any(row.own for row in rows):
        return Cause.BACKFILL
    records = {(row.shard_id, row.sequence_number) for row in rows if row.sequence_number}
    if not records:
        return Cause.UNKNOWN
    return Cause.CONSUMER_REPLAY if len(records) == 1 else Cause.PRODUCER_RETRY


def _finding(message: _Message, kind: Kind, *, cause: Cause, question: Question) -> Finding:
    numbers = {trace.sequence_number for trace in message.traces}
    numbers |= {row.sequence_number for row in message.rows}
    landings = [row.landed_at for row in message.rows if row.landed_at]
    arrived_at = message.arrived_at if kind is Kind.MISSING else None
    deadline = arrived_at and question.deadline(arrived_at)
    is_expired = deadline is not None and question.as_of > deadline
    return Finding(
        cause=cause,
        state=State.EXPIRED if is_expired else State.OPEN,
        shard_id=message.shard_id,
        sent_at=message.sent_at,
        sent_count=len(message.traces),
        landed_count=len(message.rows),
        sequence_numbers=tuple(sorted((n for n in numbers if n), key=number_order)),
        recoverable_until=deadline,
        arrived_at=arrived_at,
        first_landed_at=min(landings, default=None),
        last_landed_at=max(landings, default=None),
    )


def _tally(
    message: _Message, causes: dict[Kind, Cause], question: Question, *, vanished: bool
) -> Tally:
    return Tally(
        cell=message.cell(question),
        sent=bool(message.traces),
        landed_rows=len(message.rows),
        counts=question.covers(message.sent_at),
        causes=causes,
        vanished=vanished,
    )
