"""The small rows that the gates judge, collected: per batch, hour and shard."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.judged import Outcome
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.cells import FEWEST_SHIFTED, shifted_shards
from shardaudit.audit.rules.hours import Hole, Hour, holes, hour_sums, silence_lengths, slot
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.rules.batch_inputs import TraceInputs, sink_inputs
from shardaudit.ingest.rules.batch_summary import batch_summaries
from shardaudit.model.audit_id import ended_at
from shardaudit.model.gate import LEDGER_GATE, RESULT_GATE, SINK_GATE, TRACES_GATE
from shardaudit.model.source import SourceFile
from shardaudit.model.tables.audit_tables import AUDITS, BATCHES, CELLS, FINGERPRINTS, QUARANTINE
from shardaudit.store.audits import done_batches, published_of
from shardaudit.store.warehouse import Warehouse

GATED_BATCHES = {TRACES_GATE.name: "traces", SINK_GATE.name: "sink"}
_SHOWN = ("shards", "sent_from", "sent_to", "foreign", "elsewhere", "gaps", "main_reason")


def summaries(
    warehouse: Warehouse, request: AuditRequest, comparison: Comparison, outcome: Outcome
) -> dict[str, list[Row]]:
    """The rows of each suite that judges an audit, by the suite's name."""
    published = _published(warehouse, request)
    batches = _batches(warehouse, request, published)
    return {
        **{
            suite: [row for row in batches if row["side"] == side]
            for suite, side in GATED_BATCHES.items()
        },
        LEDGER_GATE.name: _hours(warehouse, request, comparison, published),
        RESULT_GATE.name: _shards(comparison, outcome),
    }


def _shards(comparison: Comparison, outcome: Outcome) -> list[Row]:
    """The shards over the window."""
    shifted: dict[str, int] = {}
    if outcome.sums["by_id"] >= FEWEST_SHIFTED:
        found = shifted_shards(without_canary(comparison.cells), comparison.sums.cells)
        shifted = {row.shard_id: row.minutes for row in collected(found)}
    return [
        {
            "shard_id": shard.shard_id,
            **shard.sums,
            "shifted_minutes": shifted.get(shard.shard_id, 0),
        }
        for shard in outcome.shards
    ]


def _published(warehouse: Warehouse, request: AuditRequest) -> list[Row]:
    """The stream's published audits but for this one, oldest first."""
    rows = warehouse.rows(AUDITS, where=published_of(request.name))
    others = [row for row in rows if row["audit_id"] != request.audit_id]
    return sorted(others, key=ended_at)


def _batches(warehouse: Warehouse, request: AuditRequest, published: list[Row]) -> list[Row]:
    """The finished batches that no published audit stood on, as their contracts want them.

    What was read anew since, as behind another configuration, is judged by how it is now.
    """
    judged = [json.loads(row["inputs"])["batches"] for row in published]
    done = warehouse.rows(BATCHES, where=done_batches(request.name))
    fresh = {
        row["batch_id"]: row
        for row in done
        if row["number"] > max((numbers.get(row["side"], 0) for numbers in judged), default=0)
    }
    for name in _read_anew(list(fresh.values())):
        del fresh[name]
    if not fresh:
        return []
    mine = (F.col("stream") == request.name) & F.col("batch_id").isin(list(fresh))
    found = batch_summaries(
        warehouse.read(FINGERPRINTS).where(mine),
        warehouse.read(QUARANTINE).where(mine),
        shape=request.cells,
    )
    told = {row.batch_id: row.asDict() for row in collected(found)}
    return [
        # Where no cell says it: a batch is mostly read soon after its messages were sent.
        _batch(row, told.get(name, {}), request.cells.at(row["planned_at"]).sample_rate)
        for name, row in sorted(fresh.items())
    ]


def _read_anew(batches: Sequence[Row]) -> set[str]:
    """The batches of which later ones have read all again, the sink's with other columns."""
    names, again, later = set(), set[SourceFile](), list[Mapping[str, str]]()
    for row in sorted(batches, key=lambda row: int(row["number"]), reverse=True):
        if row["side"] == "sink":
            sink = sink_inputs(row["inputs"])
            is_anew = any(columns != sink.columns for columns in later)
            later += [sink.columns] if sink.is_full else []
        else:
            files = set(TraceInputs.from_json(row["inputs"]).files)
            is_anew, again = files <= again, again | files
        if is_anew:
            names.add(row["batch_id"])
    return names


def _batch(batch: Row, told: Mapping[str, object], usual_share: float) -> Row:
    count = {name: int(str(told.get(name) or 0)) for name in ("refused", "foreign")}
    refused = count["refused"] - count["foreign"]
    # Only ids in the sample are taken in, but whatever cannot be used is refused.
    share = float(str(told.get("share") or usual_share))
    lines = round((batch["rows"] or 0) / share) + refused
    impossible = sum(int(str(told.get(name) or 0)) for name in ("clock_refused", "too_old"))
    return {
        "batch_id": batch["batch_id"],
        "side": batch["side"],
        "lines": lines,
        "refused": refused,
        "refused_share": refused / lines if lines else 0.0,
        "impossible_times": impossible,
        **{name: told.get(name) for name in _SHOWN},
    }


def _hours(
    warehouse: Warehouse, request: AuditRequest, comparison: Comparison, published: list[Row]
) -> list[Row]:
    """The ledger's hours, against the newest published audit that saw some of them."""
    window = request.aligned
    cells = bare(warehouse.read(CELLS).where(in_windows(F.col("bucket_start"), [window])))
    seen = [
        row["audit_id"]
        for row in published
        if row["window_start"] < window.end and row["window_end"] > window.start
    ]
    before = cells.where(F.col("audit_id") == seen[-1]) if seen else cells.limit(0)
    width = slot(request.stream.bucket)
    sums = comparison.sums
    rows = collected(hour_sums(sums.near, sums.kept, before, window=window, width=width))
    known = [
        Hour(row.start, row.sent, row.landed, row.sent_before, row.without_landed_at or 0)
        for row in rows
    ]
    return _ledger_rows(known, width, since=window.start - width)


def _ledger_rows(known: list[Hour], width: timedelta, *, since: datetime) -> list[Row]:
    """The hours after a time, as their contract wants them."""
    hole_of, silence_of = holes(known, width), silence_lengths(known, width)
    active = sum(hour.sent > 0 or hour.landed > 0 for hour in known)
    rows = []
    for hour in sorted(known, key=lambda hour: hour.start):
        if hour.start <= since:
            continue
        hole = hole_of.get(hour.start, Hole(0, 0, False))
        quiet, usual = silence_of.get(hour.start, (0, 0))
        rows.append(
            {
                "hour": hour.start,
                "sent": hour.sent,
                "landed": hour.landed,
                "sent_before": hour.sent_before,
                "hours_without_traces": 0 if hole.is_open else hole.hours,
                "hours_since_traces": hole.hours if hole.is_open else 0,
                "rows_without_traces": hole.landed,
                "quiet_hours": quiet,
                "usual_quiet_hours": usual,
                "active_hours": active,
                "rows_without_landing_time": hour.without_landed_at,
            }
        )
    return rows
