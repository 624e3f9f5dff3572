"""What an audit says: of each cell, of each id, in numbers, and whether these add up."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import Canary, beside
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.evidence import Ingested
from shardaudit.audit.records import shard_records
from shardaudit.audit.route.hops import with_hops
from shardaudit.audit.route.left_out import closed_by_filter, gaps_by_filter
from shardaudit.audit.rules.canary.canary_answers import is_canary, without_canary
from shardaudit.audit.rules.cell_verdicts import CellFacts, as_unsent, judged_cells
from shardaudit.audit.rules.classify import cell_counts, kinds
from shardaudit.audit.rules.findings import (
    AuditFacts,
    folded_findings,
    pending_ids,
    with_completeness,
    with_wholeness,
)
from shardaudit.audit.rules.gaps import folded_gaps
from shardaudit.audit.rules.totals import (
    TOTALS,
    ShardTotals,
    broken_invariants,
    coverage,
    disagreeing_cells,
    shard_coverages,
    shard_totals,
)
from shardaudit.audit.silences import Silences, silences
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.table import Table
from shardaudit.model.verdict import Cause, Kind, MissingIds, State, Verdict
from shardaudit.model.window import Window, joined
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.warehouse import Warehouse

_FOUND, _FINDING, _GAP = "found", "finding", "gap"
_PLACE = ("shard_id", "cause", "state")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit found, over the window and per shard.

    `sums`: those of `shard_totals`, over all; `kinds`: by kind how many ids findings and gaps tell,
    and how many are only counted;
    `stamped_anew`: messages that a producer gave another `sent_at` when it sent them again;
    `folded`: findings that are to be stored, as the table has them otherwise, or not; `changed`:
    of these, their state; `gaps`: gaps that are to be stored;
    `vanished_until`: the end of the last cell from which rows are gone; None: there is none;
    `hops`: what the places of the stream's route traced.
    """

    shards: tuple[ShardTotals, ...]
    sums: dict[str, int]
    kinds: dict[str, int]
    missing: tuple[MissingIds, ...]
    stamped_anew: int
    folded: int
    changed: int
    gaps: int
    vanished_until: datetime | None
    hops: tuple[AuditedPlace, ...] = ()

    def shard_verdicts(self, *, tolerance: float, coverage_floor: float) -> dict[str, Verdict]:
        """By shard, after what the configuration tolerates."""
        return {
            shard.shard_id: shard.verdict(tolerance=tolerance, coverage_floor=coverage_floor)
            for shard in self.shards
        }

    @property
    def trace_coverage(self) -> float | None:
        """Landed ids with a trace / landed ids; None when none landed."""
        return coverage(self.sums)


def outcome_of(said: "Judged", audit_id: str) -> Outcome:
    """The numbers of what was judged."""
    rows = collected(shard_totals(said.cells))
    sums = {row.shard_id: {name: row[name] for name in TOTALS} for row in rows}
    covered = shard_coverages(sums)
    shards = tuple(
        ShardTotals(
            shard_id=row.shard_id,
            sums=sums[row.shard_id],
            lost=row.lost,
            verdicts=frozenset(Verdict(v) for v in row.verdicts),
            is_damaged=row.is_damaged,
            is_doubtful=row.is_doubtful,
            trace_coverage=covered[row.shard_id],
        )
        for row in rows
    )
    counted = (*TOTALS, "unsent_n", "cells", "by_id", "without_verdict", "impossible")
    counts = collected(_counts(said, audit_id))
    found = Counter[str]()
    for row in counts:
        found[row.found] += row.ids
    # Only counted: no finding is there to hold them against, so both sides of the rule have these.
    found[Kind.UNTRACED] += sum(row.unsent_n for row in rows)
    findings, gaps = ([r for r in counts if r.what == what] for what in (_FINDING, _GAP))
    return Outcome(
        shards=shards,
        sums={name: sum(row[name] for row in rows) for name in counted},
        kinds={kind.value: found[kind] for kind in Kind},
        missing=tuple(_missing(row) for row in (*findings, *gaps) if row.state is not None),
        stamped_anew=said.stamped_anew,
        folded=sum(row.news for row in findings),
        changed=sum(row.changed for row in findings),
        gaps=sum(row.news for row in gaps),
        vanished_until=max(
            (row.vanished_until for row in rows if row.vanished_until), default=None
        ),
        hops=said.hops,
    )


