"""What is known of cells whose rows are gone: when they were complete, what audits saw in them."""

from collections.abc import Iterable

from pyspark.sql import Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import beside
from shardaudit.audit.evidence import Sources
from shardaudit.audit.rules.drill_down import CELL
from shardaudit.audit.rules.vanished import Deadlines, Past
from shardaudit.model.input_columns import CANARY
from shardaudit.model.tables.audit_tables import BATCHES, FINDINGS
from shardaudit.model.verdict import Kind, State
from shardaudit.store.newest_cells import audited_cells
from shardaudit.store.warehouse import Warehouse

_ENDED = (State.RECOVERED.value, State.FALSE_ALARM.value)
_AUDITED = "shard_id string, bucket_start timestamp, sums_digest bigint, pending bigint"


def deadlines(request: AuditRequest, both: Sources) -> Deadlines:
    """By which the cells of an audit have left the stream."""
    damage = both.planted.plan.judged_damage
    return Deadlines(request.stream.bucket, request.retention, request.as_of, damage)


def past(warehouse: Warehouse, request: AuditRequest, both: Sources, shards: Iterable[Row]) -> Past:
    """What the audit has to know of earlier times; of the canary alone where no row ever left.

    Input:
        shards: `shard_id`, `has_lost_rows` of `shard_facts`.
    """
    spark, planted = warehouse.spark, both.planted
    of_canary = Past(
        planted.ledger,
        planted.batches,
        own_rows(spark, [], f"{_AUDITED}, vanished bigint"),
        own_rows(spark, [], "message_id string"),
    )
    if not any(row.has_lost_rows for row in shards if not row.shard_id.startswith(CANARY)):
        return of_canary
    of_sink = (F.col("stream") == request.name) & (F.col("side") == "sink")
    batches = warehouse.read(BATCHES).where(of_sink).select("batch_id", "number", "planned_at")
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
        beside(planted.batches, batches),
        of_canary.audited
        if audited is None
        else audited.select(*CELL, "sums_digest", "pending", "vanished"),
        findings.select("message_id"),
    )
