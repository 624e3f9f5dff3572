"""The canary's rows as frames, in the shape of the inputs to which they are added."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, held, own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.canary.canary import (
    ANCIENT,
    MESSAGES,
    RUNNING,
    SEEN,
    STALLED,
    UNNUMBERED,
)
from shardaudit.audit.rules.canary.canary_answers import (
    Answer,
    answers,
    differences,
    gap_answers,
    is_canary,
)
from shardaudit.audit.rules.canary.canary_plan import CanaryPlan
from shardaudit.audit.rules.carried import with_bucket_digest
from shardaudit.audit.rules.cells import grid
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.findings import AuditFacts, transitions
from shardaudit.columns.ledger_sums import cell_sums, sums_digest
from shardaudit.ingest.rules.deliveries import DELIVERY, DELIVERY_DDL
from shardaudit.ingest.rules.fingerprint import (
    sink_fingerprints,
    trace_fingerprints,
    trace_sums,
)
from shardaudit.model.input_columns import CANARY
from shardaudit.model.tables.audit_tables import (
    EVIDENCE,
    FINDINGS,
    FINGERPRINTS,
    TRACES,
    TRANSITIONS,
)
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.tables.table import Table

_FIRST, _SECOND, _LAST = (f"{CANARY}{number}" for number in (1, 2, 3))
_BATCHES_DDL = "batch_id string, number bigint, planned_at timestamp"


@dataclass(frozen=True, slots=True)
class Canary:
    """What is added to an audit's inputs: rows of TRACES, deliveries, rows of the other tables.

    `batches`: of BATCHES `batch_id`, `number` and `planned_at`. Ancient rows that left did so with
    the last one, now; others, and those of some cells, when the stream had their messages.
    `audited`: what an audit saw of cells: of CELLS, and its `as_of`; `missing`: `message_id` of the
    findings that it left; `gaps`: rows of GAPS that it did.
    """

    plan: CanaryPlan
    traces: DataFrame
    rows: DataFrame
    ledger: DataFrame
    batches: DataFrame
    evidence: DataFrame
    findings: DataFrame
    gaps: DataFrame
    audited: DataFrame
    missing: DataFrame

    def grid(self, shards: DataFrame) -> DataFrame:
        """Its cells: `shard_id`, `bucket_start`.

        Input:
            shards: `shard_id`, unique; those of the stream are left out.
        """
        own, bucket = shards.where(is_canary()), self.plan.bucket
        first, *others = (grid(own, window=w, bucket=bucket) for w in self.plan.windows)
        for cells in others:
            first = first.unionByName(cells)
        return first

    def left_out(self, starts: Iterable[datetime]) -> list[datetime]:
        """The buckets that are not its own: those of which there may be files."""
        own = set(self.plan.starts.values())
        return [start for start in starts if start not in own]

    def wrongly_judged(
        self,
        judged: DataFrame,
        classified: DataFrame,
        folded: DataFrame,
        facts: AuditFacts,
        *,
        gaps: DataFrame,
    ) -> list[str]:
        """What was planted and not found so, or found and not planted; none when all is well."""
        changes = transitions(folded, TRANSITIONS, facts)
        said = answers(judged, classified, folded, changes).unionByName(gap_answers(gaps))
        found = [Answer(row.what, row.name, row.at, row.answer) for row in collected(said)]
        return differences(self.plan, found)


def canary(spark: SparkSession, request: AuditRequest, damage: Damage) -> Canary:
    """The canary of an audit; its fingerprints come from what fills the ledger.

    Input:
        damage: the stream's own.
    """
    stream, name = request.stream, request.name
    plan = CanaryPlan(
        window=request.aligned,
        as_of=request.as_of,
        over_by=request.over_by,
        bucket=stream.bucket,
        settle_grace=stream.settle_grace,
        retention=request.retention,
        trace_coverage_floor=stream.trace_coverage_floor,
        damage=damage,
    )
    traces = [(message, {"stream": name, **row}) for message, row in plan.traces()]
    landed = {when: [r for w, r in plan.rows() if w == when] for when in ("kept", "later", "gone")}
    rows = {when: _deliveries(spark, of) for when, of in landed.items()}
    sent = _rows_of(spark, TRACES, (row for _, row in traces))
    ledger = held(_ledger(plan, sent, rows, name).unionByName(_unread(spark, plan, name)))
    before = ledger.where(F.col("batch_id") == _FIRST)
    then, now = plan.starts[ANCIENT], request.as_of
    evidence = _rows_of(spark, EVIDENCE, ({"stream": name, **row} for row in plan.evidence()))
    return Canary(
        plan=plan,
        traces=_rows_of(spark, TRACES, (row for m, row in traces if not m.in_evidence)),
        rows=rows["kept"].unionByName(rows["later"]),
        ledger=ledger,
        batches=own_rows(
            spark, [(_FIRST, 1, then), (_SECOND, 2, then), (_LAST, 3, now)], _BATCHES_DDL
        ),
        evidence=with_bucket_digest(evidence.drop("bucket_digest"), cell_sums(before)),
        findings=_rows_of(spark, FINDINGS, ({"stream": name, **row} for row in plan.findings())),
        gaps=_rows_of(spark, GAPS, ({"stream": name, **row} for row in plan.gaps())),
        audited=_audited(plan, before, RUNNING, vanished=0).unionByName(
            _audited(plan, ledger, STALLED, vanished=1)
        ),
        missing=own_rows(spark, _missing_as_seen(), "message_id string"),
    )


def _ledger(
    plan: CanaryPlan, traces: DataFrame, rows: Mapping[str, DataFrame], name: str
) -> DataFrame:
    """The fingerprints of what was sent, of what landed first, and of what came and went since."""
    first = rows["kept"].unionByName(rows["gone"])
    sent = trace_fingerprints(trace_sums(traces))
    arrived = sink_fingerprints(_sound(first), None, now=plan.as_of)
    since = sink_fingerprints(_sound(rows["later"]), _sound(rows["gone"]), now=plan.as_of)
    came = _fingerprints(sent, "traces", name).unionByName(_fingerprints(arrived, "sink", name))
    return came.unionByName(_fingerprints(since, "sink", name, batch=_left_with(plan)))


def _unread(spark: SparkSession, plan: CanaryPlan, name: str) -> DataFrame:
    whose = {"batch_id": _FIRST, "stream": name}
    return _rows_of(spark, FINGERPRINTS, (whose | row for row in plan.unread()))


def _left_with(plan: CanaryPlan) -> Column:
    """The batch with which rows of a cell left the sink."""
    is_early = _is_of(plan, UNNUMBERED, ANCIENT) | _is_of(plan, STALLED, SEEN)
    is_late = (F.col("bucket_start") <= F.lit(plan.starts[ANCIENT])) & ~is_early
    return F.when(is_late, _LAST).otherwise(_SECOND)


def _missing_as_seen() -> list[tuple[str]]:
    return [(f"{CANARY}{m.name}",) for m in MESSAGES if m.slot == SEEN and m.before]


def _audited(plan: CanaryPlan, ledger: DataFrame, shard: str, *, vanished: int) -> DataFrame:
    """A cell of SEEN as an audit saw it, when the ledger was that: of CELLS."""
    return cell_sums(ledger.where(_is_of(plan, shard, SEEN))).select(
        "shard_id",
        "bucket_start",
        sums_digest().alias("sums_digest"),
        F.lit(0).cast("bigint").alias("pending"),
        F.lit(vanished).cast("bigint").alias("vanished"),
        F.lit(plan.starts[ANCIENT]).alias("as_of"),
    )


def _is_of(plan: CanaryPlan, shard: str, slot: str) -> Column:
    is_in_slot = F.col("bucket_start") == F.lit(plan.starts[slot])
    return is_in_slot & (F.col("shard_id") == f"{CANARY}{shard}")


def beside(planted: DataFrame, own: DataFrame) -> DataFrame:
    """The stream's rows and the canary's, which are of no table: they have no notes."""
    return planted.unionByName(bare(own))


def _rows_of(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Rows of a table; what they do not have is NULL."""
    values = [tuple(row.get(name) for name in table.names) for row in rows]
    return own_rows(spark, values, table.ddl)


def _deliveries(spark: SparkSession, rows: Iterable[Mapping[str, object]]) -> DataFrame:
    values = [tuple(row.get(name) for name in DELIVERY) for row in rows]
    return own_rows(spark, values, DELIVERY_DDL)


def _sound(rows: DataFrame) -> DataFrame:
    return rows.withColumn("reason", F.lit(None).cast("string"))


def _fingerprints(
    cells: DataFrame, side: str, name: str, *, batch: Column | None = None
) -> DataFrame:
    first = F.lit(_FIRST) if batch is None else batch
    whose = {"batch_id": first, "stream": F.lit(name), "side": F.lit(side)}
    return cells.withColumns(whose).select(FINGERPRINTS.names)
