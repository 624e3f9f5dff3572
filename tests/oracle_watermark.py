"""The oracle's watermark: a list of every cell that was ever audited, walked from the first on."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from shardaudit.model.verdict import LIVE, Cause, Kind, State
from tests.history import (
    Cell,
    Departure,
    Finding,
    FindingKey,
    History,
    Outcome,
    Question,
    number_order,
)
from tests.oracle_places import counting_order, with_places
from tests.oracle_vanished import last_arrivals

SETTLED = {State.RECOVERED, State.FALSE_ALARM, State.ACCEPTED}
LACKING = {Kind.MISSING, Kind.DUPLICATED}
ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass
class Contents:
    """The ids of a cell: those that were sent, and one for each row that landed.

    `traced`: one for each trace, also of ids that count elsewhere.
    """

    sent: list[str] = field(default_factory=list)
    traced: list[str] = field(default_factory=list)
    landed: list[str] = field(default_factory=list)


@dataclass
class Record:
    """What the published audits of a stream said of each cell, the newest of them.

    `held`: by shard and bucket, whether the cell could not be called complete. `looked_at`: the
    buckets of all audits, since the beginning of the `first`. `changed`: cells that nobody looked
    at since they changed; `known`: what was in each cell at the last audit; `doubted`: cells of a
    silence that is longer than usual, as of the latest audit; `is_traced`: a trace was ever read;
    `departed`: how many rows had left by the last audit.
    """

    bucket: timedelta
    held: dict[str, dict[datetime, bool]] = field(default_factory=lambda: defaultdict(dict))
    first: datetime | None = None
    looked_at: set[datetime] = field(default_factory=set)
    newest: dict[str, datetime] = field(default_factory=dict)
    changed: set[Cell] = field(default_factory=set)
    known: dict[Cell, Contents] = field(default_factory=dict)
    doubted: set[Cell] = field(default_factory=set)
    is_traced: bool = False
    departed: int = 0

    def count(
        self,
        outcome: Outcome,
        question: Question,
        history: History,
        findings: Mapping[FindingKey, Finding] | None = None,
    ) -> None:
        """One more audit, with the findings after it.

        As of an earlier time it knows less than what is there.
        """
        has_sent = any(cell.sent for cell in outcome.cells.values())
        self.is_traced |= has_sent or bool(history.traces)
        self.first = self.first or question.start
        stuck = _stuck_cells(findings or {}, question) & outcome.passed
        self._note_changes(history, question, findings or {}, since=self.first, passed=stuck)
        shards = {shard_id for shard_id, _ in outcome.cells} | self.held.keys()
        for shard_id in shards:
            newest = self.newest.get(shard_id, question.as_of)
            for start in question.buckets:
                cell = (shard_id, start)
                is_seen = start in self.looked_at and start >= self.first
                if question.as_of >= newest or not is_seen or cell in self.changed:
                    self.held[shard_id][start] = cell in outcome.held
                    self.changed.discard(cell)
            self.newest[shard_id] = max(newest, question.as_of)
            if question.as_of >= newest:
                self.doubted = {cell for cell in self.doubted if cell[0] != shard_id}
        self.looked_at |= set(question.buckets)
        for shard_id, since, until in outcome.quiet:
            for start in self._within(since, until):
                self.held[shard_id][start] = True
        for shard_id, since, until in outcome.doubted:
            self.doubted |= {(shard_id, start) for start in self._within(since, until)}

    def _within(self, since: datetime, until: datetime) -> list[datetime]:
        first = self.first or since
        return [at for at in self.looked_at if since <= at < until and at >= first]

    def _note_changes(
        self,
        history: History,
        question: Question,
        findings: Mapping[FindingKey, Finding],
        *,
        since: datetime,
        passed: Set[Cell],
    ) -> None:
        now, last = contents(history, question), last_arrivals(history, question)
        until = max([*(at + self.bucket for at in self.looked_at), question.end])
        for cell in _came_by_number(history, question, since=since, until=until):
            last[cell] = max(last[cell], since + self.bucket)
        known, self.known = self.known, now
        cleared, come = _touched_buckets(known, now, history, question)
        gone = _departures(history.left[self.departed :], question)
        self.departed = len(history.left)
        has_doubled, has_untraced = (
            {
                (finding.shard_id, question.bucket_start(finding.sent_at))
                for (_, kind), finding in findings.items()
                if kind is wanted and finding.state not in SETTLED
            }
            for wanted in (Kind.DUPLICATED, Kind.UNTRACED)
        )
        if now != known:
            self.changed |= {cell for cell in passed if now[cell].sent != now[cell].landed}
        for cell in now.keys() | known.keys():
            found = now.get(cell, Contents())
            came_by = last.get(cell, cell[1] + question.bucket)
            went_by = gone.get(cell, question.as_of)
            is_gone = question.deadline(came_by) < went_by and all(
                min(came_by + was.length, was.ended_by)
                <= max(self.newest.values(), default=question.as_of)
                for was in question.longer
            )
            is_lacking = len(found.landed) < len(found.sent)
            is_as_known = is_lacking and cell not in come and cell[1] not in come
            is_cleared = cell[1] in cleared and cleared[cell[1]]
            is_told = not (is_gone and (is_cleared or is_as_known))
            differs = found.sent != found.landed
            has_too_many = len(found.landed) > len(found.sent)
            had_too_many = cell in has_doubled or (cell in has_untraced and cell in come)
            if (
                cell[1] in cleared
                and self._is_of_time(cell, came_by if cell in last else None, since=since)
                and ((differs and is_told) or (not has_too_many and had_too_many))
            ):
                self.changed.add(cell)

    def _is_of_time(self, cell: Cell, came_by: datetime | None, *, since: datetime) -> bool:
        """Whether a cell was audited; or lies before all that was, and messages came since."""
        if cell[1] >= since:
            return cell[1] in self.looked_at
        return came_by is not None and came_by > since

    def watermark(
        self, findings: Mapping[FindingKey, Finding], question: Question
    ) -> datetime | None:
        """Until when every shard is complete; None when there was never one, or no trace."""
        if not self.is_traced:
            return None
        lacking: dict[str, set[datetime]] = defaultdict(set)
        for (_, kind), finding in findings.items():
            if kind in LACKING and finding.state not in SETTLED:
                lacking[finding.shard_id].add(question.bucket_start(finding.sent_at))
        for shard_id, start in self.changed | self.doubted:
            lacking[shard_id].add(start)
        ends = [self._end(shard_id, lacking[shard_id]) for shard_id in self.held]
        return min(ends, default=None)

    def _end(self, shard_id: str, lacking: set[datetime]) -> datetime:
        cells, at = self.held[shard_id], self.first
        assert at is not None
        while at in self.looked_at and not cells.get(at) and at not in lacking:
            at += self.bucket
        before = [cell for cell, is_held in cells.items() if is_held]
        return min([at, *lacking, *before])


def _came_by_number(
    history: History, question: Question, *, since: datetime, until: datetime
) -> list[Cell]:
    """The cells with a number beyond the last of some cell of a time, on their shard."""
    numbers: dict[Cell, tuple[int, str]] = {}
    for trace in history.traces:
        if trace.sequence_number:
            cell = (trace.shard_id, question.bucket_start(trace.sent_at))
            number = number_order(trace.sequence_number)
            numbers[cell] = max(numbers.get(cell, number), number)
    given: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (shard_id, start), number in numbers.items():
        if since <= start < until:
            given[shard_id].append(number)
    return [cell for cell, number in numbers.items() if any(n < number for n in given[cell[0]])]


def _stuck_cells(findings: Mapping[FindingKey, Finding], question: Question) -> set[Cell]:
    """The cells of what was stuck and can be recovered."""
    return {
        (finding.shard_id, question.bucket_start(finding.sent_at))
        for (_, kind), finding in findings.items()
        if kind is Kind.MISSING and finding.cause is Cause.STUCK
        if finding.state in {*LIVE, State.ACCEPTED}
    }


def _departures(left: Sequence[Departure], question: Question) -> dict[Cell, datetime]:
    """When an ingest first missed a row of a cell, of those that say where they belong."""
    first: dict[Cell, datetime] = {}
    for gone in left:
        if not gone.row.lacks:
            cell = (gone.row.shard_id, question.bucket_start(gone.row.sent_at))
            first[cell] = min(first.get(cell, gone.seen_at), gone.seen_at)
    return first


def _touched_buckets(
    known: Mapping[Cell, Contents], now: Mapping[Cell, Contents], history: History, ask: Question
) -> tuple[dict[datetime, bool], set[Cell | datetime]]:
    """The buckets of cells that changed, and those that share a message with one of these.

    Each with whether rows left and nothing else happened. And to what more came: cells, and buckets
    that share a message with one of another bucket.
    """
    stands: dict[str, set[datetime]] = defaultdict(set)
    for trace in history.traces:
        stands[trace.message_id].add(ask.bucket_start(trace.sent_at))
    counted = {t.message_id: t for t in sorted(history.traces, key=counting_order, reverse=True)}
    linked: dict[datetime, set[datetime]] = defaultdict(set)
    for name, starts in stands.items():
        counts_in = ask.bucket_start(counted[name].sent_at)
        for start in starts:
            linked[start].add(counts_in)
            linked[counts_in].add(start)
    cleared: dict[datetime, bool] = {}
    come: set[Cell | datetime] = set()
    for cell in now.keys() | known.keys():
        was, found = known.get(cell, Contents()), now.get(cell, Contents())
        if was == found:
            continue
        has_landed = bool(Counter(found.landed) - Counter(was.landed))
        is_cleared = was.traced == found.traced and not has_landed
        for start in linked[cell[1]] | {cell[1]}:
            cleared[start] = cleared.get(start, True) and is_cleared
        if not is_cleared:
            come |= {cell, *(linked[cell[1]] - {cell[1]})}
    return cleared, come


def contents(history: History, question: Question) -> dict[Cell, Contents]:
    """What every cell holds, the ids in order."""
    found: dict[Cell, Contents] = defaultdict(Contents)
    counted = {t.message_id: t for t in sorted(history.traces, key=counting_order, reverse=True)}
    for trace in counted.values():
        cell = (trace.shard_id, question.bucket_start(trace.sent_at))
        found[cell].sent.append(trace.message_id)
    for trace in history.traces:
        cell = (trace.shard_id, question.bucket_start(trace.sent_at))
        found[cell].traced.append(trace.message_id)
    for row in with_places(history, read_from=ALWAYS).rows:
        found[row.shard_id, question.bucket_start(row.sent_at)].landed.append(row.message_id)
    for inside in found.values():
        inside.sent.sort()
        inside.traced.sort()
        inside.landed.sort()
    return dict(found)
