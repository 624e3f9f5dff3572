"""Both sides of a window: the ledger for every cell, ids for those that need a look."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import Canary, beside
from shardaudit.audit.evidence import Ingested, Sources, sources
from shardaudit.audit.kept_days import days_of, keep_ledger_sums
from shardaudit.audit.looked_into import Look, is_audited
from shardaudit.audit.placing import Placed, buckets_of
from shardaudit.audit.route.filtered import Filtered
from shardaudit.audit.route.left_out import with_filtered_ids
from shardaudit.audit.rules.apart import crossing_ids, displaced_rows, within_window
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.carried import (
    Carried,
    carried,
    changed_days,
    judged_evidence,
    sampled_cells,
    with_neighbours,
)
from shardaudit.audit.rules.cells import is_all_else_even, landed_besides
from shardaudit.audit.rules.classify import classified_ids, with_put_again
from shardaudit.audit.rules.drill_down import difference_hash, ids
from shardaudit.audit.rules.gaps import less_the_unnamed, unlanded_rest
from shardaudit.audit.rules.ledger_hours import LedgerSums
from shardaudit.audit.rules.vanished import (
    is_emptied,
    is_emptied_as_seen,
    is_known_in_part,
    unlanded,
    vanished_ids,
)
from shardaudit.audit.window_ledger import WindowLedger, window_ledger, with_many_unsent
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.config.choices import BackfillMode
from shardaudit.model.tables.audit_tables import EVIDENCE, TRANSITIONS
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS
from shardaudit.model.verdict import State
from shardaudit.store.warehouse import Warehouse

SAMPLED_CELLS = 4  # clean cells, each with its two neighbours, that every audit reads in full


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the verdicts are made of, the canary too, but for `sums`: the whole ledger.

    `numbers`: the last batch of each side; `has_traces`: whether the stream ever had one.
    `shards`: of the facts of the stream's own: `has_lost_rows`, `sent_total`, `landed_total`;
    `cells`: the whole grid; `by_id`: the cells that were ever compared by id; `read`: those of them
    that this run read in full, and `seen` what stands in them; `classified`: the ids that are told
    one by one, and not by their gap alone; `rest`: of `unlanded_rest`;
    `placed`: of `Sources`; `displaced`: of `apart.displaced_rows`; `apart`: the stream's own traces
    near the window that count in another bucket than theirs; `stamped_anew`: the messages that a
    producer gave several times; `filtered`: of `WindowLedger`.
    """

    numbers: dict[str, int]
    has_traces: bool
    sums: LedgerSums
    cells: DataFrame
    facts: DataFrame
    shards: list[Row]
    by_id: DataFrame
    read: DataFrame
    seen: DataFrame
    classified: DataFrame
    rest: DataFrame
    placed: Placed | None
    displaced: DataFrame
    apart: DataFrame
    stamped_anew: int
    filtered: Filtered | None = None


def compare_and_keep(
    warehouse: Warehouse, request: AuditRequest, state: Ingested, planted: Canary
) -> Comparison:
    """Compares the window's cells, and the canary's; keeps what it learned of those that differ."""
    both = sources(warehouse, request, state, planted)
    sums = keep_ledger_sums(warehouse, request, both)
    ledger = window_ledger(warehouse, request, both, sums)
    both = _but_filtered(both, ledger)
    stored = _stored(warehouse, request)
    judged = judged_evidence(beside(planted.evidence, stored), ledger.cells)
    known = carried(judged.localCheckpoint())
    apart = both.apart(request.aligned).localCheckpoint()
    ledger, differing = _differing(ledger, request, both, known)
    look = Look(both, request, ledger, known, apart)
    looked = look.into(differing, _unread(ledger, known, both, apart))
    evidence = looked.evidence
    if looked.is_new:
        _keep(warehouse, request, stored, evidence, ledger.cells)
    classified = _classified(evidence, ledger, both, request)
    is_inside = is_audited(request)
    crossing = crossing_ids(evidence, is_inside).localCheckpoint()
    told = within_window(classified, crossing, is_inside).localCheckpoint()
    rest = _rest(ledger, request, planted)
    return Comparison(
        numbers=state.numbers,
        has_traces=state.counted["traces"] > 0,
        sums=ledger.sums.without_canary(),
        cells=ledger.cells,
        facts=ledger.facts,
        shards=ledger.shards,
        by_id=_by_id(differing, known, rest),
        read=looked.read,
        seen=looked.seen,
        classified=less_the_unnamed(told, rest, ledger.named).localCheckpoint(),
        rest=rest,
        placed=both.placed,
        displaced=displaced_rows(evidence, told, crossing, is_inside),
        apart=without_canary(apart, "message_id"),
        stamped_anew=_stamped_anew(apart, request),
        filtered=ledger.filtered,
    )


def _stored(warehouse: Warehouse, request: AuditRequest) -> DataFrame:
    """What is kept of the days of which the window has a part: EVIDENCE."""
    is_near = F.col("sent_day").isin(sorted(days_of([request.aligned])))
    return warehouse.read(EVIDENCE).where((F.col("stream") == request.name) & is_near)


def _but_filtered(both: Sources, ledger: WindowLedger) -> Sources:
    """Both sides, without what filters of the route left out of what was sent."""
    if ledger.filtered is None:
        return both
    return replace(both, never_due=ledger.filtered.settled.select("id_hash"))


