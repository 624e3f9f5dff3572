"""A plan as a person decides on it, and its end when the answer is no; without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.backfill.rules.approval import policy_of
from shardaudit.backfill.rules.planned import (
    Repair,
    StoredDedupe,
    StoredWindow,
    WindowState,
    window_order,
)
from shardaudit.backfill.rules.ranges import ASKED_FOR
from shardaudit.model.config.settings import Settings
from shardaudit.model.route.filters import filters
from shardaudit.model.tables.audit_tables import WATERMARKS
from shardaudit.model.tables.backfill_tables import BACKFILL_GAPS, BACKFILLS, DEDUPES
from shardaudit.model.tables.table import Table
from shardaudit.model.watermark import first_unjudged, holds_from_json
from shardaudit.model.window import EPOCH, Window
from shardaudit.model.words import counted, length, messages
from shardaudit.report.plain import harmless, instant
from shardaudit.store.audits import read_eras, read_rows
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import AN_AUDIT

_SHOWN_WINDOWS = 50
_MIB = 2**20

_TABLES = {Repair.MISSING: BACKFILLS, Repair.DUPLICATES: DEDUPES}


@dataclass(frozen=True, slots=True)
class WindowLine:
    """One window of a plan, by the names of the backfills table."""

    window_id: str
    shard_id: str
    window_start: datetime
    window_end: datetime
    start_sequence_number: str | None
    end_sequence_number: str | None
    because: str
    expected_ids: int
    estimated_records: int
    estimated_bytes: int
    estimated_calls: int
    estimated_seconds: float
    deadline: datetime
    feasible: bool
    state: WindowState
    read_records: int | None
    merged_rows: int | None
    expired_from: datetime | None
    expired_to: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan before it is run. `minutes`: when all its shards are read at once.

    `extension`: the retention that makes it feasible; `stuck_left_out`: messages behind a stopped
    shard that are not in it; `before_run`: what must be set first, None when nothing is in the way;
    `lands_filtered`, `beyond_sample`, `on_its_way`: of the functions of these names. `handed_over`:
    other plans, to which what they have to bring is left. `notes`: why nothing is known.
    """

    plan_id: str
    stream: str
    as_of: datetime
    windows: tuple[WindowLine, ...]
    stages: tuple[str, ...]
    minutes: float
    extension: timedelta | None
    stuck_left_out: int
    before_run: str | None
    lands_filtered: str | None = None
    beyond_sample: str | None = None
    on_its_way: str | None = None
    handed_over: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """A plan after a run. Messages: brought back, expired, and still missing.

    `engine`: the name and version of what ran it.
    """

    plan_id: str
    stream: str
    approved_by: str
    windows: tuple[WindowLine, ...]
    audit_id: str | None
    recovered: int
    expired: int
    left: int
    engine: str
    beyond_sample: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether every window came to its end."""
        return all(line.state.is_over for line in self.windows)


def window_lines(windows: Sequence[StoredWindow]) -> tuple[WindowLine, ...]:
    """The windows as a report shows them."""
    names = [field.name for field in fields(WindowLine)]
    return tuple(WindowLine(**{name: getattr(one, name) for name in names}) for one in windows)


def minutes_to_read(windows: Sequence[StoredWindow]) -> float:
    """Until the slowest shard is read: shards are read at once, a shard's windows in turn."""
    by_shard: dict[str, float] = {}
    for one in windows:
        by_shard[one.shard_id] = by_shard.get(one.shard_id, 0.0) + one.estimated_seconds
    return round(max(by_shard.values(), default=0.0) / 60, 1)


