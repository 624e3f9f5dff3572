"""What is known of a route's places beyond an audit's window: by traces, and by audits before."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.changed_cells import as_changed
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.audit.rules.ledger_hours import LedgerSums
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL, differs
from shardaudit.ingest.sightings import sighting_counts
from shardaudit.model.config.settings import DAY
from shardaudit.model.rates import landed_ids
from shardaudit.model.route.filters import filters
from shardaudit.model.route.trace_loss import Traced, is_thin
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.window import SCAN_WINDOWS, Window, joined
from shardaudit.report.route_lines import hops_from_json
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.audits import published_of
from shardaudit.store.places.new_places import untold_before
from shardaudit.store.warehouse import Warehouse

_LATE = timedelta(days=7)  # a place's log is shipped no later, or nobody asks for a hop any more


def losses_before(
    warehouse: Warehouse, request: AuditRequest
) -> tuple[dict[str, float], dict[str, float]]:
    """By place its trace loss in the newest audit before that tells it; and its `end_losses`."""
    rows = warehouse.rows(AUDITS, where=published_of(request.name))
    # One of the same time is of the same night: they may run again, in any order.
    before = [row for row in rows if row["as_of"] < request.as_of]
    route, known, ends = request.stream.route, dict[str, float](), dict[str, float]()
    for row in sorted(before, key=lambda row: (row["as_of"], row["window_end"], row["audit_id"])):
        if not is_thin(Traced(landed_ids(row))):
            hops = hops_from_json(row["hops"])
            known |= {hop.location: hop.trace_loss for hop in hops if hop.trace_loss is not None}
            ends |= {hop.location: hop.end_loss for hop in hops if hop.end_loss is not None}
    return {name: loss for name, loss in known.items() if name in route.places}, ends


def silent_places(
    warehouse: Warehouse, request: AuditRequest, hops: Sequence[AuditedPlace]
) -> frozenset[str]:
    """The places of which nothing is known in a day or longer: not just of these minutes."""
    names = frozenset(line.location for line in hops if line.is_silent)
    if not names:
        return names
    window = request.judged_over or request.aligned
    wide = Window(min(window.start, request.aligned.end - DAY), request.aligned.end)
    counts = sighting_counts(warehouse, request.name, wide)
    return names - {row.location for row in collected(counts.select("location").distinct())}


def traces_begin(
    warehouse: Warehouse, request: AuditRequest, later: Mapping[str, datetime], cells: DataFrame
) -> dict[str, datetime]:
    """When the traces of places begin that did not trace what had landed before, as of new ones.

    That they did not trace what was lost before says nothing.

    Input:
        later: of `OfWindow`; cells: of `PlaceCounts`.
    """
    if not later:
        return {}
    start = request.aligned.start
    counts = sighting_counts(warehouse, request.name, Window(start - DAY, start))
    before = {row.location for row in collected(counts.select("location").distinct())}
    begins = {name: at for name, at in later.items() if name not in before}
    if not begins:
        return begins
    earlier = published_of(request.name) & (pc.field("window_end") <= start)
    audits = warehouse.rows(AUDITS, where=earlier)
    begins = untold_before(start, begins, audits)
    if not begins or any(landed_ids(row) for row in audits):
        return begins
    landed = cells.where(F.col("landed") > 0).agg(F.min("bucket_start").alias("start"))
    [at_first] = collected(landed)
    first = request.aligned.end if at_first.start is None else at_first.start
    return {name: at for name, at in begins.items() if first < at}


def traced_anew(
    warehouse: Warehouse,
    request: AuditRequest,
    sums: LedgerSums,
    batches: Sequence[str],
    *,
    audited: Window,
) -> list[DataFrame]:
    """The audited cells before the window of which places' traces came, and the two sides differ.

    A hop, or what a filter left out, may be another by the traces that some batches brought. What a
    filter left out is judged hour by hour. Not of longer ago than `_LATE`, or the retention.

    Output:
        one frame as of `changed_cells`; none: there are no places, or no such time.
    """
    bucket, route, start = request.stream.bucket, request.stream.route, F.col("bucket_start")
    since = max(audited.start, request.as_of - max(request.retention.length, _LATE))
    if not route.places or since >= request.aligned.start:
        return []
    past = Window(since, request.aligned.start)
    counts = sighting_counts(warehouse, request.name, past)
    news = counts.where(F.col("batch_id").isin(list(batches)))
    # A place may round the time of a message up or down.
    width, beside = (slot(bucket), 0 * bucket) if filters(route) else (bucket, bucket)
    came = collected(news.select(hour_start(width).alias("start")).distinct())
    times = (Window(row.start - beside, row.start + width + beside) for row in came)
    spans = joined(times, most=SCAN_WINDOWS)
    near = sums.cells.where(differs() & in_windows(start, spans) & in_windows(start, [past]))
    return [as_changed(near.select(*CELL), bucket)]
