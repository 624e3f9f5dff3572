"""The oracle's cells: what their ids add up to, the verdicts, and how far all is well."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from shardaudit.model.verdict import Cause, Kind, Verdict
from tests.history import Cell, CellResult, History, Question, number_order
from tests.oracle_places import UNKNOWN_SHARD
from tests.oracle_quiet import SilentSpan
from tests.oracle_shards import Shard


@dataclass(frozen=True, slots=True)
class Tally:
    """What one id adds to its cell. `counts`: in this window, and not only in another one.

    `vanished`: it landed, though no row of it is there any more.
    """

    cell: Cell
    sent: bool
    landed_rows: int
    counts: bool
    causes: Mapping[Kind, Cause]
    vanished: bool = False

    @property
    def landed(self) -> bool:
        """Whether it ever landed."""
        return self.landed_rows > 0 or self.vanished

    @property
    def is_lost(self) -> bool:
        """Whether it was read and never landed."""
        return self.causes.get(Kind.MISSING) is Cause.LOST


def cell_results(
    tallies: list[Tally],
    shards: dict[str, Shard],
    *,
    question: Question,
    history: History,
    damaged: frozenset[datetime],
    landed: Counter[Cell],
) -> tuple[dict[Cell, CellResult], frozenset[Cell]]:
    """One result per shard and bucket of the window, whether anything happened in it or not.

    And the cells of which something is on its way, or still could be.
    """
    numbers: dict[Cell, list[tuple[int, str]]] = defaultdict(list)
    for trace in history.traces:
        if trace.sequence_number:
            cell = (trace.shard_id, question.bucket_start(trace.sent_at))
            numbers[cell].append(number_order(trace.sequence_number))
    ids: dict[Cell, list[Tally]] = defaultdict(list)
    for tally in tallies:
        ids[tally.cell].append(tally)
    results = {}
    unsettled = set()
    for shard_id, shard in shards.items():
        for start in question.buckets:
            cell = (shard_id, start)
            counts = _counts(ids[cell], landed=landed[cell])
            settled = _is_settled(
                shard, numbers[cell] if counts.sent else [], start=start, question=question
            )
            if counts.pending or not settled:
                unsettled.add(cell)
            verdict = (
                Verdict.INCONCLUSIVE
                if start in damaged
                else _verdict(ids[cell], counts, shard=shard, question=question, settled=settled)
            )
            results[cell] = replace(counts, verdict=verdict)
    return results, frozenset(unsettled)


def _counts(tallies: list[Tally], *, landed: int) -> CellResult:
    def count(holds: Callable[[Tally], bool]) -> int:
        return sum(1 for tally in tallies if holds(tally))

    return CellResult(
        sent=count(lambda t: t.sent and t.counts),
        landed=landed,
        matched=count(lambda t: t.sent and t.counts and t.landed),
        missing=count(lambda t: Kind.MISSING in t.causes),
        pending=count(lambda t: not t.landed and Kind.MISSING not in t.causes),
        duplicated=count(lambda t: Kind.DUPLICATED in t.causes),
        extra_rows=sum(t.landed_rows - 1 for t in tallies if t.landed_rows),
        untraced=count(lambda t: Kind.UNTRACED in t.causes),
        moved=count(lambda t: Kind.MOVED in t.causes),
        verdict=Verdict.OK,
        vanished=count(lambda t: t.vanished),
    )


def _verdict(
    tallies: list[Tally],
    counts: CellResult,
    *,
    shard: Shard,
    question: Question,
    settled: bool,
) -> Verdict:
    share = coverage(tallies)
    lost = any(t.is_lost for t in tallies)
    stuck = any(t.causes.get(Kind.MISSING) is Cause.STUCK for t in tallies)
    ordered = (
        (Verdict.SILENT, shard.has_not_started and counts.missing > 0),
        (Verdict.STALLED, stuck),
        (Verdict.MIXED, lost and counts.duplicated > 0),
        (Verdict.LOSS, lost),
        (Verdict.DUPLICATION, counts.duplicated > 0),
        (Verdict.INCONCLUSIVE, share is not None and share < question.trace_coverage_floor),
        (Verdict.UNTRACED, counts.untraced > 0 or counts.moved > 0),
        (Verdict.PENDING, counts.pending > 0 or not settled),
    )
    return next((verdict for verdict, holds in ordered if holds), Verdict.OK)


def _is_settled(
    shard: Shard, numbers: list[tuple[int, str]], *, start: datetime, question: Question
) -> bool:
    """Whether time is over, or the consumer has passed every attempt acknowledged in the cell."""
    if question.as_of - (start + question.bucket) >= shard.patience:
        return True
    frontier = shard.settled_frontier
    return bool(numbers) and frontier is not None and max(numbers) <= frontier


def coverage(tallies: Iterable[Tally]) -> float | None:
    """The share of the landed ids that have a trace; None when none landed."""
    landed = [tally for tally in tallies if tally.landed and tally.counts]
    return sum(1 for tally in landed if tally.sent) / len(landed) if landed else None


def audit_verdict(
    cells: Mapping[Cell, CellResult],
    tallies: list[Tally],
    *,
    question: Question,
    damaged: frozenset[datetime],
    quiet: Collection[Cell] = (),
) -> Verdict:
    """The worst verdict of the cells, but for what the shard as a whole may be forgiven.

    An audit of no cells saw nothing, and nothing is not success.
    """
    if not cells:
        return Verdict.INCONCLUSIVE
    by_shard = _by_shard(tallies)
    weighed = {
        cell.verdict
        if start in damaged or (shard_id, start) in quiet
        else _weighed(
            cell.verdict, by_shard[shard_id], question, is_thin=_is_thin(judged_by, question)
        )
        for (shard_id, start), cell in cells.items()
        for judged_by in [tallies if shard_id == UNKNOWN_SHARD else by_shard[shard_id]]
    }
    return next(verdict for verdict in Verdict if verdict in weighed)


def _by_shard(tallies: list[Tally]) -> dict[str, list[Tally]]:
    found: dict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        found[tally.cell[0]].append(tally)
    return found


def _is_thin(tallies: list[Tally], question: Question) -> bool:
    share = coverage(tallies)
    return share is not None and share < question.trace_coverage_floor


def _weighed(
    verdict: Verdict, of_shard: list[Tally], question: Question, *, is_thin: bool
) -> Verdict:
    """What a cell's verdict weighs in the audit, given its shard's numbers over the window."""
    lost = sum(1 for t in of_shard if t.is_lost)
    sent = sum(1 for t in of_shard if t.sent and t.counts)
    tolerated = lost == 0 or lost / sent <= question.tolerance
    if verdict is Verdict.LOSS and tolerated:
        return Verdict.OK
    if verdict is Verdict.MIXED and tolerated:
        return Verdict.DUPLICATION
    if verdict is Verdict.INCONCLUSIVE and not is_thin:
        return Verdict.UNTRACED
    return verdict


def silenced(
    cells: Mapping[Cell, CellResult], spans: list[SilentSpan], *, damaged: frozenset[datetime]
) -> tuple[dict[Cell, CellResult], dict[Cell, CellResult]]:
    """The empty cells in a silence that is open to doubt, and those in one that is told."""
    doubted: dict[Cell, CellResult] = {}
    told: dict[Cell, CellResult] = {}
    for (shard_id, start), cell in cells.items():
        around = [span for span in spans if span.covers(shard_id, start)]
        if cell.sent or cell.landed or start in damaged or not around:
            continue
        if around[0].told:
            told[shard_id, start] = replace(cell, verdict=Verdict.INCONCLUSIVE)
        else:
            doubted[shard_id, start] = replace(cell, verdict=Verdict.PENDING)
    return doubted, told


def thin_cells(
    tallies: list[Tally], *, question: Question, traced: frozenset[str]
) -> frozenset[Cell]:
    """The cells that have too few traces to be called complete.

    A shard may be forgiven a thin cell, not a thin window; one that never had a trace is no part of
    what the producers log. Ids on no known shard are of the whole stream.
    """
    by_cell: dict[Cell, list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_cell[tally.cell].append(tally)
    thin = {name for name, of in _by_shard(tallies).items() if _is_thin(of, question)} & traced
    thin -= {UNKNOWN_SHARD}
    if traced and _is_thin(tallies, question):
        thin.add(UNKNOWN_SHARD)
    return frozenset(
        cell for cell, of_cell in by_cell.items() if cell[0] in thin and _is_thin(of_cell, question)
    )