def lands_filtered(settings: Settings, windows: Sequence[StoredWindow]) -> str | None:
    """What a plan lands that filters of the route left out by design; None: nothing.

    Input:
        windows: of one plan, one at least.
    """
    of = filters(settings.stream(windows[0].stream).route)
    if any(window.because == ASKED_FOR for window in windows):
        said, why = of, "by hand all that was sent in the range is landed"
    else:
        in_plan = pc.field("plan_id") == windows[0].plan_id
        of_gaps = read_rows(settings, BACKFILL_GAPS, where=in_plan)
        said = tuple(each for each in of if not each.tells) if of_gaps else ()
        why = 'of gaps all is landed but what a place with share = "traced" left out'
    if not said:
        return None
    names = ", ".join(harmless(name) for each in said for name in each.places)
    return f"what {names} left out by design is landed, too: {why}"


def beyond_sample(settings: Settings, windows: Sequence[StoredWindow]) -> str | None:
    """What a plan does not bring back, as no trace names it; None: it brings all that lacks.

    Input:
        windows: of one plan, one at least.
    """
    if windows[0].takes_all:
        return None
    eras = read_eras(settings, windows[0].stream)
    times = (window.sent or Window(window.window_start, window.window_end) for window in windows)
    rate = min(shape.sample_rate for time in times for _, shape in eras.parts(time))
    if rate == 1:
        return None
    return (
        f"of a sample of {rate:.4g} of all ids: what else lacks beside these messages has no trace "
        "and stays away; a plan of a range by hand (--from, --to) brings all that the sink lacks"
    )


def on_its_way(settings: Settings, windows: Sequence[StoredWindow]) -> str | None:
    """From when on a range by hand holds what may land by itself, too; None: audits judged it all.

    Of a shard that no audit saw they say as much as of the others: there was nothing of it.
    """
    asked = [(one.shard_id, one.sent) for one in windows if one.because == ASKED_FOR and one.sent]
    if not asked:
        return None
    rows = read_rows(settings, WATERMARKS, where=pc.field("stream") == windows[0].stream)
    ends = {row["shard_id"]: row["audited_until"] for row in rows}
    last = max(ends.values(), default=EPOCH)
    holds = {row["shard_id"]: holds_from_json(row["holds"]) for row in rows}
    since: dict[str, datetime] = {}
    for shard_id, sent in asked:
        until = ends.get(shard_id, last)
        judged = first_unjudged(holds.get(shard_id, ()), audited_until=until, since=sent.start)
        if judged < sent.end:
            at = max(judged, sent.start)
            since[shard_id] = min(at, since.get(shard_id, at))
    if not since:
        return None
    return (
        f"no audit has judged yet what was sent to {counted(len(since), 'shard')} from "
        f"{instant(min(since.values()))} on: what of it is on its way lands by itself, and stands "
        "twice after a run of this plan; an audit until then tells which messages lack"
    )


def plan_markdown(
    windows: Sequence[StoredWindow], *, as_of: datetime, notes: Sequence[str | None]
) -> str:
    """What the plan reads and costs, until when it can work, and its windows.

    Input:
        notes: of `lands_filtered`, `beyond_sample` and `on_its_way`.
    """
    stream, minutes = windows[0].stream, minutes_to_read(windows)
    ids = sum(line.expected_ids for line in windows)
    size = sum(line.estimated_bytes for line in windows) // _MIB
    calls = sum(line.estimated_calls for line in windows)
    first = min(line.deadline for line in windows)
    late = sum(not line.feasible for line in windows)
    shards = len({line.shard_id for line in windows})
    lines = [
        f"**{messages(ids)}** of `{stream}` are to be read again from "
        f"{counted(shards, 'shard')}, and those that the sink does not have are inserted.",
        "",
        f"- at most {size:,} MiB in {counted(calls, 'call')}, about {minutes:,.1f} minutes",
        f"- the first leave the stream at {instant(first)} ({_left(first - as_of)})",
        *(f"- **{note}**" for note in notes if note),
        *(
            [f"- **{counted(late, 'window')} cannot be read before their deadline**"]
            if late
            else []
        ),
        "",
        "| deadline | shard | from | to | why | messages | at most MiB |",
        "|---|---|---|---|---|--:|--:|",
        *(_row(line) for line in window_lines(windows[:_SHOWN_WINDOWS])),
    ]
    if len(windows) > _SHOWN_WINDOWS:
        more = counted(len(windows) - _SHOWN_WINDOWS, "window")
        lines.append(f"\n… and {more} more")
    return "\n".join(lines)


