"""The ledger's sums: of the days that an audit looks at, and of the others as they were kept."""

from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import Sources
from shardaudit.audit.records import to_be_audited
from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.hours import slot
from shardaudit.audit.rules.ledger_hours import (
    HOUR_FACTS,
    LedgerSums,
    kept_hours,
    shard_hours,
    time_measures,
    unequal_cells,
)
from shardaudit.audit.rules.patience import hour_bins
from shardaudit.audit.rules.vanished import last_arrival
from shardaudit.columns.instants import cell_start
from shardaudit.columns.ledger_sums import CELL, cell_sums
from shardaudit.model.config.eras import midnight
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.ledger_tables import CELL_FACTS, LEDGER_HOURS
from shardaudit.model.verdict import STANDING, Kind
from shardaudit.model.window import EPOCH, Window
from shardaudit.store.ledger_days import day_digests, hours_of, kept_days
from shardaudit.store.transitions import findings_in
from shardaudit.store.warehouse import Warehouse

_DAY, _TICK = timedelta(days=1), timedelta(microseconds=1)


def keep_ledger_sums(warehouse: Warehouse, request: AuditRequest, both: Sources) -> LedgerSums:
    """Adds up the whole ledger, the canary's too; keeps the hours of days that are over."""
    bucket, grace = request.stream.bucket, request.stream.settle_grace
    digests = day_digests(warehouse, request.name)
    looked_at = _looked_at(warehouse, request)
    # What no batch counted may be of any day, and is read anew each time.
    are_kept = both.placed is None
    valid = _known_days(warehouse, request, digests) if are_kept else set[date]()
    known = valid - looked_at
    kept = hours_of(warehouse, request.name, known).localCheckpoint()
    if doubtful := _doubtful_days(warehouse, request, known, kept):
        known -= doubtful
        kept = kept.where(F.col("sent_day").isin(sorted(known)))
    measures = (last_arrival(bucket), *gap_measures(bucket), *time_measures())
    near_days = frozenset(digests.keys() - known)
    near = cell_sums(both.ledger(near_days), *measures).localCheckpoint()
    fresh = shard_hours(near, as_of=request.as_of, settle_grace=grace, bucket=bucket)
    hours = fresh.unionByName(kept.select(HOUR_FACTS)).localCheckpoint()
    cells = near.select("shard_id", *(name for name, _ in CELL_FACTS))
    sums = LedgerSums(cells, unequal_cells(kept), kept, hours, near_days)
    if are_kept:
        rest = {day: digests[day] for day in digests.keys() - valid}
        _keep(warehouse, request, both.own_ledger, sums.without_canary(), rest)
    return sums


def _looked_at(warehouse: Warehouse, request: AuditRequest) -> set[date]:
    """The days of which an audit wants all cells."""
    span, width = to_be_audited(warehouse, request), slot(request.stream.bucket)
    # An hour in which it begins or ends is not of it as a whole.
    parts = [Window(at, at + _TICK) for at in (span.start, span.end) if (at - EPOCH) % width]
    return days_of([request.aligned, *parts, *filter(None, [request.judged_over])])


def days_of(windows: Iterable[Window]) -> set[date]:
    """The UTC days of which some windows have a part."""
    return {
        window.start.date() + _DAY * n
        for window in windows
        for n in range(((window.end - _TICK).date() - window.start.date()).days + 1)
    }


def _known_days(warehouse: Warehouse, request: AuditRequest, digests: dict[date, str]) -> set[date]:
    """The days that are kept, and over: all that landed rests for the settle grace."""
    known = kept_days(warehouse, request.name, digests)
    return {day for day, of_day in known.items() if _is_over(request, day, of_day.rested_at)}


def _is_over(request: AuditRequest, day: date, rested_at: datetime | None) -> bool:
    end = midnight(day) + _DAY
    by = request.as_of - request.stream.settle_grace
    return end <= by and (rested_at is None or rested_at <= by)


def _doubtful_days(
    warehouse: Warehouse, request: AuditRequest, known: Collection[date], kept: DataFrame
) -> set[date]:
    """The known days with a cell that is alike on both sides, though a message of it lacks.

    By a standing finding, or gap, which `with_wholeness` ends by such a cell. Mostly none: the
    audit that first saw what came has ended it.
    """
    if not known:
        return set()
    start = cell_start(F.col("sent_at"), request.cells).alias("bucket_start")
    findings = findings_in(warehouse, request.name, Kind.MISSING, *STANDING)
    gaps = warehouse.read(GAPS).where(
        (F.col("stream") == request.name) & F.col("state").isin(*STANDING)
    )
    lacking = bare(findings.select("shard_id", start)).union(bare(gaps.select(*CELL)))
    day = F.to_date("bucket_start")
    alike = lacking.where(day.isin(sorted(known))).join(
        unequal_cells(kept).select(*CELL), CELL, how="left_anti"
    )
    return {row.day for row in collected(alike.select(day.alias("day")).distinct())}


def _keep(
    warehouse: Warehouse,
    request: AuditRequest,
    own_ledger: DataFrame,
    sums: LedgerSums,
    digests: dict[date, str],
) -> None:
    """Keeps the hours of those days that are over.

    Input:
        sums: without the canary.
    """
    day, bucket = F.to_date("hour"), request.stream.bucket
    # Another era's are kept by its audits, which measure by its cells.
    own = request.cells.span_of(request.aligned.start)
    ended = [day for day in digests if own.covers(midnight(day)) and _is_over(request, day, None)]
    if not ended:
        return
    told = (
        sums.hours.where(day.isin(ended))
        .groupBy(day.alias("sent_day"))
        .agg(F.max("rested_at").alias("rested_at"), F.count("*").alias("hours"))
    )
    over = [r for r in collected(told) if _is_over(request, r.sent_day, r.rested_at)]
    if not over:
        return
    days = [row.sent_day for row in over]
    rows = kept_hours(
        sums,
        hour_bins(bare(own_ledger.where(F.col("sent_day").isin(days))), bucket),
        own_rows(
            warehouse.spark,
            [(day, digests[day]) for day in days],
            "sent_day date, day_digest string",
        ),
        bucket=bucket,
    )
    warehouse.replace(
        rows.withColumn("stream", F.lit(request.name)),
        LEDGER_HOURS,
        having={"stream": [request.name], "sent_day": [day.isoformat() for day in days]},
        most=sum(row.hours for row in over),
    )