def _missing(row: Row) -> MissingIds:
    gaps = row.rows if row.what == _GAP else 0
    cause, state = Cause(row.cause), State(row.state)
    return MissingIds(row.shard_id, cause, state, row.ids, row.recoverable_until, gaps)


def _counts(said: "Judged", audit_id: str) -> DataFrame:
    """What is found by kind, and findings and gaps: the missing ones by shard, cause and state.

    Output:
        `what` (found | finding | gap), `found` (the kind; NULL of findings), `shard_id`, `cause`,
        `state` (NULL of all but what the audit found missing), `rows`, `ids`, `changed`, `news`,
        `recoverable_until` (of the first of them to go).
    """
    is_missing = (F.col("kind") == Kind.MISSING.value) & (F.col("last_audit_id") == audit_id)
    none, one = F.lit(None).cast("string"), F.lit(1).cast("bigint")
    kinds = said.found.select(
        F.lit(_FOUND).alias("what"),
        F.col("kind").alias("found"),
        *(none.alias(name) for name in _PLACE),
        one.alias("ids"),
        *(F.lit(False).alias(name) for name in ("is_changed", "is_news")),
        F.lit(None).cast("timestamp").alias("recoverable_until"),
    )
    of_gaps = F.when(F.col("is_found"), Kind.MISSING.value)
    findings = _told(said.folded, _FINDING, found=none, ids=one, where=is_missing)
    gaps = _told(said.gaps, _GAP, found=of_gaps, ids=F.col("count"), where=F.col("is_found"))
    each = kinds.unionByName(findings).unionByName(gaps)
    return each.groupBy("what", "found", *_PLACE).agg(
        F.count("*").alias("rows"),
        F.sum("ids").alias("ids"),
        F.count_if("is_changed").alias("changed"),
        F.count_if("is_news").alias("news"),
        F.min("recoverable_until").alias("recoverable_until"),
    )


def _told(folded: DataFrame, what: str, *, found: Column, ids: Column, where: Column) -> DataFrame:
    return folded.select(
        F.lit(what).alias("what"),
        found.alias("found"),
        *(F.when(where, F.col(name)).alias(name) for name in _PLACE),
        ids.alias("ids"),
        (~F.col("state").eqNullSafe(F.col("from_state"))).alias("is_changed"),
        "is_news",
        "recoverable_until",
    )


def broken_rules(
    comparison: Comparison,
    outcome: Outcome,
    request: AuditRequest,
    state: Ingested,
    torn: Sequence[Row],
) -> list[str]:
    """What does not add up, one sentence each; none when all is well. `torn`: of `torn_cells`."""
    buckets = (request.aligned.end - request.aligned.start) // request.stream.bucket
    sums = outcome.sums | {"grid_cells": buckets * len(outcome.shards)}
    return [
        *broken_invariants(sums, outcome.kinds),
        *map(_torn_cell, torn),
        *torn_ledger(comparison, state),
    ]


def torn_cells(comparison: Comparison) -> list[Row]:
    """Some of the cells that were read and hold other ids or rows than the ledger counts.

    Output:
        `is_sink`: whether other rows; those come first.
    """
    torn = disagreeing_cells(comparison.seen, comparison.cells, comparison.read)
    is_sink = F.col("rows") != F.col("landed_n")
    return collected(torn.withColumn("is_sink", is_sink).orderBy(F.desc("is_sink")).limit(5))


def _torn_cell(row: Row) -> str:
    return (
        f"cell {row.shard_id} {row.bucket_start:%Y-%m-%dT%H:%M:%SZ}: the ledger "
        f"counts {row.sent_n} ids sent and {row.landed_n} rows, traces and sink hold "
        f"{row.counted} and {row.rows}"
    )


