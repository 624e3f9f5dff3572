"""What the ledger says of each shard: a few small aggregations, collected."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.evidence import ingested
from shardaudit.audit.kept_days import days_of
from shardaudit.audit.rules.deadlines import ahead_arrivals
from shardaudit.audit.rules.patience import looked_back, patiences, week_bins
from shardaudit.ingest.sightings import sighting_counts
from shardaudit.model.config.eras import Eras, midnight
from shardaudit.model.config.settings import DAY, Stream
from shardaudit.model.route.filters import beside_filters, filter_places
from shardaudit.model.sequence import Position
from shardaudit.model.window import Window
from shardaudit.store.ledger_days import LedgerDays
from shardaudit.watch.rules.facts import EarlierWatch, LedgerProgress, Pause, Span
from shardaudit.watch.rules.filtered_holes import FilterCounts, told_left_out
from shardaudit.watch.rules.frontiers import LedgerView, shard_progress, shard_times

# Sequence numbers grow with the arrival, cells with the producers' clocks, which differ by minutes;
# and a shard that catches up lands hours of cells between two watches.
_SLACK = timedelta(hours=6)
_OLD = timedelta(days=1)  # of what was sent before, hours are told apart, not cells

_Horizon = tuple[
    str, datetime, datetime | None, str | None, str | None, bool, datetime | None, datetime | None
]
_STANDING = "shard_id string, frontier string, ahead_since timestamp, ahead_last timestamp"
_HORIZONS = (
    "shard_id string, since timestamp, landed_until timestamp, known_frontier string, "
    "position string, is_at_end boolean, seen_at timestamp, rested_at timestamp"
)


@dataclass(frozen=True, slots=True)
class Known:
    """Per shard what is known beside the ledger: the last watch, and the consumer's position."""

    before: Mapping[str, EarlierWatch]
    positions: Mapping[str, Position]


def usual_patience(
    ledger: LedgerDays, stream: Stream, *, as_of: datetime, retention: timedelta
) -> dict[str, timedelta]:
    """Per shard how long a landing may take; a shard that is not there has the settle grace."""
    days = days_of([looked_back(as_of, stream.bucket)]) & ledger.of.keys()
    # Of the day in which it looks the hours are not over.
    kept = days & ledger.kept - {as_of.date()}
    near, known = ledger.rows_of(days - kept), ledger.hours_of(kept)
    week = week_bins(near, known, as_of=as_of, bucket=stream.bucket)
    found = patiences(week, settle_grace=stream.settle_grace, retention=retention)
    return {row.shard_id: timedelta(seconds=row.patience) for row in collected(found)}


def ledger_progress(
    ledger: LedgerDays, stream: Stream, *, as_of: datetime, known: Known
) -> dict[str, LedgerProgress]:
    """Where every shard of the ledger stands. Reads fingerprints alone, no ids."""
    near = ledger.rows_of(ledger.of.keys() - ledger.kept)
    times_of = shard_times(near, ledger.hours_of(ledger.kept))
    times = {row.shard_id: row for row in collected(times_of)}
    if not times:
        return {}
    held_back = _held_back(ledger, _read_until(times, stream, as_of=as_of))
    horizons = [_horizon(row, as_of, known, held_back) for row in times.values()]
    first = min(horizon[1] for horizon in horizons)
    told = filter_counts(ledger, stream, since=first)
    days = {day for day in ledger.of if day >= first.date()}
    old = {day for day in days & ledger.kept if day < (as_of - _OLD).date()}
    progress = shard_progress(
        LedgerView(
            ledger.rows_of(days - old),
            ledger.hours_of(old),
            None if told is None else told_left_out(told),
        ),
        own_rows(ledger.warehouse.spark, horizons, _HORIZONS),
        shape=ledger.cells(stream),
        rested_since=as_of - stream.settle_grace,
    )
    standing = {row.shard_id: row for row in collected(progress)}
    found = {
        shard: _progress(row, standing.get(shard), known.before.get(shard), ledger.cells(stream))
        for shard, row in times.items()
    }
    found |= _with_arrivals(ledger, found, stream, as_of=as_of)
    if any(one.landed_until for one in found.values()) or _has_places(ledger, stream, as_of=as_of):
        return found
    # No row says where it belongs: what landed is not in the ledger, and nobody knows what waits.
    return {shard: replace(one, ahead=None, passed=None) for shard, one in found.items()}


def filter_counts(ledger: LedgerDays, stream: Stream, *, since: datetime) -> FilterCounts | None:
    """What the filters of the route traced, and the places near them; None: there is none."""
    places = filter_places(stream.route)
    if not places:
        return None
    # As far as the ledger reaches: a producer's clock may be ahead of ours.
    last = max(ledger.of, default=since.date())
    until = midnight(last) + DAY
    window = Window(since, max(until, since + stream.bucket))
    counts = sighting_counts(ledger.warehouse, ledger.stream, window)
    beside = beside_filters(stream.route)
    near = {*places, *(name for one in beside for name in (*one.names, *one.before))}
    return FilterCounts(counts.where(F.col("location").isin(*sorted(near))), places, beside)


def _read_until(
    times: Mapping[str, Row], stream: Stream, *, as_of: datetime
) -> dict[str, datetime]:
    """Of shards that rest, until when all was read: a while before it landed."""
    return {
        row.shard_id: row.last_landed_at - stream.settle_grace - stream.bucket
        for row in times.values()
        if row.last_landed_at is not None and row.last_landed_at <= as_of - stream.settle_grace
    }


