"""Moves the watermarks of a stream's shards, and says what holds the stream's."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare
from shardaudit.adapters.lake.delta_rs import Row as StoredRow
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import beside
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.judged import Judged, Outcome
from shardaudit.audit.placing import buckets_of, known_batches, rows_of_batches
from shardaudit.audit.records import (
    audited_with,
    never_used,
    record_before,
    record_of,
    watermark_rows,
)
from shardaudit.audit.route.beyond_window import traced_anew
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.cell_verdicts import held_spans
from shardaudit.audit.rules.changed_cells import (
    Changes,
    as_changed,
    changed_cells,
    held_back_cells,
    passed_cells,
    stuck_cells,
    surplus_cells,
    touched_buckets,
    touched_cells,
    with_arrivals,
)
from shardaudit.audit.rules.deadlines import had_left
from shardaudit.audit.rules.findings import first_unsettled, unsettled_counts
from shardaudit.audit.rules.watermark import (
    TOUCHABLE,
    ShardRecord,
    accepted,
    first_hold,
    recorded,
    silenced,
    touched_doubts,
    unknown_before,
    without_accepted_doubts,
)
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.batches import batch_id
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD
from shardaudit.ingest.rules.repeats import REACH
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.tables.audit_tables import FINDINGS, INCONCLUSIVE, WATERMARKS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import Kind
from shardaudit.model.watermark import Held, Hold, Watermark, holds_as_json, holds_from_json
from shardaudit.model.window import Window, joined
from shardaudit.report.held_back import Holding, held_because
from shardaudit.store.transitions import said_times, times_of
from shardaudit.store.warehouse import Warehouse

NO_TRACES = "no trace of it was ever read"


def move_watermark(
    warehouse: Warehouse,
    request: AuditRequest,
    outcome: Outcome,
    *,
    judged: Judged,
    comparison: Comparison,
) -> Watermark:
    """Stores each shard's watermark after this audit, published findings included; the stream's.

    Doing it twice changes nothing. Cost: the audit's cells, those that changed since the last one,
    the stream's open findings, and a row per shard.

    Input:
        judged: without the canary; outcome: has the shards of the grid.
    """
    said = said_times(warehouse, request.name, INCONCLUSIVE)
    left_at = request.as_of - request.retention.length
    after = {
        shard_id: without_accepted_doubts(record, times_of(said, shard_id), left_at=left_at)
        for shard_id, record in _after(warehouse, request, outcome, judged, comparison).items()
    }
    passed = {name: accepted(record, times_of(said, name)) for name, record in after.items()}
    unused, of = never_used(warehouse, request.name, passed.values()), [Held.UNAUDITED]
    passed = {name: accepted(record, unused, of=of) for name, record in passed.items()}
    findings, gaps = _found_so_far(warehouse, request.name)
    lacking = {row.shard_id: row.sent_at for row in collected(first_unsettled(findings, gaps))}
    first = {
        shard_id: first_hold(passed.get(shard_id), lacking.get(shard_id), cells=request.cells)
        for shard_id in after.keys() | lacking.keys()
    }
    whose = {
        "stream": request.name,
        "audit_id": request.audit_id,
        "batches": json.dumps(comparison.numbers, sort_keys=True),
    }
    rows = [whose | _row(shard_id, record, first[shard_id]) for shard_id, record in after.items()]
    if rows:
        warehouse.upsert(rows, WATERMARKS)
    if not comparison.has_traces:
        return Watermark(None, NO_TRACES)
    held = [(hold.start, shard_id, hold) for shard_id, hold in first.items() if hold]
    if not held:
        return Watermark(min((record.audited_until for record in after.values()), default=None))
    at, shard_id, hold = min(held, key=lambda one: one[:2])
    shown = Holding(request.name, shard_id, hold, _counts(findings, gaps, shard_id, hold))
    return Watermark(at, held_because(shown, window=request.aligned))


def _after(
    warehouse: Warehouse,
    request: AuditRequest,
    outcome: Outcome,
    judged: Judged,
    comparison: Comparison,
) -> dict[str, ShardRecord]:
    """The record of each shard, with this audit."""
    stored = watermark_rows(warehouse, request.name)
    before = {row["shard_id"]: record_of(row) for row in stored}
    as_unknown = unknown_before(before.values(), as_of=request.as_of)
    cells, bucket = judged.cells.select(*CELL, "bucket_end", "held_by"), request.stream.bucket
    spans = collected(held_spans(cells, bucket=bucket))
    found = _found(spans, comparison.facts, outcome, floor=request.stream.trace_coverage_floor)
    begun = as_unknown or record_before(warehouse, request)
    first = audited_with(begun, request)
    comparison = replace(comparison, sums=with_arrivals(comparison.sums, first))
    if as_unknown is None:
        early = held_back_cells(comparison.sums.cells, first=first, bucket=bucket)
        changed = _by_shard(collected(held_spans(early, bucket=bucket)))
    else:
        changed = _changed(warehouse, request, comparison, stored, audited=as_unknown.audited)
    return {
        shard_id: silenced(
            recorded(
                before.get(shard_id, begun),
                window=request.aligned,
                as_of=request.as_of,
                # A shard that is not in the grid was looked at: there is nothing of it any more.
                found=[*found.get(shard_id, ()), *_at_edges(before.get(shard_id), request)],
                changed=changed.get(shard_id, ()),
            ),
            judged.silences.of(shard_id),
            judged.silences.quiet_times(shard_id),
            as_of=request.as_of,
        )
        for shard_id in found.keys() | before.keys()
    }


def _at_edges(before: ShardRecord | None, request: AuditRequest) -> list[Hold]:
    """What places alone saw, where this audit has no bucket beside it: of `PlaceCounts.unsent`."""
    window, bucket = request.aligned, request.stream.bucket
    last = min(request.as_of - request.stream.settle_grace, window.end - bucket)
    first = Window(window.start, window.start + bucket)
    edges = (first, Window(max(window.start, last), window.end))
    return [
        replace(hold, start=part.start, end=part.end)
        for hold in (before.holds if before else ())
        if hold.why is Held.UNSENT
        for edge in edges
        if (part := hold.window.common(edge))
    ]


def _found_so_far(warehouse: Warehouse, stream: str) -> tuple[DataFrame, DataFrame]:
    """The stream's findings and gaps."""
    mine = F.col("stream") == stream
    findings, gaps = (bare(warehouse.read(table).where(mine)) for table in (FINDINGS, GAPS))
    return findings, gaps


