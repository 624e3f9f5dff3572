"""The ledger of an audit's window: which cells differ, which are gaps, what is only counted."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, held, own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import beside
from shardaudit.audit.evidence import Sources
from shardaudit.audit.kept_days import days_of
from shardaudit.audit.placing import buckets_of
from shardaudit.audit.route.filtered import Filtered, filtered
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.carried import (
    Carried,
    with_bucket_digest,
)
from shardaudit.audit.rules.cells import (
    compared_cells,
    gaps_no_more,
    grid,
    most_unsent,
    with_unsent,
)
from shardaudit.audit.rules.drill_down import with_hash
from shardaudit.audit.rules.gaps import MOST_NAMED, is_bare, small_lacking, with_bare, with_gaps
from shardaudit.audit.rules.ledger_hours import LedgerSums
from shardaudit.audit.rules.patience import looked_back, patiences, week_bins
from shardaudit.audit.rules.shard_facts import shard_facts, with_behind_parent
from shardaudit.audit.rules.vanished import (
    Deadlines,
    Past,
    overdue_cells,
    vanished_cells,
    with_vanished,
)
from shardaudit.columns.instants import bucket_start, in_windows
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_hash
from shardaudit.columns.shard_listings import closed_shards
from shardaudit.ingest.ask_kinesis import parents_of
from shardaudit.ingest.rules.lineage import behind_parents
from shardaudit.model.input_columns import CANARY
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import STANDING, ConsumerState, Kind
from shardaudit.store.newest_cells import audited_cells
from shardaudit.store.transitions import findings_in
from shardaudit.store.warehouse import Warehouse

# What of its sums is asked of each cell of a grid: the others are of shards and hours.
_OF_GRID = (
    *CELL,
    *(f"{side}_{name}" for side in ("sent", "landed") for name in SUMS),
    *("ledger_rows", "sent_key", "first_key", "first_arrival", "last_arrival"),
)
MOST_AT_ONCE = 8_000_000  # traces and rows of which the ids are grouped at once


def deadlines(request: AuditRequest, both: Sources) -> Deadlines:
    """By which the cells of an audit have left the stream."""
    damage = both.planted.plan.judged_damage
    return Deadlines(request.stream.bucket, request.retention, request.as_of, damage)


def past(warehouse: Warehouse, request: AuditRequest, both: Sources, shards: Iterable[Row]) -> Past:
    """What the audit has to know of earlier times; of the canary alone where no row ever left.

    Input:
        shards: the stream's own: `has_lost_rows` of `shard_facts`.
    """
    planted = both.planted
    of_canary = Past(
        planted.ledger,
        planted.batches,
        planted.audited,
        planted.missing,
    )
    if not any(row.has_lost_rows for row in shards):
        return of_canary
    batches = warehouse.read(BATCHES).where(F.col("stream") == request.name)
    audited = audited_cells(warehouse, request.name, request.aligned, but=request.audit_id)
    findings = findings_in(warehouse, request.name, Kind.MISSING, *STANDING)
    findings = findings.where(in_windows(F.col("sent_at"), [request.aligned]))
    return Past(
        both.ledger(days_of([request.aligned])),
        beside(planted.batches, batches.select("batch_id", "number", "planned_at")),
        planted.audited
        if audited is None
        else beside(planted.audited, audited.select(*planted.audited.columns)),
        beside(planted.missing, findings.select("message_id")),
        _read_later(warehouse, request),
    )


def _read_later(warehouse: Warehouse, request: AuditRequest) -> datetime | None:
    """When the stream's sink was last looked at, where that was after the time that is asked for.

    By an ingest that found something new.
    """
    of_sink = (pc.field("stream") == request.name) & (pc.field("side") == "sink")
    later = of_sink & (pc.field("planned_at") > pc.scalar(request.as_of))
    return max((row["planned_at"] for row in warehouse.rows(BATCHES, where=later)), default=None)


@dataclass(frozen=True, slots=True)
class WindowLedger:
    """The ledger's cells, the grid's with both fingerprints, the facts of each shard.

    `sums`: of `keep_ledger_sums`; `cells`: of `with_gaps`; `named`, `standing`: of `with_bare`;
    `shards`: of `Comparison`; `missing`: of `Past`; `unsent`: of `drill_down.unsent`, those that
    are only counted; None: all are named; `most_unsent`, `gaps_no_more`: of the rules of these
    names; `filtered`: of `filtered`: the cells are without what is settled.
    """

    sums: LedgerSums
    cells: DataFrame
    facts: DataFrame
    shards: list[Row]
    missing: DataFrame
    named: DataFrame
    standing: DataFrame
    most_unsent: int
    gaps_no_more: int
    unsent: DataFrame | None = None
    filtered: Filtered | None = None

    @property
    def may_have_unsent(self) -> bool:
        """Whether there may be ids that are only counted, so that they have to be looked for."""
        return self.most_unsent > MOST_NAMED or self.gaps_no_more > 0

    def buckets_of_left(self, are_such: Column) -> list[datetime]:
        """The buckets of such cells; none where no row ever left the sink."""
        has_left = any(row.has_lost_rows for row in self.shards)
        return buckets_of(self.cells.where(are_such)) if has_left else []


def window_ledger(
    warehouse: Warehouse, request: AuditRequest, both: Sources, sums: LedgerSums
) -> WindowLedger:
    """The ledger of an audit's window, and of the canary; read.

    Input:
        sums: of `keep_ledger_sums`.
    """
    stream, window = request.stream, request.aligned
    facts, told = _facts(warehouse, request, both, sums)
    windows = [window, *both.planted.plan.windows]
    near = sums.near.where(in_windows(F.col("bucket_start"), windows)).select(*_OF_GRID)
    names = _alive(warehouse, request, {row.shard_id for row in told}, near)
    shards = own_rows(warehouse.spark, [(name,) for name in names], "shard_id string")
    own = grid(without_canary(shards), window=window, bucket=stream.bucket)
    cells = compared_cells(both.planted.grid(shards).unionByName(own), near)
    own_shards = [row for row in told if not row.shard_id.startswith(CANARY)]
    known = past(warehouse, request, both, own_shards)
    by = deadlines(request, both)
    over = overdue_cells(cells, known, by).localCheckpoint()
    gone = vanished_cells(over, known, by)
    standing = _standing_gaps(warehouse, request, both)
    lasting = with_vanished(cells, gone, standing.select(*CELL))
    whole = with_bucket_digest(lasting, near).localCheckpoint()
    left = filtered(warehouse, request, both, sums, facts=facts)
    if left is not None:
        whole = left.never_sent(whole).localCheckpoint()
    cells, named, may_be = _with_gaps(warehouse, request, whole, standing)
    known_ids = (known.missing, named, standing, *may_be)
    return WindowLedger(sums, cells, facts, own_shards, *known_ids, filtered=left)


def _facts(
    warehouse: Warehouse, request: AuditRequest, both: Sources, sums: LedgerSums
) -> tuple[DataFrame, list[Row]]:
    """Of each shard, the canary's too: of `with_behind_parent`; and a few of its facts, read."""
    stream, as_of = request.stream, request.as_of
    last_days = days_of([looked_back(as_of, stream.bucket)]) & sums.near_days
    week = week_bins(both.ledger(last_days), sums.kept, as_of=as_of, bucket=stream.bucket)
    grace = stream.settle_grace
    patience = patiences(week, settle_grace=grace, retention=request.retention.length)
    facts = held(shard_facts(sums.hours, patience, as_of=as_of, settle_grace=grace))
    totals = ("has_lost_rows", "sent_total", "landed_total")
    told = collected(facts.select("shard_id", *totals, "consumer_state", "rests_since"))
    return with_behind_parent(facts, _behind(warehouse, request, told)), told


