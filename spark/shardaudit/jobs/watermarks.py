"""Moves the watermarks of a stream's shards, and says what holds the stream's."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.collected import collected
from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.delta_rs import Row as StoredRow
from shardaudit.compare.totals import ShardTotals
from shardaudit.compare.watermark import (
    ShardRecord,
    first_hold,
    first_unsettled,
    held_spans,
    recorded,
    silenced,
    unsettled,
)
from shardaudit.jobs.audit_request import AuditRequest
from shardaudit.jobs.judged import Judged
from shardaudit.jobs.outcome import Outcome
from shardaudit.model.tables import FINDINGS
from shardaudit.model.verdict import Kind, State
from shardaudit.model.watermark import Held, Hold, Watermark
from shardaudit.model.watermark_tables import WATERMARKS
from shardaudit.report.held import Holding, held_because


def moved_watermark(
    warehouse: Warehouse,
    request: AuditRequest,
    outcome: Outcome,
    *,
    judged: Judged,
    sums: DataFrame,
) -> Watermark:
    """Stores each shard's watermark after this audit, published findings included; the stream's.

    Doing it twice changes nothing. Cost: the audit's cells, the stream's open findings, and a row
    per shard.

    Input:
        judged: without the canary; sums: of `cell_sums`; outcome: has the shards of the grid.
    """
    before = {row["shard_id"]: _record(row) for row in _rows(warehouse, request.name)}
    bucket = request.stream.bucket
    spans = collected(held_spans(judged.cells, bucket=bucket))
    found = _found(spans, sums, outcome.shards, floor=request.stream.trace_coverage_floor)
    after = before | {
        shard_id: silenced(
            recorded(
                before.get(shard_id), window=request.aligned, as_of=request.as_of, found=holds
            ),
            judged.silences.told(shard_id),
            judged.silences.quiet_times(shard_id),
        )
        for shard_id, holds in found.items()
    }
    findings = warehouse.read(FINDINGS).where(F.col("stream") == request.name)
    lacking = {row.shard_id: row.sent_at for row in collected(first_unsettled(findings))}
    first = {
        shard_id: first_hold(after.get(shard_id), lacking.get(shard_id), bucket=bucket)
        for shard_id in after.keys() | lacking.keys()
    }
    rows = [_row(request, shard_id, record, first[shard_id]) for shard_id, record in after.items()]
    if rows:
        warehouse.upsert(rows, WATERMARKS)
    held = [(hold.start, shard_id, hold) for shard_id, hold in first.items() if hold]
    if not held:
        # A shard that is gone from the grid is complete, and has no say in how far the others are.
        ends = [after[shard_id].audited_until for shard_id in found]
        return Watermark(min(ends, default=None))
    at, shard_id, hold = min(held, key=lambda one: one[:2])
    shown = Holding(request.name, shard_id, hold, _counts(findings, shard_id, hold))
    return Watermark(at, held_because(shown, window=request.aligned))


def stored_watermark(warehouse: Warehouse, stream: str) -> Watermark:
    """Where the stream's watermark stands, for an audit that moves nothing."""
    at = [row["watermark"] for row in _rows(warehouse, stream)]
    return Watermark(min(at, default=None))


def _rows(warehouse: Warehouse, stream: str) -> list[StoredRow]:
    return warehouse.rows(WATERMARKS, where=pc.field("stream") == stream)


def _found(
    spans: list[Row], sums: DataFrame, shards: Iterable[ShardTotals], *, floor: float
) -> dict[str, list[Hold]]:
    """By each shard of the grid, what of the window cannot be called complete."""
    totals = {shard.shard_id: shard for shard in shards}
    found: dict[str, list[Hold]] = {shard_id: [] for shard_id in totals}
    for row in spans:
        hold = Hold(row.held_from, row.held_until, Held(row.held_by))
        covered = totals[row.shard_id].trace_coverage
        is_forgiven = hold.why is Held.THIN and covered is not None and covered >= floor
        if not is_forgiven:
            found[row.shard_id].append(hold)
    thin = [name for name, holds in found.items() if any(h.why is Held.THIN for h in holds)]
    if thin:
        traced = _traced(sums, thin)
        for shard_id in set(thin) - traced:  # nobody ever said that messages go there
            found[shard_id] = [hold for hold in found[shard_id] if hold.why is not Held.THIN]
    return found


def _traced(sums: DataFrame, shard_ids: list[str]) -> set[str]:
    of_them = sums.where(F.col("shard_id").isin(shard_ids) & (F.col("sent_n") > 0))
    return {row.shard_id for row in of_them.select("shard_id").distinct().collect()}


def _record(row: StoredRow) -> ShardRecord:
    holds = (
        Hold(datetime.fromisoformat(start), datetime.fromisoformat(end), Held(why))
        for start, end, why in json.loads(row["holds"])
    )
    return ShardRecord(row["audited_from"], row["audited_until"], row["as_of"], tuple(holds))


def _row(
    request: AuditRequest, shard_id: str, record: ShardRecord, first: Hold | None
) -> Mapping[str, object]:
    return {
        "stream": request.name,
        "shard_id": shard_id,
        "watermark": first.start if first else record.audited_until,
        "held_by": first.why.value if first else None,
        "audited_from": record.audited_from,
        "audited_until": record.audited_until,
        "as_of": record.as_of,
        "holds": json.dumps(
            [[h.start.isoformat(), h.end.isoformat(), h.why.value] for h in record.holds]
        ),
        "audit_id": request.audit_id,
    }


def _counts(findings: DataFrame, shard_id: str, hold: Hold) -> dict[tuple[Kind, bool], int]:
    """The messages that hold the watermark: by kind, and whether they are gone for good."""
    if hold.why is not Held.FINDINGS:
        return {}
    in_cell = unsettled(findings).where(
        (F.col("shard_id") == shard_id)
        & (F.col("sent_at") >= F.lit(hold.start))
        & (F.col("sent_at") < F.lit(hold.end))
    )
    rows = in_cell.groupBy("kind", (F.col("state") == State.EXPIRED.value).alias("gone")).count()
    return {(Kind(row.kind), row.gone): row["count"] for row in rows.collect()}
