"""What a repair must leave of the planted faults, against the findings and cells after it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.model.verdict import Kind, State, Verdict
from shardaudit.model.words import counted, messages
from shardaudit.report.plain import cell
from tools.demo_result import FoundPlanted, Row, match_planted

Cell = tuple[str, datetime]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REPAIRED = {Kind.MISSING, Kind.DUPLICATED}


@dataclass(frozen=True, slots=True)
class FaultLine:
    """The planted messages of one fault, and in which state their findings are."""

    fault: str
    kind: str
    planted: int
    states: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DemoRepair:
    """What came of a repair. `findings`: as they must be now against as they are.

    `beyond`: messages that no repair brings back or changes; `cells_ok` and `cells_not_ok` of the
    last audit; `unexpected`: cells that should be otherwise.
    """

    faults: tuple[FaultLine, ...]
    findings: FoundPlanted
    beyond: int
    cells_ok: int
    cells_not_ok: int
    unexpected: int

    @property
    def is_done(self) -> bool:
        """Whether all is as it must be."""
        return self.findings.is_equal and not self.unexpected


def repaired(
    planted: Iterable[Row], found: Iterable[Row], cells: Iterable[Row], *, bucket: timedelta
) -> DemoRepair:
    """The findings and the cells (of one audit) after a repair, against what was planted.

    What was open and missing or duplicated must be recovered, all else as it was; and every cell
    must be ok but those of messages that have expired, were never traced, or were moved.
    """
    wanted, got, judged = [_after(row) for row in planted], list(found), list(cells)
    left = [row for row in wanted if row["state"] != State.RECOVERED]
    not_ok = {_cell(row) for row in judged if row["verdict"] != Verdict.OK}
    expected = {(row["shard_id"], _bucket_of(row["sent_at"], bucket)) for row in left}
    return DemoRepair(
        faults=_faults(wanted, got),
        findings=match_planted(wanted, got),
        beyond=len(left),
        cells_ok=len(judged) - len(not_ok),
        cells_not_ok=len(not_ok),
        unexpected=len(not_ok ^ expected),
    )


def repair_view(repair: DemoRepair) -> RenderableType:
    """The repair for people."""
    table = Table(
        title="\nPlanted, and after the repair", title_justify="left", box=box.SIMPLE_HEAD
    )
    states = (State.RECOVERED, State.EXPIRED, State.OPEN)
    for name in ("fault", "kind"):
        table.add_column(name)
    for name in ("planted", *states, "anything else"):
        table.add_column(name, justify="right")
    for line in repair.faults:
        counts = dict(line.states)
        shown = [counts.pop(state, 0) for state in states]
        numbers = (line.planted, *shown, sum(counts.values()))
        table.add_row(cell(line.fault), cell(line.kind), *(f"{n:,}" for n in numbers))
    said = (
        f"an audit after it: {counted(repair.cells_ok, 'cell')} ok, {repair.cells_not_ok:,} not: "
        f"those of {messages(repair.beyond)} that have expired, were never traced, or were moved"
    )
    if repair.is_done:
        ending = Text(f"{said}: as planted", style="bold green")
    else:
        wrong = len(repair.findings.not_found + repair.findings.not_planted)
        wrong += len(repair.findings.different)
        ending = Text(
            f"{said}\n{wrong:,} findings and {repair.unexpected:,} cells are not as planted",
            style="bold red",
        )
    return Group(table, ending)


def _after(row: Row) -> Row:
    """The finding as it must be after the repair.

    What expired stays as it was: the rows of a backfill are no progress of the consumer.
    """
    if row["state"] == State.OPEN and row["kind"] in _REPAIRED:
        return {**row, "state": State.RECOVERED.value}
    return row


def _cell(row: Row) -> Cell:
    return row["shard_id"], row["bucket_start"]


def _bucket_of(instant: datetime, bucket: timedelta) -> datetime:
    return instant - (instant - _EPOCH) % bucket


def _faults(planted: Iterable[Row], found: Iterable[Row]) -> tuple[FaultLine, ...]:
    state = {(row["message_id"], row["kind"]): str(row["state"]) for row in found}
    by_fault: dict[tuple[str, str], Counter[str]] = {}
    for row in planted:
        counts = by_fault.setdefault((row["fault"], row["kind"]), Counter())
        counts[state.get((row["message_id"], row["kind"]), "not found")] += 1
    return tuple(
        FaultLine(fault, kind, counts.total(), tuple(sorted(counts.items())))
        for (fault, kind), counts in sorted(by_fault.items())
    )
