"""Which holes the ledger shows behind each shard's consumer, and which of them are news."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, held, own_rows
from shardaudit.audit.evidence import Ingested, ingested
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.columns.instants import any_of, cell_start, in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.config.eras import Eras, midnight
from shardaudit.model.config.settings import Stream
from shardaudit.model.route.filters import filters
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.watch_tables import HOLES
from shardaudit.model.verdict import LIVE, Kind, State
from shardaudit.model.window import Window, joined
from shardaudit.store.audits import published_of
from shardaudit.store.cell_grid import audit_spans, newest_segments
from shardaudit.store.ledger_days import LedgerDays
from shardaudit.store.newest_cells import audited_cells
from shardaudit.store.transitions import findings_in
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.differing_cells import differing_cells, kept_cells, unequal_hours
from shardaudit.watch.rules.facts import EarlierWatch, Holes, LedgerProgress, Rules
from shardaudit.watch.rules.fed_cells import fed_cells, named_or_doubted
from shardaudit.watch.rules.filtered_holes import (
    FilterCounts,
    broken_filter_hours,
    less_the_filtered,
)
from shardaudit.watch.rules.holes import (
    HoleTerms,
    explained,
    hole_cells,
    shard_holes,
    standing_cells,
    still_told,
    with_news,
)
from shardaudit.watch.watch_ledger import filter_counts

GONE_FOR = timedelta(days=1)  # how long one is told what has left the stream
_GIVEN_UP = (State.ACCEPTED, State.EXPIRED)
STEPS = 64  # in which rows without a place are counted; each counts as come when its last one had


@dataclass(frozen=True, slots=True)
class HoleFacts:
    """Per shard its holes, and the cells of which nobody was told; None when there are none."""

    holes: dict[str, Holes]
    news: DataFrame | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the shards of a stream stand, and how long a landing may take on each.

    `settled`: up to where each was settled at an earlier watch. `before`: the last watch of each.
    """

    stream: Stream
    rules: Rules
    progress: Mapping[str, LedgerProgress]
    patience: Mapping[str, timedelta]
    settled: Mapping[str, str]
    before: Mapping[str, EarlierWatch]

    @property
    def may_settle_since(self) -> datetime:
        """A cell of which all arrived by then is settled by now, whatever its shard."""
        longest = max([self.stream.settle_grace, *self.patience.values()])
        return self.rules.settled_by - self.stream.bucket - longest


def found_holes(ledger: LedgerDays, standing: Standing) -> HoleFacts:
    """The holes of the stream's shards, within what the stream still holds and a day before.

    Reads fingerprints, and where they differ what the audits found; no ids.
    """
    warehouse, name = ledger.warehouse, ledger.stream
    stream, rules = standing.stream, standing.rules
    first, cells_of = rules.kept.held_since(rules.as_of - GONE_FOR), ledger.cells(stream)
    late_days = _late_days(ledger, first)
    days = {day for day in ledger.of if day >= first.date()} | late_days
    rest = days & ledger.rest_since(standing.may_settle_since)
    near = ledger.rows_of(days - rest)
    differing = _differing(near, ledger.hours_of(rest), shape=cells_of, since=first)
    if differing.isEmpty():
        return HoleFacts({}, None)
    state = ingested(warehouse, name)
    terms = HoleTerms(rules.settled_by, cells_of, state.damage.beside(stream.locations))
    standing_now = standing_cells(differing, _facts(warehouse, standing), terms)
    since = min([first, *(midnight(day) for day in late_days)])
    window = Window(since, rules.as_of)
    told, live = _told(warehouse, name, since), _live(ledger, stream, since)
    fed = _looked_into(warehouse, name, fed_cells(near, standing_now, terms), live, window=window)
    stay = still_told(standing_now, told, fed).localCheckpoint()
    fed = fed.join(stay, CELL, how="left_anti")
    cells = hole_cells(standing_now, differing).unionByName(stay)
    if (counts := filter_counts(ledger, stream, since=since)) is not None:
        cells = _less_filtered(cells, counts, stream)
    if state.unplaced:
        cells = _doubted(cells, state, stream)
    cells = cells.localCheckpoint()
    if cells.isEmpty() and fed.isEmpty():
        return HoleFacts({}, None)
    gone_before = rules.kept.held_since(rules.as_of)
    both = _explained(warehouse, name, cells, live, window=window).unionByName(
        named_or_doubted(fed, gone_before=gone_before)
    )
    known = with_news(both, told, gone_before=gone_before).localCheckpoint()
    holes = {row.shard_id: _holes(row, cells_of) for row in collected(shard_holes(known))}
    return HoleFacts(holes, known.where(F.col("is_new")))