def _differing(
    ledger: WindowLedger, request: AuditRequest, both: Sources, known: Carried
) -> tuple[WindowLedger, DataFrame]:
    """The ledger, with what is only counted; and of `_to_read`, read."""
    differing = _to_read(ledger.cells, known, request).localCheckpoint()
    if not ledger.may_have_unsent:
        return ledger, differing
    ledger = with_many_unsent(ledger, request, both, differing, known)
    return ledger, _to_read(ledger.cells, known, request).localCheckpoint()


def _by_id(differing: DataFrame, known: Carried, rest: DataFrame) -> DataFrame:
    cells = differing.select(*CELL).union(known.covered).distinct()
    return cells.join(rest, CELL, how="left_anti")


def _rest(ledger: WindowLedger, request: AuditRequest, planted: Canary) -> DataFrame:
    """Of `unlanded_rest`; read."""
    damage = planted.plan.judged_damage
    rest = unlanded_rest(ledger.cells, ledger.facts, as_of=request.as_of, damage=damage)
    return rest.localCheckpoint()


def _unread(ledger: WindowLedger, known: Carried, both: Sources, apart: DataFrame) -> DataFrame:
    """The ids that are looked up of cells that are not read: (`message_id`, `bucket_start`)."""
    left = both.retried_ids(ledger.buckets_of_left(is_emptied_as_seen()), apart)
    return left.unionByName(_of_gaps(ledger, known, both))


def _of_gaps(ledger: WindowLedger, known: Carried, both: Sources) -> DataFrame:
    """The ids of gaps that are looked up: those that landed there, and those with a finding.

    Unique (`message_id`, `bucket_start`) each.
    """
    gaps = ledger.cells.where(F.col("is_gap"))
    thin = gaps.where(landed_besides() > 0).select(*CELL).join(known.covered, CELL, how="left_anti")
    named = ledger.named.join(gaps.select(*CELL), CELL, how="left_semi")
    ids = bare(named.select("message_id", "bucket_start"))
    starts = both.planted.left_out(buckets_of(thin))
    if not starts:
        return ids
    return beside(ids, both.within(starts).landed_ids(thin, but=ledger.unsent))


def _classified(
    evidence: DataFrame, ledger: WindowLedger, both: Sources, request: AuditRequest
) -> DataFrame:
    """What is wrong with each id, in the window and beyond it; read."""
    # Read: it is looked at three times.
    folded, damage = ids(evidence).localCheckpoint(), both.planted.plan.judged_damage
    brought = both.brought(ledger.buckets_of_left(is_known_in_part()), unlanded(folded))
    gone = vanished_ids(folded, ledger.cells, ledger.missing, brought, request.retention)
    told = classified_ids(folded, ledger.facts, gone, as_of=request.as_of, damage=damage)
    if request.stream.backfill_mode is BackfillMode.REPUBLISH:
        told = _with_put_again(told, both.traces.warehouse, request.name)
    if ledger.filtered is not None:
        told = with_filtered_ids(told, ledger.filtered.recent)
    return told.localCheckpoint()


def _with_put_again(told: DataFrame, warehouse: Warehouse, name: str) -> DataFrame:
    """Of `with_put_again`: a backfill marks what it puts before it puts it."""
    is_marked = (F.col("stream") == name) & (F.col("to_state") == State.REPLAYED.value)
    ids = warehouse.read(TRANSITIONS).where(is_marked).select("message_id").distinct()
    cells = warehouse.read(GAP_TRANSITIONS).where(is_marked).select(*CELL).distinct()
    return with_put_again(told, bare(ids), bare(cells))


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
    """Stores the window's evidence beside what else is kept of its days: of days that changed.

    What lies outside of the window is read each time: nothing tells when it changed.

    Input:
        stored: of `_stored`.
    """
    window = cells.select(*CELL)
    others = stored.join(window, CELL, how="left_anti")
    kept = without_canary(evidence.join(window, CELL, how="left_semi"))
    rows = others.unionByName(kept)
    changed = {row.sent_day: row.rows for row in collected(changed_days(stored, rows))}
    if changed:
        warehouse.replace(
            rows.where(F.col("sent_day").isin(sorted(changed))),
            EVIDENCE,
            having={"stream": [request.name], "sent_day": [day.isoformat() for day in changed]},
            most=sum(changed.values()),
        )


def _sample(cells: DataFrame, request: AuditRequest) -> DataFrame:
    """Some clean cells, to be read all the same: others on another day."""
    seed = request.as_of.date().isoformat()
    return sampled_cells(without_canary(cells), seed=seed, size=SAMPLED_CELLS)


def _to_read(cells: DataFrame, known: Carried, request: AuditRequest) -> DataFrame:
    """The cells that differ and are not known yet, and the sample of clean ones.

    Not those of which nothing is left: all that there was of them was complete. And no gap, nor
    one that is even but for what is only counted.

    Output:
        CELL, unique; `id_hash`: of the one id by which a cell seems to differ; NULL: it is read in
        full.
    """
    near = with_neighbours(_sample(cells, request), bucket=request.stream.bucket)
    some = cells.where(~is_emptied() & ~F.col("is_gap") & ~is_all_else_even())
    # Where many ids are untraced, sums that differ as if by one id are more often no accident.
    alone = F.when(F.col("unsent_n") == 0, difference_hash()).alias("id_hash")
    differing = some.where(F.col("differs")).select(*CELL, alone)
    in_full = F.lit(None).cast("bigint").alias("id_hash")
    in_window = some.select(*CELL, in_full).join(near, CELL, how="left_semi")
    return (
        differing.join(known.covered, CELL, how="left_anti")
        .join(near, CELL, how="left_anti")
        .union(in_window)
    )