def torn_ledger(comparison: Comparison, state: Ingested) -> list[str]:
    """Where all that the ledger counts is not what its batches say that they counted."""
    held = {
        "traces": sum(shard.sent_total for shard in comparison.shards),
        "sink": sum(shard.landed_total for shard in comparison.shards),
    }
    if comparison.placed:
        del held["sink"]
    return [
        f"the ledger counts {found} of the {side}, the batches that were ingested say {said}: a "
        "batch is in it in part, or twice; `shardaudit ingest` finishes one that was cut off"
        for side, found in held.items()
        if (said := state.counted[side]) != found
    ]


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged cells, the (id, kind) pairs that were found, the findings and the gaps after them.

    `silences`: of the whole ledger, where there used to be messages; `stamped_anew`: of
    `Comparison`; `hops`: of `with_hops`.
    """

    cells: DataFrame
    found: DataFrame
    folded: DataFrame
    gaps: DataFrame
    silences: Silences
    stamped_anew: int
    hops: tuple[AuditedPlace, ...] = ()

    def without_canary(self) -> "Judged":
        """What is said of the stream alone."""
        return Judged(
            without_canary(self.cells),
            without_canary(self.found, "message_id"),
            without_canary(self.folded, "message_id"),
            without_canary(self.gaps),
            self.silences,
            self.stamped_anew,
            self.hops,
        )

    def unlike(self, planted: Canary, classified: DataFrame, facts: AuditFacts) -> list[str]:
        """What is said of the canary and should not be; of `Canary.wrongly_judged`."""
        return planted.wrongly_judged(self.cells, classified, self.folded, facts, gaps=self.gaps)


def judged(
    warehouse: Warehouse,
    comparison: Comparison,
    request: AuditRequest,
    facts: AuditFacts,
    planted: Canary,
) -> Judged:
    """The comparison judged, and folded into the stream's findings, with the canary's."""
    classified = comparison.classified
    silent = silences(warehouse, request, comparison.sums.hours, comparison.facts)
    cells = judged_cells(
        comparison.cells,
        cell_counts(classified, comparison.displaced),
        comparison.by_id,
        comparison.facts,
        CellFacts(
            as_of=request.as_of,
            bucket=request.stream.bucket,
            settle_grace=request.stream.settle_grace,
            trace_coverage_floor=request.stream.trace_coverage_floor,
            damage=facts.damage,
            silences=silent.frame(warehouse.spark),
            rest=comparison.rest,
        ),
    ).localCheckpoint()
    found, hops, unsent = with_hops(
        warehouse, request, kinds(classified), cells, comparison=comparison
    )
    if unsent:
        windows = joined(Window(at, at + request.stream.bucket) for _, at in unsent)
        is_unsent = in_windows(F.col("bucket_start"), windows) & ~is_canary()
        cells = as_unsent(cells, is_unsent).localCheckpoint()
    latest = _latest(warehouse, request)
    before = _Before(warehouse, comparison, planted, request, latest)
    folded = folded_findings(found, before.findings(), pending_ids(classified), facts)
    gaps = folded_gaps(cells, comparison.rest, before.gaps(), facts)
    if comparison.filtered is not None:
        left_out = comparison.filtered.left_out
        folded, gaps = closed_by_filter(folded, left_out), gaps_by_filter(gaps, left_out)
    folded, gaps = folded.localCheckpoint(), gaps.localCheckpoint()
    return Judged(cells, found, folded, gaps, silent, comparison.stamped_anew, hops)


@dataclass(frozen=True, slots=True)
class _Before:
    """What audits before found, the canary's too. `latest`: the latest "now" of them."""

    warehouse: Warehouse
    comparison: Comparison
    planted: Canary
    request: AuditRequest
    latest: datetime

    def findings(self) -> DataFrame:
        """As `folded_findings` wants them."""
        own = with_completeness(
            self._own(FINDINGS), self.comparison.sums.cells, shape=self.request.cells
        )
        return self._beside(self.planted.findings, own)

    def gaps(self) -> DataFrame:
        """As `folded_gaps` wants them."""
        own = self._own(GAPS)
        whole = with_wholeness(own, own.select(*CELL), self.comparison.sums.cells)
        return self._beside(self.planted.gaps, whole)

    def _own(self, table: Table) -> DataFrame:
        return self.warehouse.read(table).where(F.col("stream") == self.request.name)

    def _beside(self, planted: DataFrame, own: DataFrame) -> DataFrame:
        over_by, unknown = F.lit(self.request.over_by), F.lit(None).cast("boolean")
        return beside(
            planted.withColumns({"judged_as_of": over_by, "is_complete": unknown}),
            own.withColumn("judged_as_of", F.lit(self.latest)),
        )


def _latest(warehouse: Warehouse, request: AuditRequest) -> datetime:
    """The latest "now" of the stream's audits that were counted, or that this one gives up by."""
    records = shard_records(warehouse, request.name).values()
    return max([request.over_by, *(record.as_of for record in records)])