def _held_back(ledger: LedgerDays, read_until: Mapping[str, datetime]) -> dict[str, datetime]:
    """Of shards that rest the first cell of which traces came since, however long ago it was sent.

    What their producers held back may be all that waits.
    """
    if not read_until:
        return {}
    since = ledger.rows_of(ledger.of.keys() - ledger.rest_since(min(read_until.values())))
    rests = own_rows(
        ledger.warehouse.spark, [*read_until.items()], "shard_id string, read_until timestamp"
    )
    # Unique on shard_id on the right: one row per shard.
    came = since.join(F.broadcast(rests), "shard_id", how="inner").where(
        (F.col("side") == "traces") & (F.col("arrived_until") > F.col("read_until"))
    )
    found = came.groupBy("shard_id").agg(F.min("bucket_start").alias("since"))
    return {row.shard_id: row.since for row in collected(found)}


def _with_arrivals(
    ledger: LedgerDays, found: Mapping[str, LedgerProgress], stream: Stream, *, as_of: datetime
) -> dict[str, LedgerProgress]:
    """The shards of which messages wait that were sent long ago, with when these arrived.

    And those of which the clock of a producer says that they are still to be sent.
    """
    due, cells = as_of - stream.settle_grace - stream.bucket, ledger.cells(stream)
    waiting = {
        shard: (one, one.ahead)
        for shard, one in found.items()
        if one.ahead is not None and not due <= one.ahead.since <= as_of
    }
    if not waiting:
        return {}
    rows = [
        (shard, one.frontier, ahead.since, cells.last_start(ahead.until))
        for shard, (one, ahead) in waiting.items()
    ]
    first_day = min(ahead.since for _, ahead in waiting.values()).date()
    arrivals = ahead_arrivals(
        ledger.rows.where(F.col("sent_day") >= F.lit(first_day)),
        own_rows(ledger.warehouse.spark, rows, _STANDING),
        shape=cells,
    )
    return {
        row.shard_id: _arrived(*waiting[row.shard_id], row, cells) for row in collected(arrivals)
    }


def _arrived(one: LedgerProgress, ahead: Span, row: Row, cells: Eras) -> LedgerProgress:
    since = row.arrived_from if row.arrived_from != ahead.since else None
    end = cells.end_of(row.arrived_until)
    until = end if end > ahead.until else None
    passed = one.passed
    if passed is not None and since is not None:
        passed = replace(passed, arrived_from=max(since, passed.since))
    return replace(
        one, ahead=replace(ahead, arrived_from=since, arrived_until=until), passed=passed
    )


def _has_places(ledger: LedgerDays, stream: Stream, *, as_of: datetime) -> bool:
    """Whether not all that should have landed may be among rows that lack their shard or time.

    Where no row has a place the patience is the settle grace: what is younger may be on its way.
    """
    state = ingested(ledger.warehouse, ledger.stream)
    if not (state.has_places and state.unplaced):
        return state.has_places
    is_due = F.col("bucket_start") < F.lit(as_of - stream.settle_grace - stream.bucket)
    sent_less_landed = F.when(F.col("side") == "traces", F.col("n")).otherwise(-F.col("n"))
    [due] = collected(ledger.rows.where(is_due).agg(F.sum(sent_less_landed).alias("n")))
    return (due.n or 0) > state.unplaced


def _horizon(
    times: Row, as_of: datetime, known: Known, held_back: Mapping[str, datetime]
) -> _Horizon:
    last, position = known.before.get(times.shard_id), known.positions.get(times.shard_id)
    landed = times.landed_until
    first = times.first_sent_at or as_of
    since = first if landed is None else min(landed, as_of) - _SLACK
    return (
        times.shard_id,
        min(since, held_back.get(times.shard_id, since)),
        landed,
        last.frontier if last else None,
        position.sequence_number if position else None,
        position is not None and position.is_at_end,
        last.observed_at if last else None,
        last.frontier_at if last else None,
    )


def _progress(
    times: Row, standing: Row | None, last: EarlierWatch | None, cells: Eras
) -> LedgerProgress:
    found = LedgerProgress(
        times.shard_id,
        produced_until=times.produced_until,
        last_landed_at=times.last_landed_at,
        landed_until=times.landed_until,
    )
    if standing is None:
        return found
    frontier_at = standing.frontier_at
    if frontier_at is None:  # its cell is older than the horizon, or the sink has no numbers
        is_same = last is not None and last.frontier == standing.frontier is not None
        frontier_at = (last.frontier_at if last and is_same else None) or found.last_landed_at
    return replace(
        found,
        frontier=standing.frontier,
        settled_frontier=standing.settled_frontier,
        frontier_at=frontier_at,
        relanded_until=standing.relanded_until,
        ahead=_span(standing, "ahead", cells),
        passed=_span(standing, "passed", cells),
        pause=_pause(standing),
        is_by_time=standing.is_by_time,
    )


def _span(row: Row, name: str, cells: Eras) -> Span | None:
    since, last = row[f"{name}_since"], row[f"{name}_last"]
    if since is None or last is None:
        return None
    return Span(messages=row[f"{name}_n"], since=since, until=cells.end_of(last))


def _pause(row: Row) -> Pause | None:
    since, until = row.paused_from, row.paused_until
    return None if since is None or until is None or until <= since else Pause(since, until)