def _differing(near: DataFrame, kept: DataFrame, *, shape: Eras, since: datetime) -> DataFrame:
    """The cells of which the two sides differ, and to which something came since a time.

    Input:
        near: FINGERPRINTS of some days; kept: LEDGER_HOURS of the others.
    Output:
        of `differing_cells`, read.
    """
    differing = kept_cells(kept, shape=shape)
    hours = held(unequal_hours(near, shape=shape))
    if not hours.isEmpty():
        differing = differing_cells(near, hours, shape=shape).unionByName(differing)
    came = F.coalesce("arrived_until", "bucket_start") >= F.lit(since)
    return differing.where(came).localCheckpoint()


def _less_filtered(cells: DataFrame, counts: FilterCounts, stream: Stream) -> DataFrame:
    """The holes, less what filters of the route left out.

    Input:
        counts: of `filter_counts`.
    """
    of, width = filters(stream.route), slot(stream.bucket)
    sums = counts.rows.groupBy("location", hour_start(width).alias("hour")).agg(
        F.sum("received").alias("received"), F.sum("sent").alias("sent")
    )
    told = [(row.location, row.hour, row.received, row.sent) for row in collected(sums)]
    spans = joined(Window(at, at + width) for at in broken_filter_hours(told, of))
    by_share = [F.col("location").isin(*each.places) for each in of if not each.tells]
    is_whole = ~in_windows(F.col("bucket_start"), spans)
    return less_the_filtered(cells, counts, any_of(by_share) & is_whole)


def _doubted(cells: DataFrame, state: Ingested, stream: Stream) -> DataFrame:
    """The cells; a doubt where what lacks may be among the rows that lack their own cell."""
    strays = F.least(_strays_since(state, stream.settle_grace), F.lit(state.unplaced))
    is_sure = F.col("is_sure") & (F.col("sent_n") - F.col("landed_n") > strays)
    missing = F.when(is_sure, F.col("missing")).otherwise(0)
    return cells.withColumns({"missing": missing, "is_sure": is_sure})