def dedupe_markdown(stream: str, *, ids: int, extra_rows: int) -> str:
    """What a dedupe removes."""
    return (
        f"**{messages(ids)}** of `{stream}` stand more than once in the sink. The first row of "
        f"each stays; **{counted(extra_rows, 'row')}** will be removed, and kept in the table "
        "`removed_rows`."
    )


def _row(line: WindowLine) -> str:
    shard = harmless(line.shard_id).replace("|", "\\|")
    parts = (
        instant(line.deadline),
        shard,
        instant(line.window_start),
        instant(line.window_end),
        line.because,
        f"{line.expected_ids:,}",
        f"{line.estimated_bytes // _MIB:,}",
    )
    return f"| {' | '.join(parts)} |"


def _left(left: timedelta) -> str:
    return f"{length(left)} left" if left > timedelta(0) else "gone"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stored plan that is not over, and what a person reads of it.

    `policy`: the name under which policy lets it run; None: a person approves it. `shards`: those
    of its windows; a dedupe has none.
    """

    plan_id: str
    markdown: str
    policy: str | None
    shards: frozenset[str] = frozenset()


def proposal(settings: Settings, plan_id: str, *, as_of: datetime) -> Proposal | None:
    """The backfill of that id; None when all of it is over."""
    waiting = _waiting(settings, BACKFILLS, plan_id)
    if not waiting:
        return None
    windows = sorted(
        (StoredWindow.of(row) for row in waiting), key=lambda window: window_order(window.window_id)
    )
    notes = [note(settings, windows) for note in (lands_filtered, beyond_sample, on_its_way)]
    text = plan_markdown(windows, as_of=as_of, notes=notes)
    backfill = settings.stream(windows[0].stream).backfill
    shards = frozenset(window.shard_id for window in windows)
    return Proposal(plan_id, text, policy_of(windows, backfill), shards)


def dedupe_proposal(settings: Settings, plan_id: str) -> Proposal | None:
    """The dedupe of that id; None when it is over."""
    waiting = _waiting(settings, DEDUPES, plan_id)
    if not waiting:
        return None
    [plan] = map(StoredDedupe.of, waiting)
    text = dedupe_markdown(plan.stream, ids=plan.ids, extra_rows=plan.extra_rows)
    return Proposal(plan_id, text, policy_of([plan], settings.stream(plan.stream).backfill))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """How many rows of a plan were cancelled, and which states the others are in."""

    rows: int
    others: tuple[WindowState, ...]


def cancel_plan(
    settings: Settings, plan_id: str, *, what: Repair, reason: str, now: datetime
) -> Cancelled:
    """Ends what nobody ran of a plan; `reason` says who did it.

    Raises:
        WarehouseBusyError: nobody gave the warehouse back within an hour.
    """
    table = _TABLES[what]
    with warehouse_lock(settings, owner=f"cancel {plan_id}", timeout=AN_AUDIT) as held:
        rows = read_rows(settings, table, where=pc.field("plan_id") == plan_id)
        changes = {"state": WindowState.CANCELLED.value, "error": reason, "updated_at": now}
        waiting = [row | changes for row in rows if row["state"] == WindowState.PLANNED]
        if waiting:
            DeltaRs(settings.warehouse, settings.aws, check=held.check).upsert(waiting, table)
    others = {WindowState(row["state"]) for row in rows} - {WindowState.PLANNED}
    return Cancelled(len(waiting), tuple(sorted(others)))


def _waiting(settings: Settings, table: Table, plan_id: str) -> list[Row]:
    rows = read_rows(settings, table, where=pc.field("plan_id") == plan_id)
    return [row for row in rows if not WindowState(row["state"]).is_over]