def _behind(warehouse: Warehouse, request: AuditRequest, shards: Iterable[Row]) -> DataFrame | None:
    """Which shards are not to be judged before their parent: of `with_behind_parent`.

    Its consumer lands rows of that one: once it rests, whatever waits behind it is stuck.
    """
    states = {
        row.shard_id: ConsumerState(row.consumer_state)
        for row in shards
        if not row.shard_id.startswith(CANARY)
    }
    begun = {shard for shard, state in states.items() if state is not ConsumerState.NOT_STARTED}
    undrained = {
        row.shard_id
        for row in shards
        if row.rests_since is not None and states.get(row.shard_id) is ConsumerState.ADVANCING
    }
    if not undrained or begun == states.keys():
        return None
    listed = warehouse.read(SHARDS).where(F.col("stream") == request.name)
    # A stream that was made anew has shards of the same names, and others for parents.
    closed = {row.shard_id for row in collected(closed_shards(listed)) if row.is_closed}
    ever = parents_of(warehouse, request.name)
    parents = {child: [one for one in of if one in closed] for child, of in ever.items()}
    behind = behind_parents(parents, begun=begun, undrained=undrained)
    ddl = "shard_id string, behind_parent string"
    return own_rows(warehouse.spark, [*behind.items()], ddl) if behind else None


