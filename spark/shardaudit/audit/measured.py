"""A few minutes, judged by the totals of the time of which they are a part.

A tolerance, or a floor, is a share of what a shard has in a window: of few minutes one message that
was lost, or whose trace was, is far above any.
"""

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.judged import Outcome
from shardaudit.audit.rules.totals import Around, shard_coverages
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import LIVE, Cause, Kind, State
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

_STANDING = [state.value for state in (*LIVE, State.EXPIRED, State.ACCEPTED)]


def measured(
    warehouse: Warehouse, request: AuditRequest, comparison: Comparison, outcome: Outcome
) -> Outcome:
    """The outcome, with what the ledger and the findings know of the time around the window."""
    if request.judged_over is None:
        return outcome
    around = _around(warehouse, request, comparison, over=request.judged_over)
    shards = [
        replace(shard, around=around.get(shard.shard_id, shard.around)) for shard in outcome.shards
    ]
    covered = shard_coverages({shard.shard_id: shard.traced for shard in shards})
    return replace(
        outcome,
        shards=tuple(replace(one, trace_coverage=covered[one.shard_id]) for one in shards),
    )


def _around(
    warehouse: Warehouse, request: AuditRequest, comparison: Comparison, *, over: Window
) -> dict[str, Around]:
    sums = comparison.sums.where(_is_around("bucket_start", request, over))
    sent = collected(sums.groupBy("shard_id").agg(F.sum("sent_n").alias("sent")))
    findings = warehouse.read(FINDINGS).where(
        (F.col("stream") == request.name)
        & F.col("state").isin(_STANDING)
        & _is_around("sent_at", request, over)
    )
    is_missing = F.col("kind") == Kind.MISSING.value
    counted = findings.groupBy("shard_id").agg(
        F.count_if(is_missing).alias("missing"),
        F.count_if(is_missing & (F.col("cause") == Cause.LOST.value)).alias("lost"),
        F.count_if(F.col("kind") == Kind.UNTRACED.value).alias("untraced"),
    )
    found = {row.shard_id: row for row in collected(counted)}
    ids = {row.shard_id: int(row.sent) for row in sent}
    return {
        shard_id: Around(
            sent=ids.get(shard_id, 0),
            lost=found[shard_id].lost if shard_id in found else 0,
            # Whether rows that landed are still there or not: a lake drops what is old.
            matched=ids.get(shard_id, 0) - (found[shard_id].missing if shard_id in found else 0),
            untraced=found[shard_id].untraced if shard_id in found else 0,
        )
        for shard_id in ids.keys() | found.keys()
    }


def _is_around(name: str, request: AuditRequest, over: Window) -> Column:
    """Whether a time lies in that span, and not in the window."""
    at, window = F.col(name), request.aligned
    is_inside = (at >= F.lit(window.start)) & (at < F.lit(window.end))
    return (at >= F.lit(over.start)) & (at < F.lit(over.end)) & ~is_inside
