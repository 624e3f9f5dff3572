"""A few minutes, judged by the totals of the time of which they are a part.

A tolerance, or a floor, is a share of what a shard has in a window: of few minutes one message that
was lost, or whose trace was, is far above any.
"""

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare, own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.judged import Outcome
from shardaudit.audit.records import shard_records
from shardaudit.audit.rules.totals import Around, shard_coverages
from shardaudit.columns.instants import bucket_start, in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import STANDING, Cause, Kind
from shardaudit.model.window import Window, unix_micros
from shardaudit.store.newest_cells import filtered_cells, unnamed_cells
from shardaudit.store.warehouse import Warehouse

_NO_FINDINGS = {"missing": 0, "lost": 0, "untraced": 0}


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
    unaudited = _unaudited(warehouse, request.name, over)
    near = _due(warehouse, request, comparison, over).where(
        _is_around("bucket_start", request, over)
    )
    sums = _audited(near, unaudited).groupBy("shard_id").agg(F.sum("due").alias("due"))
    is_standing = (F.col("stream") == request.name) & F.col("state").isin(*STANDING)
    findings = warehouse.read(FINDINGS).where(is_standing & _is_around("sent_at", request, over))
    gaps = warehouse.read(GAPS).where(is_standing & _is_around("bucket_start", request, over))
    named = _audited(findings, unaudited, at="sent_at").select(
        "shard_id", "sent_at", "kind", "cause", F.lit(1).cast("bigint").alias("count")
    )
    counted = _sums(
        _with_unnamed(named, warehouse, request, over),
        _audited(gaps, unaudited).select(
            "shard_id", F.lit(Kind.MISSING.value).alias("kind"), "cause", "count"
        ),
    )
    found = {row.shard_id: row.asDict() for row in collected(counted)}
    ids = {row.shard_id: int(row.due) for row in collected(sums)}
    around = {}
    for shard_id in ids.keys() | found.keys():
        due_ids, of_shard = ids.get(shard_id, 0), found.get(shard_id, _NO_FINDINGS)
        around[shard_id] = Around(
            due=due_ids,
            lost=of_shard["lost"],
            # Whether rows that landed are still there or not: a lake drops what is old.
            matched=due_ids - of_shard["missing"],
            untraced=of_shard["untraced"],
        )
    return around


def _due(
    warehouse: Warehouse, request: AuditRequest, comparison: Comparison, over: Window
) -> DataFrame:
    """How many messages were to land, as if what filters left out had never been sent.

    Output:
        CELL, `due` (bigint, below 0 of what was left out), of a cell once or twice.
    """
    sent = comparison.sums.near.select(*CELL, F.col("sent_n").alias("due"))
    left_out = filtered_cells(warehouse, request.name, over, but=request.audit_id)
    if left_out is None:
        return sent
    never = left_out.select(*CELL, (-F.col("filtered")).alias("due"))
    return bare(sent).union(bare(never))


def _with_unnamed(
    findings: DataFrame, warehouse: Warehouse, request: AuditRequest, over: Window
) -> DataFrame:
    """The findings; of cells in which an audit only counted untraced ids, all that it counted.

    Input:
        findings: `shard_id`, `sent_at`, `kind`, `cause`, `count`.
    Output:
        the same without `sent_at`; of such a cell one row instead of its untraced findings.
    """
    columns = ("shard_id", "kind", "cause", "count")
    cells = unnamed_cells(warehouse, request.name, over, but=request.audit_id)
    if cells is None:
        return findings.select(*columns)
    cells = cells.where(_is_around("bucket_start", request, over))
    start = bucket_start(F.col("sent_at"), request.stream.bucket)
    others = findings.withColumn("bucket_start", start).join(
        # Presence only.
        cells.select(*CELL, F.lit(Kind.UNTRACED.value).alias("kind")),
        [*CELL, "kind"],
        how="left_anti",
    )
    counted = cells.select(
        "shard_id",
        F.lit(Kind.UNTRACED.value).alias("kind"),
        F.lit(None).cast("string").alias("cause"),
        F.col("untraced").alias("count"),
    )
    return bare(others.select(*columns)).union(bare(counted))


def _sums(findings: DataFrame, gaps: DataFrame) -> DataFrame:
    """By shard how many messages are told: `shard_id`, `missing`, `lost`, `untraced`."""
    is_missing = F.col("kind") == Kind.MISSING.value
    told = {
        "missing": is_missing,
        "lost": is_missing & (F.col("cause") == Cause.LOST.value),
        "untraced": F.col("kind") == Kind.UNTRACED.value,
    }
    counts = (
        F.sum(F.when(is_so, F.col("count")).otherwise(0)).alias(n) for n, is_so in told.items()
    )
    return bare(findings).union(bare(gaps)).groupBy("shard_id").agg(*counts)


def _unaudited(warehouse: Warehouse, name: str, over: Window) -> DataFrame:
    """By shard what of that span nobody audited: `shard_id`, unique, and `gaps` (µs since 1970).

    There are no findings of it: all that was sent there would count as landed.
    """
    spans = [
        (shard_id, unix_micros(part.start), unix_micros(part.end))
        for shard_id, record in shard_records(warehouse, name).items()
        for part in record.unaudited(over)
    ]
    each = own_rows(warehouse.spark, spans, "shard_id string, since bigint, until bigint")
    return each.groupBy("shard_id").agg(F.collect_list(F.struct("since", "until")).alias("gaps"))


def _audited(rows: DataFrame, unaudited: DataFrame, *, at: str = "bucket_start") -> DataFrame:
    """Those of the rows that lie, by their time `at`, in minutes that somebody audited."""
    us = F.unix_micros(at)
    inside = F.filter("gaps", lambda gap: (gap["since"] <= us) & (us < gap["until"]))
    # Unique on the shard on the right.
    gaps = F.broadcast(unaudited)
    return rows.join(gaps, ["shard_id"], how="left").where(F.get(inside, 0).isNull())


def _is_around(name: str, request: AuditRequest, over: Window) -> Column:
    """Whether a time lies in that span, and not in the window."""
    at = F.col(name)
    return in_windows(at, [over]) & ~in_windows(at, [request.aligned])