def _alive(
    warehouse: Warehouse, request: AuditRequest, in_ledger: Set[str], near: DataFrame
) -> list[str]:
    """The shards that an audit looks at: not those that were closed, and of which there is nothing.

    A stream that is resharded each day would have more of those from day to day.

    Input:
        near: the ledger's cells of the window, and of the canary's.
    """
    window = request.aligned
    listed = warehouse.read(SHARDS).where(F.col("stream") == request.name)
    seen = collected(closed_shards(listed, by=window.start))
    closed = {row.shard_id for row in seen if row.is_closed}
    if closed:
        here = near.where(in_windows(F.col("bucket_start"), [window]))
        closed -= {row.shard_id for row in collected(here.select("shard_id").distinct())}
    known = {row.shard_id for row in seen} | in_ledger
    # Where it would look at none, there would be no cell to be in doubt of a file that is damaged.
    return sorted(known - closed or known)


def _with_gaps(
    warehouse: Warehouse, request: AuditRequest, whole: DataFrame, standing: DataFrame
) -> tuple[DataFrame, DataFrame, tuple[int, int]]:
    """Which cells are gaps. Of `WindowLedger`: `cells`, `named`, the two counts; read.

    Input:
        whole: of `with_bucket_digest`, read; standing: of `WindowLedger`.
    """
    named = _named(warehouse, request, whole)
    # Not held: two passes over the cells take less memory than the cells twice.
    near = with_bare(whole, named, standing)
    asked = {"lacking": small_lacking(), "unsent": most_unsent(), "no_more": gaps_no_more()}
    [found] = collected(without_canary(near).select(*(of.alias(n) for n, of in asked.items())))
    cells = with_gaps(near, lacking=found.lacking).localCheckpoint()
    return cells, named, (found.unsent, found.no_more)


def with_many_unsent(
    ledger: WindowLedger,
    request: AuditRequest,
    both: Sources,
    differing: DataFrame,
    known: Carried,
) -> WindowLedger:
    """The ledger, with `unsent`, and with the gaps that there are when these are left out.

    `unsent`: untraced ids that are only counted. What an audit named before goes on being named. Of
    the others all are counted where they are more than MOST_NAMED; else only those in the cell of a
    gap that nothing else landed in: so it stays a gap.

    Input:
        differing: of `_to_read`.
    """
    warehouse = both.traces.warehouse
    found = _unsent(ledger, both, without_canary(differing))
    if found is None:
        return ledger
    findings = findings_in(warehouse, request.name, Kind.UNTRACED, *STANDING)
    told = (known.stale, *map(with_hash, (known.evidence, findings, ledger.named)))
    hashes = reduce(DataFrame.union, (bare(ids.select("id_hash")) for ids in told))
    unsent = found.join(hashes, ["id_hash"], how="left_anti").localCheckpoint()
    as_it_was = {"bucket_digest": F.col("ledger_digest")}
    before = ledger.cells.drop("is_gap").withColumns(as_it_was).drop("ledger_digest")
    whole = with_unsent(before, unsent).localCheckpoint()
    if unsent.count() <= MOST_NAMED:
        gaps = whole.where(F.col("has_gap") & is_bare()).select(cell_hash())
        unsent = unsent.join(gaps, ["cell"], how="left_semi").localCheckpoint()
        whole = with_unsent(before, unsent).localCheckpoint()
    cells, named, _ = _with_gaps(warehouse, request, whole, ledger.standing)
    return replace(ledger, cells=cells, named=named, unsent=unsent)