def _new_batches(comparison: Comparison, name: str, *, before: Iterable[StoredRow]) -> list[str]:
    """The batches that the audits before did not know."""
    known = known_batches(before, last=comparison.numbers)
    return [
        batch_id(name, side, number)
        for side, last in comparison.numbers.items()
        for number in range(known.get(side, 0) + 1, last + 1)
    ]


def _changed(
    warehouse: Warehouse,
    request: AuditRequest,
    comparison: Comparison,
    before: list[StoredRow],
    *,
    audited: Window,
) -> defaultdict[str, list[Hold]]:
    """By shard, what was audited before and is not as it was."""
    if not (batches := _new_batches(comparison, request.name, before=before)):
        return defaultdict(list)
    bucket, looked_at = request.stream.bucket, max(row["as_of"] for row in before)
    news, placed = rows_of_batches(warehouse, request.name, batches), comparison.placed
    # Also of later cells: what came there may be a message of an earlier one, sent again.
    unplaced = placed.touched if placed else None
    # A row may be in the sink a while after it landed.
    since = looked_at - request.stream.settle_grace
    touched = touched_cells(news, unplaced, looked_at=since).localCheckpoint()
    apart = _apart(warehouse, request, comparison.apart, buckets_of(touched), audited=audited)
    findings, gaps = _found_so_far(warehouse, request.name)
    surplus = surplus_cells(findings, shape=request.cells)
    # Read here: pysail 0.7.2 cannot plan all that is asked of it below as one.
    buckets = touched_buckets(touched, apart).localCheckpoint()
    changes = Changes(touched, buckets, surplus)
    sums = _sums_near(changes, comparison, request, since=looked_at)
    each = traced_anew(warehouse, request, comparison.sums, batches, audited=audited)
    each.append(changed_cells(changes, sums, audited=audited, bucket=bucket))
    stuck = stuck_cells(findings, gaps, shape=request.cells)
    passed = passed_cells(stuck, comparison.sums.cells, comparison.facts)
    cells = reduce(DataFrame.union, [*each, as_changed(passed, bucket)]).distinct()
    changed = _by_shard(collected(held_spans(cells, bucket=bucket)))
    holds = {row["shard_id"]: holds_from_json(row["holds"]) for row in before}
    for shard_id, spans in _touched_spans(touched, holds, bucket=bucket).items():
        changed[shard_id] += touched_doubts(holds[shard_id], spans)
    return changed


