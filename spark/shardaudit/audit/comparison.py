"""Both sides of a window: the ledger for every cell, ids for those that need a look."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import held, own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import Canary, beside
from shardaudit.audit.evidence import Ingested, Sources, sources
from shardaudit.audit.looked_into import Look, is_audited
from shardaudit.audit.placing import Placed, buckets_of
from shardaudit.audit.rules.apart import crossing_ids, displaced_rows, within_window
from shardaudit.audit.rules.canary_answers import without_canary
from shardaudit.audit.rules.carried import (
    Carried,
    carried,
    judged_evidence,
    sampled_cells,
    with_bucket_digest,
    with_neighbours,
)
from shardaudit.audit.rules.cells import cell_sums, compared_cells, grid
from shardaudit.audit.rules.classify import classified_ids
from shardaudit.audit.rules.drill_down import (
    CELL,
    difference_hash,
    ids,
)
from shardaudit.audit.rules.patience import patiences
from shardaudit.audit.rules.shard_facts import shard_facts
from shardaudit.audit.rules.vanished import (
    Deadlines,
    Past,
    is_emptied,
    is_emptied_as_seen,
    is_known_in_part,
    last_arrival,
    overdue_cells,
    unlanded,
    vanished_cells,
    vanished_ids,
    with_vanished,
)
from shardaudit.model.input_columns import CANARY
from shardaudit.model.tables.audit_tables import BATCHES, EVIDENCE, FINDINGS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import Kind, State
from shardaudit.store.newest_cells import audited_cells
from shardaudit.store.warehouse import Warehouse

_ENDED = (State.RECOVERED.value, State.FALSE_ALARM.value)
SAMPLED_CELLS = 4  # clean cells, each with its two neighbours, that every audit reads in full


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
    findings = warehouse.read(FINDINGS).where(
        (F.col("stream") == request.name)
        & (F.col("kind") == Kind.MISSING.value)
        & ~F.col("state").isin(*_ENDED)
        & (F.col("sent_at") >= F.lit(request.aligned.start))
        & (F.col("sent_at") < F.lit(request.aligned.end))
    )
    return Past(
        both.ledger,
        beside(planted.batches, batches.select("batch_id", "number", "planned_at")),
        planted.audited
        if audited is None
        else beside(planted.audited, audited.select(*planted.audited.columns)),
        beside(planted.missing, findings.select("message_id")),
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the verdicts are made of, the canary too, but for `sums`: the whole ledger.

    `ledger`: its rows, the canary's too, those that no batch counted without `batch_id`; `numbers`:
    the last batch of each side; `has_traces`: whether the stream ever had one.
    `shards`: of the facts of the stream's own: `has_lost_rows`, `sent_total`, `landed_total`;
    `cells`: the whole grid; `by_id`: the cells that were ever compared by id; `read`: those of them
    that this run read in full, and `seen` what stands in them; `classified`: the ids that are told;
    `placed`: of `Sources`; `displaced`: of `apart.displaced_rows`; `apart`: the stream's own traces
    near the window that count in another bucket than theirs; `stamped_anew`: the messages that a
    producer gave several times.
    """

    numbers: dict[str, int]
    has_traces: bool
    ledger: DataFrame
    sums: DataFrame
    cells: DataFrame
    facts: DataFrame
    shards: list[Row]
    by_id: DataFrame
    read: DataFrame
    seen: DataFrame
    classified: DataFrame
    placed: Placed | None
    displaced: DataFrame
    apart: DataFrame
    stamped_anew: int


def compared(
    warehouse: Warehouse, request: AuditRequest, state: Ingested, planted: Canary
) -> Comparison:
    """Compares the window's cells, and the canary's, and looks into those that differ."""
    both = sources(warehouse, request, state, planted)
    ledger = _ledger(warehouse, request, both)
    cells = ledger.cells
    sample = _sample(cells, request)
    stored = warehouse.read(EVIDENCE).where(F.col("stream") == request.name)
    judged = judged_evidence(beside(planted.evidence, stored), cells)
    known = carried(judged.localCheckpoint())
    apart = both.apart(request.aligned).localCheckpoint()
    look = Look(both, request, cells, known, apart)
    differing = _to_read(cells, known, sample, request).localCheckpoint()
    retried = both.retried_ids(ledger.buckets_of_left(is_emptied_as_seen()), apart)
    looked = look.into(differing, retried)
    evidence = looked.evidence
    if looked.is_new:
        _keep(warehouse, request, stored, evidence, cells)
    classified = _classified(evidence, ledger, both, request)
    is_inside = is_audited(request)
    crossing = crossing_ids(evidence, is_inside).localCheckpoint()
    told = within_window(classified, crossing, is_inside).localCheckpoint()
    return Comparison(
        numbers=state.numbers,
        has_traces=state.counted["traces"] > 0,
        ledger=both.ledger,
        sums=without_canary(ledger.sums),
        cells=cells,
        facts=ledger.facts,
        shards=ledger.shards,
        by_id=differing.select(*CELL).union(known.covered).distinct(),
        read=looked.read,
        seen=looked.seen,
        classified=told,
        placed=both.placed,
        displaced=displaced_rows(evidence, told, crossing, is_inside),
        apart=without_canary(apart, "message_id"),
        stamped_anew=_stamped_anew(apart, request),
    )


