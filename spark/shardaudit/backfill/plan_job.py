"""`backfill plan`: from live findings, or a range by hand, to a stored plan.

Nothing of the stream's shards is read, and nothing is written but the plan.
"""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.adapters.lake.delta_rs import Row as StoredRow
from shardaudit.backfill.arrival_times import arrival_delays, delays_around, placed_in_time
from shardaudit.backfill.ledger import store_plan, store_windows, stored_windows, taken_up
from shardaudit.backfill.rules.missing import (
    asked_for,
    by_arrival,
    missing_ids,
    stretches,
    window_ids,
)
from shardaudit.backfill.rules.plan import Terms, planned, wanted_stretches
from shardaudit.backfill.rules.planned import Plan, Stretch
from shardaudit.backfill.rules.ranges import Range, gap_stretch, is_read_with, ranges, whole_ranges
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.config.settings import DAY, Stream
from shardaudit.model.errors import ConfigError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.backfill_tables import BACKFILL_GAPS, BACKFILL_IDS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import LIVE, Cause, Kind, State
from shardaudit.model.window import Window
from shardaudit.store.cells import field_within
from shardaudit.store.ledger_days import ledger_eras
from shardaudit.store.transitions import findings_in
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is to be planned. Without a window: the live findings of missing messages.

    A window is widened to whole cells: the audit that proves it judges those.
    """

    name: str
    stream: Stream
    as_of: datetime
    retention: Retention
    configured: str | None = None  # of `approval.configured_for`
    include_stuck: bool = False
    window: Window | None = None
    shard_ids: tuple[str, ...] = ()

    @property
    def leaves_handed_over(self) -> bool:
        """What somebody else was asked for is not planned again before they had their time."""
        return self.stream.backfill_mode.hands_over and self.window is None

    @property
    def scope(self) -> str:
        """What of the stream is to be planned, as options; empty: all that is open.

        Of two requests of the same scope the later plan holds what the earlier one held.
        """
        ends = (self.window.start, self.window.end) if self.window else ()
        words = [f"--{key}={at.isoformat()}" for key, at in zip(("from", "to"), ends, strict=False)]
        words += [f"--shard={shard_id}" for shard_id in sorted(set(self.shard_ids))]
        words += ["--include-stuck"] if self.include_stuck else []
        return shlex.join(words)


def plan_backfill(warehouse: Warehouse, request: PlanRequest, *, now: datetime) -> Plan:
    """The plan. It is stored, unless it is stored already and not over: that one goes on.

    It begins anew where it was planned with other settings than are in its id.

    Raises:
        ConfigError: a shard that the stream never had.
    """
    states = (State.OPEN,) if request.leaves_handed_over else LIVE
    eras = ledger_eras(warehouse, request.name, request.stream)
    window = request.window and eras.aligned(request.window)
    found = _missing(warehouse, request.name, states, shard_ids=request.shard_ids)
    missing = (by_arrival(found) if window is None else asked_for(found, window)).localCheckpoint()
    gaps = _gaps(warehouse, request.name, states, window)
    of_cells = [_stretch(row) for row in collected(stretches(missing))]
    of_cells += [gap_stretch(gap, window) for gap in gaps]
    of_cells = placed_in_time(warehouse, request.name, of_cells, bucket=eras.widest)
    terms = Terms(
        request.name,
        request.as_of,
        request.retention.length,
        request.stream.backfill.read_share,
        request.stream.digest(),
        takes_all=request.window is not None,
        sample_rate=eras.least_rate,
        configured=request.configured,
    )
    plan = planned(_ranges(warehouse, request, of_cells, window, terms), terms)
    before, known = stored_windows(warehouse, plan.plan_id), {None, plan.configured}
    if plan.windows and all(w.state.is_over or w.configured not in known for w in before):
        # In this order: a plan whose windows are there has its ids.
        _store_ids(warehouse, plan, missing)
        _store_gaps(warehouse, plan, gaps)
        store_plan(warehouse, plan, now=now)
    elif before:  # who asked for it finds it by its time
        store_windows(warehouse, taken_up(plan, before, now=now))
    return plan


def _gaps(
    warehouse: Warehouse, name: str, states: Sequence[State], window: Window | None
) -> list[StoredRow]:
    """The gaps of the stream in these states, of a window when one is given."""
    wanted = (pc.field("stream") == name) & pc.field("state").isin(states)
    if window is not None:
        wanted &= field_within("bucket_start", window.start, window.end)
    return warehouse.rows(GAPS, where=wanted)


def _store_gaps(warehouse: Warehouse, plan: Plan, gaps: Sequence[StoredRow]) -> None:
    known = {(gap["shard_id"], gap["bucket_start"]): gap for gap in gaps}
    rows = [
        {"plan_id": plan.plan_id, "window_id": window.window_id}
        | {n: gap[n] for n in BACKFILL_GAPS.names if n in gap}
        for window in plan.windows
        for start in window.gaps
        if (gap := known[window.shard_id, start])
    ]
    if rows:
        warehouse.upsert(rows, BACKFILL_GAPS)


def _missing(
    warehouse: Warehouse, name: str, states: Sequence[State], *, shard_ids: Sequence[str]
) -> DataFrame:
    """The missing messages of the stream, or that were put on one of these shards.

    The traces are pruned to their days.
    """
    missing = findings_in(warehouse, name, Kind.MISSING, *states)
    ends = F.min("sent_at").alias("first"), F.max("sent_at").alias("last")
    [sent] = collected(missing.agg(*ends))
    days = [Window(sent.first, sent.last + datetime.resolution).aligned(DAY)] if sent.first else []
    traces = StreamTraces.of(warehouse, name).within(days, ids=missing)
    if shard_ids:  # of attempts on several shards, the last one on these
        traces = traces.where(F.col("shard_id").isin(list(shard_ids)))
    return missing_ids(missing, traces)


def _ranges(
    warehouse: Warehouse,
    request: PlanRequest,
    found: Sequence[Stretch],
    window: Window | None,
    terms: Terms,
) -> list[Range]:
    if request.shard_ids:
        check_shards(warehouse, request.name, request.shard_ids)
    chosen = [s for s in found if not request.shard_ids or s.shard_id in request.shard_ids]
    if window is None:
        wanted = wanted_stretches(chosen, terms, include_stuck=request.include_stuck)
        return ranges(wanted, delays=delays_around(warehouse, request.name, wanted))
    shard_ids = request.shard_ids or _known_shards(warehouse, request.name)
    inside = [s for s in chosen if is_read_with(window, s)]
    whole = whole_ranges(
        shard_ids,
        window,
        inside,
        deadline=request.retention.until(window.start),
        delays=arrival_delays(warehouse, request.name, [window]),
    )
    return whole + ranges(s for s in chosen if not is_read_with(window, s))


def _known_shards(warehouse: Warehouse, name: str) -> list[str]:
    """Every shard that was ever listed, traced or landed."""
    listed, ledger = (
        warehouse.read(table).where(F.col("stream") == name).select("shard_id")
        for table in (SHARDS, FINGERPRINTS)
    )
    return sorted(row.shard_id for row in listed.union(ledger).distinct().collect())


def check_shards(warehouse: Warehouse, name: str, shard_ids: Collection[str]) -> None:
    """Returns when they are shards of the stream.

    Raises:
        ConfigError: one of them was never listed, traced or landed.
    """
    known = _known_shards(warehouse, name)
    for shard_id in shard_ids:
        if shard_id not in known:
            raise ConfigError("--shard", shard_id, f"a shard of {name}: {', '.join(known)}")


def _store_ids(warehouse: Warehouse, plan: Plan, missing: DataFrame) -> None:
    cells = [
        (window.window_id, window.shard_id, start, cause.value)
        for window in plan.windows
        for start in window.buckets
        for cause in window.causes
    ]
    ddl = "window_id string, shard_id string, bucket_start timestamp, cause string"
    windows = own_rows(warehouse.spark, cells, ddl)
    ids = (
        window_ids(missing, windows)
        .withColumn("plan_id", F.lit(plan.plan_id))
        .withColumn("stream", F.lit(plan.stream))
    )
    warehouse.replace(ids, BACKFILL_IDS, having={"plan_id": [plan.plan_id]})


def _stretch(row: Row) -> Stretch:
    is_placed = row.places == row.ids
    return Stretch(
        shard_id=row.shard_id,
        bucket_start=row.bucket_start,
        cause=Cause(row.cause),
        ids=row.ids,
        first_sent_at=row.first_sent_at,
        last_sent_at=row.last_sent_at,
        deadline=row.deadline,
        first_sequence=row.first_place.text if is_placed else None,
        last_sequence=row.last_place.text if is_placed else None,
        first_arrival=row.first_arrival,
        last_arrival=row.last_arrival,
        unacked_until=row.unacked_until,
        ids_sum=row.ids_sum,
    )


def stuck_ids(warehouse: Warehouse, name: str, *, shard_ids: Sequence[str]) -> int:
    """How many missing messages that are live are behind a stopped shard, in gaps or not."""
    of_shards = F.col("shard_id").isin(list(shard_ids)) if shard_ids else F.lit(True)
    findings = findings_in(warehouse, name, Kind.MISSING, *LIVE)
    findings = findings.where((F.col("cause") == Cause.STUCK.value) & of_shards)
    live = pc.field("state").isin(LIVE)
    stuck = (pc.field("stream") == name) & (pc.field("cause") == Cause.STUCK.value) & live
    if shard_ids:
        stuck &= pc.field("shard_id").isin(list(shard_ids))
    return findings.count() + sum(int(g["count"]) for g in warehouse.rows(GAPS, where=stuck))