def _sums_near(
    changes: Changes, comparison: Comparison, request: AuditRequest, *, since: datetime
) -> DataFrame:
    """The sums of the cells of the touched buckets, with `went_at` and `had_left`."""
    went_by = F.coalesce("went_at", F.lit(request.as_of))
    left = had_left(request.retention, bucket=request.cells.widest, as_of=went_by, since=since)
    near = F.broadcast(changes.buckets.select("bucket_start"))
    # Presence only; and unique on the cell on the right.
    return (
        comparison.sums.cells.join(near, ["bucket_start"], how="left_semi")
        .join(changes.touched.select(*CELL, "went_at"), CELL, how="left")
        .withColumn("had_left", left)
    )


def _touched_spans(
    touched: DataFrame, holds: Mapping[str, Sequence[Hold]], *, bucket: timedelta
) -> dict[str, list[Window]]:
    """By shard the touched time of those with minutes of no or too few traces: mostly none.

    What has no shard is touched by the traces of any; all are by what comes on a new one.
    """
    doubts = {name: [h.window for h in mine if h.why in TOUCHABLE] for name, mine in holds.items()}
    times = joined(span for mine in doubts.values() for span in mine)
    if not times:
        return {}
    near = touched.where(in_windows(F.col("bucket_start"), times)).select(*CELL)
    came = _by_shard(collected(held_spans(as_changed(near, bucket), bucket=bucket)))
    return {
        name: joined(
            hold.window
            for other, mine in came.items()
            if name in {other, UNKNOWN_SHARD} or other not in holds
            for hold in mine
        )
        for name, spans in doubts.items()
        if spans
    }


def _apart(
    warehouse: Warehouse,
    request: AuditRequest,
    known: DataFrame,
    touched: list[datetime],
    *,
    audited: Window,
) -> DataFrame:
    """Traces that count in another bucket than their own, one of the two touched, one audited.

    Input:
        known: all of them that have a bucket in the window, or just after it where nothing later
        was audited; audited: the time that any audit looked at.
    """
    window = request.aligned
    until = window.end + REACH if audited.end <= window.end else window.end
    near = Window(window.start, until)
    outside = [start for start in touched if not near.covers(start)]
    if not outside:
        return known
    windows = request.cells.covering(outside)
    return beside(known, StreamTraces(warehouse, request.name, ()).apart(windows))


def _by_shard(spans: Iterable[Row]) -> defaultdict[str, list[Hold]]:
    found: defaultdict[str, list[Hold]] = defaultdict(list)
    for row in spans:
        found[row.shard_id].append(Hold(row.held_from, row.held_until, Held(row.held_by)))
    return found


def _found(
    spans: list[Row], facts: DataFrame, outcome: Outcome, *, floor: float
) -> dict[str, list[Hold]]:
    """By each shard of the grid, what of the window cannot be called complete."""
    covered = {shard.shard_id: shard.trace_coverage for shard in outcome.shards}
    held = _by_shard(spans)
    thin = {
        shard_id
        for shard_id, share in covered.items()
        if share is not None and share < floor and any(h.why is Held.THIN for h in held[shard_id])
    }
    thin &= _traced(facts, thin)
    return {
        shard_id: [h for h in held[shard_id] if h.why is not Held.THIN or shard_id in thin]
        for shard_id in covered
    }


def _traced(facts: DataFrame, shard_ids: set[str]) -> set[str]:
    """Those of the shards to which messages go, as anybody ever said; and what has no shard."""
    if not shard_ids:
        return set()
    sent = collected(without_canary(facts).where(F.col("sent_total") > 0).select("shard_id"))
    found = {row.shard_id for row in sent}
    return {*found, UNKNOWN_SHARD} if found else found


def _row(shard_id: str, record: ShardRecord, first: Hold | None) -> dict[str, object]:
    return {
        "shard_id": shard_id,
        "watermark": first.start if first else record.audited_until,
        "held_by": first.why.value if first else None,
        "audited_from": record.audited_from,
        "audited_until": record.audited_until,
        "as_of": record.as_of,
        "holds": holds_as_json(record.holds),
    }


def _counts(
    findings: DataFrame, gaps: DataFrame, shard_id: str, hold: Hold
) -> dict[tuple[Kind, bool], int]:
    """The messages that hold the watermark: by kind, and whether they are gone for good."""
    if hold.why is not Held.FINDINGS:
        return {}
    rows = unsettled_counts(findings, gaps, shard_id, hold.window)
    return {(Kind(row.kind), row.gone): row.ids for row in rows.collect()}