def _classified(
    evidence: DataFrame, ledger: "_Ledger", both: Sources, request: AuditRequest
) -> DataFrame:
    """What is wrong with each id, in the window and beyond it; read."""
    # Read: it is looked at three times.
    folded, damage = ids(evidence).localCheckpoint(), both.planted.plan.judged_damage
    brought = both.brought(ledger.buckets_of_left(is_known_in_part()), unlanded(folded))
    gone = vanished_ids(folded, ledger.cells, ledger.missing, brought, request.retention)
    return classified_ids(
        folded, ledger.facts, gone, as_of=request.as_of, damage=damage
    ).localCheckpoint()


def _stamped_anew(apart: DataFrame, request: AuditRequest) -> int:
    """How many messages have traces in several buckets, one of them in the window."""
    is_seen = is_audited(request) | is_audited(request, "counted_in")
    own = without_canary(apart.where(is_seen), "message_id")
    return own.select("message_id").distinct().count()


def _keep(
    warehouse: Warehouse,
    request: AuditRequest,
    stored: DataFrame,
    evidence: DataFrame,
    cells: DataFrame,
) -> None:
    """Stores the window's evidence beside that of other windows.

    What lies outside of the window is read each time: nothing tells when it changed.
    """
    window = cells.select(*CELL)
    others = stored.join(window, CELL, how="left_anti")
    kept = without_canary(evidence.join(window, CELL, how="left_semi"))
    rows = others.unionByName(kept)
    most = stored.select(F.lit(1)).union(evidence.select(F.lit(1))).count()
    warehouse.replace(rows, EVIDENCE, column="stream", value=request.name, most=most)


@dataclass(frozen=True, slots=True)
class _Ledger:
    """The ledger's cells, the grid's with both fingerprints, the facts of each shard.

    `shards`: of `Comparison`; `missing`: of `Past`.
    """

    sums: DataFrame
    cells: DataFrame
    facts: DataFrame
    shards: list[Row]
    missing: DataFrame

    def buckets_of_left(self, are_such: Column) -> list[datetime]:
        """The buckets of such cells; none where no row ever left the sink."""
        has_left = any(row.has_lost_rows for row in self.shards)
        return buckets_of(self.cells.where(are_such)) if has_left else []


def _ledger(warehouse: Warehouse, request: AuditRequest, both: Sources) -> _Ledger:
    stream, window, ledger = request.stream, request.aligned, both.ledger
    sums = cell_sums(ledger, last_arrival(stream.bucket)).localCheckpoint()
    as_of, grace = request.as_of, stream.settle_grace
    patience = patiences(
        ledger,
        as_of=as_of,
        bucket=stream.bucket,
        settle_grace=grace,
        retention=request.retention.length,
    )
    facts = held(shard_facts(sums, patience, as_of=as_of, settle_grace=grace))
    listed = warehouse.counts(SHARDS, by=["shard_id"], having={"stream": request.name})
    told = collected(facts.select("shard_id", "has_lost_rows", "sent_total", "landed_total"))
    seen = [(row.shard_id,) for row in told]
    shards = own_rows(warehouse.spark, sorted({*listed, *seen}), "shard_id string")
    own = grid(without_canary(shards), window=window, bucket=stream.bucket)
    cells = compared_cells(both.planted.grid(shards).unionByName(own), sums)
    own_shards = [row for row in told if not row.shard_id.startswith(CANARY)]
    known = past(warehouse, request, both, own_shards)
    by = deadlines(request, both)
    over = overdue_cells(cells, known, by).localCheckpoint()
    gone = vanished_cells(over, known, by)
    whole = with_bucket_digest(with_vanished(cells, gone), sums).localCheckpoint()
    return _Ledger(sums, whole, facts, own_shards, known.missing)


def _sample(cells: DataFrame, request: AuditRequest) -> DataFrame:
    """Some clean cells, to be read all the same: others on another day."""
    seed = request.as_of.date().isoformat()
    return sampled_cells(without_canary(cells), seed=seed, size=SAMPLED_CELLS)


def _to_read(
    cells: DataFrame, known: Carried, sample: DataFrame, request: AuditRequest
) -> DataFrame:
    """The cells that differ and are not known yet, and the sample of clean ones.

    Not those of which nothing is left: all that there was of them was complete.

    Output:
        CELL, unique; `id_hash`: of the one id by which a cell seems to differ; NULL: it is read in
        full.
    """
    near = with_neighbours(sample, bucket=request.stream.bucket)
    some = cells.where(~is_emptied())
    differing = some.where(F.col("differs")).select(*CELL, difference_hash().alias("id_hash"))
    in_full = F.lit(None).cast("bigint").alias("id_hash")
    in_window = some.select(*CELL, in_full).join(near, CELL, how="left_semi")
    return (
        differing.join(known.covered, CELL, how="left_anti")
        .join(near, CELL, how="left_anti")
        .union(in_window)
    )