def _unsent(ledger: WindowLedger, both: Sources, differing: DataFrame) -> DataFrame | None:
    """Of `drill_down.unsent`; None where there are too few to be only counted.

    Input:
        differing: of `_to_read`.
    """
    read = differing.select(*CELL)
    # Of one that landed in a gap, too, nothing is left out there.
    of_gaps = ledger.cells.where(F.col("is_gap") & (F.col("landed_n") > 0)).select(*CELL)
    starts = buckets_of(read.union(of_gaps))
    near, windows = both.within(starts), both.shape.covering(both.planted.left_out(starts))
    # Of one that differs as if by one id, as `most_unsent` says; but each of a gap's is wanted.
    is_by_one = F.col("id_hash").isNotNull() & F.lit(ledger.gaps_no_more == 0)
    in_full = differing.where(~is_by_one).select(*CELL)
    one_more = ledger.cells.where(F.col("landed_n") > F.col("sent_n")).join(
        differing.where(is_by_one).select(*CELL), CELL, how="left_semi"
    )
    in_cells = _count(ledger.cells.join(in_full, CELL, how="left_semi"))
    in_all = _count(ledger.cells.where(in_windows(F.col("bucket_start"), windows)))
    # Else to read these cells alone would be most of the work.
    if in_cells <= in_all / 2:
        parts = both.within(buckets_of(in_full)).parts(1 + in_cells // MOST_AT_ONCE)
        ids = reduce(DataFrame.union, [part.without_trace(in_full) for part in parts])
        if ids.count() + one_more.count() <= MOST_NAMED:
            return near.of_ids(ids).unsent(read) if ledger.gaps_no_more else None
    each = (part.unsent(read) for part in near.parts(1 + in_all // MOST_AT_ONCE))
    return reduce(DataFrame.unionByName, each)


def _count(cells: DataFrame) -> int:
    """How many traces and rows are in the cells."""
    n = F.coalesce(F.sum(F.col("sent_n") + F.col("landed_n")), F.lit(0)).alias("n")
    [found] = collected(cells.select(n))
    return int(found.n)


def _standing_gaps(warehouse: Warehouse, request: AuditRequest, both: Sources) -> DataFrame:
    """The cells of gaps that did not end, the canary's too, and the `count` of each."""
    own = warehouse.read(GAPS).where(F.col("stream") == request.name)
    known = beside(both.planted.gaps, own)
    return known.where(F.col("state").isin(*STANDING)).select(*CELL, "count")


def _named(warehouse: Warehouse, request: AuditRequest, cells: DataFrame) -> DataFrame:
    """The missing ids with standing findings in cells of which (nearly) nothing landed; read.

    Output:
        `message_id`, CELL.
    """
    findings = findings_in(warehouse, request.name, Kind.MISSING, *STANDING)
    start = bucket_start(F.col("sent_at"), request.stream.bucket).alias("bucket_start")
    placed = findings.select("message_id", "shard_id", start)
    empty = F.broadcast(cells.where(is_bare()).select(*CELL))
    return placed.join(empty, CELL, how="left_semi").localCheckpoint()