def _strays_since(state: Ingested, slack: timedelta) -> Column:
    """How many rows without a place came to the sink since a cell began, at most.

    Those that had landed before hold nothing of it: no row lands longer than `slack` before its
    `sent_at`.
    """
    came = sorted(state.came_unplaced)
    size = -(-len(came) // STEPS)
    steps = [came[n : n + size] for n in range(0, len(came), size)]
    left, counts = sum(count for _, count in came), list[Column]()
    for step in steps:
        landed_by = step[-1][0] + slack
        counts.append(F.when(F.col("bucket_start") < F.lit(landed_by), left))
        left -= sum(count for _, count in step)
    return F.coalesce(*counts, F.lit(0))


def _late_days(ledger: LedgerDays, first: datetime) -> set[date]:
    """The days before that of which traces came into the stream since: held back by producers."""
    before = {day for day in ledger.of if day < first.date()}
    late = before & ledger.kept - ledger.rest_since(first - timedelta.resolution)
    if not (unknown := before - ledger.kept):
        return late
    came = ledger.rows_of(unknown).where(F.col("arrived_until") >= F.lit(first))
    return late | {row.sent_day for row in collected(came.select("sent_day").distinct())}


def _told(warehouse: Warehouse, name: str, since: datetime) -> DataFrame:
    return warehouse.read(HOLES).where(
        (F.col("stream") == name) & (F.col("bucket_start") >= F.lit(since))
    )


def store_told(warehouse: Warehouse, name: str, news: DataFrame, *, told_at: datetime) -> None:
    """Writes of which cells people were told."""
    rows = news.select(
        F.lit(name).alias("stream"),
        *CELL,
        F.lit(told_at).alias("told_at"),
        F.col("sent_n").alias("sent"),
        F.col("landed_n").alias("landed"),
        (F.col("missing") + F.col("given_up")).alias("missing"),
    )
    warehouse.append(rows, HOLES)


def _facts(warehouse: Warehouse, standing: Standing) -> DataFrame:
    """Of each shard that landed rows what `standing_cells` has to know."""
    grace = standing.stream.settle_grace
    rows = [
        (
            shard,
            known.frontier is not None,
            standing.settled.get(shard),
            known.landed_until,
            standing.patience.get(shard, grace).total_seconds(),
            *_hole_told(standing.before.get(shard)),
        )
        for shard, known in standing.progress.items()
        if known.landed_until is not None
    ]
    return own_rows(
        warehouse.spark,
        rows,
        "shard_id string, has_position boolean, settled_until string, landed_until timestamp, "
        "patience double, hole_since timestamp, hole_until timestamp",
    )


def _hole_told(before: EarlierWatch | None) -> tuple[datetime | None, datetime | None]:
    return (before.hole_since, before.hole_until) if before else (None, None)


def _explained(
    warehouse: Warehouse, name: str, cells: DataFrame, live: DataFrame, *, window: Window
) -> DataFrame:
    """The cells less what the newest audit of each knows by id to be accepted, or not missing."""
    audited = audited_cells(warehouse, name, window)
    if audited is None:
        return cells.withColumns({"is_named": F.lit(False), "given_up": F.lit(0).cast("bigint")})
    return explained(cells, audited, live)


def _live(ledger: LedgerDays, stream: Stream, since: datetime) -> DataFrame:
    """By cell how many messages findings and gaps say are missing: not ended, or given up."""
    warehouse, name = ledger.warehouse, ledger.stream
    states = (*LIVE, *_GIVEN_UP)
    findings = findings_in(warehouse, name, Kind.MISSING, *states)
    findings = findings.where(F.col("sent_at") >= F.lit(since))
    gaps = warehouse.read(GAPS).where(
        (F.col("stream") == name)
        & F.col("state").isin(*states)
        & (F.col("bucket_start") >= F.lit(since))
    )
    start, one = cell_start(F.col("sent_at"), ledger.cells(stream)), F.lit(1).cast("bigint")
    named = findings.select("shard_id", start.alias("bucket_start"), "state", one.alias("count"))
    both = bare(named).union(bare(gaps.select(*CELL, "state", "count")))
    is_given_up = F.col("state").isin(*_GIVEN_UP)
    return both.groupBy(*CELL).agg(
        F.sum(F.when(is_given_up, 0).otherwise(F.col("count"))).alias("live"),
        F.sum(F.when(is_given_up, F.col("count")).otherwise(0)).alias("given_up"),
    )


def _looked_into(
    warehouse: Warehouse, name: str, fed: DataFrame, live: DataFrame, *, window: Window
) -> DataFrame:
    """The cells with `live` and `given_up`, and `looked_at`: the `as_of` of the newest audit."""
    cells = fed.join(live, CELL, how="left").fillna(0, subset=["live", "given_up"])
    cells = cells.localCheckpoint()
    audits = warehouse.rows(AUDITS, where=published_of(name))
    as_of = {row["audit_id"]: row["as_of"] for row in audits}
    segments = newest_segments(audit_spans(audits), window)
    starts = [row.bucket_start for row in collected(cells.select("bucket_start").distinct())]
    rows = [
        (start, as_of[of.audit_id])
        for start in starts
        for of in segments
        if of.start <= start < of.end
    ]
    looks = own_rows(warehouse.spark, rows, "bucket_start timestamp, looked_at timestamp")
    # Unique on the cell, then on its minute, on the right: segments do not overlap.
    return cells.join(F.broadcast(looks), ["bucket_start"], how="left")


def _holes(row: Row, shape: Eras) -> Holes:
    return Holes(
        cells=row.cells,
        messages=row.missing,
        sent=row.sent,
        even=row.even,
        news=row.news,
        since=row.since,
        until=_end(row["last"], shape),
        gone=row.gone,
        doubts=row.doubts,
        doubted_since=row.doubted_since,
        unnamed=row.unnamed,
        unnamed_since=row.unnamed_since,
        unnamed_until=_end(row.unnamed_last, shape),
        arrived_from=_later(row.arrived_from, row.since),
        unnamed_arrived_from=_later(row.unnamed_arrived_from, row.unnamed_since),
    )


def _later(arrived_from: datetime | None, since: datetime | None) -> datetime | None:
    return None if arrived_from == since else arrived_from


def _end(last: datetime | None, shape: Eras) -> datetime | None:
    return None if last is None else shape.end_of(last)
