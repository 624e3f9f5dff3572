"""Whether the numbers of an audit add up: among themselves, and with what was ingested."""

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.evidence import Ingested
from shardaudit.audit.outcome import Outcome
from shardaudit.audit.rules.canary_answers import without_canary
from shardaudit.audit.rules.totals import broken_invariants, disagreeing_cells


def broken_rules(
    comparison: Comparison, outcome: Outcome, request: AuditRequest, state: Ingested
) -> list[str]:
    """What does not add up, one sentence each; none when all is well."""
    buckets = (request.aligned.end - request.aligned.start) // request.stream.bucket
    sums = outcome.sums | {"grid_cells": buckets * len(outcome.shards)}
    return [
        *broken_invariants(sums, outcome.kinds),
        *_torn_cells(comparison),
        *_torn_ledger(comparison, state),
    ]


def _torn_cells(comparison: Comparison) -> list[str]:
    torn = disagreeing_cells(comparison.seen, comparison.cells, comparison.read)
    return [
        f"cell {row.shard_id} {row.bucket_start:%Y-%m-%dT%H:%M:%SZ}: the ledger "
        f"counts {row.sent_n} ids sent and {row.landed_n} rows, traces and sink hold "
        f"{row.counted} and {row.rows}"
        for row in collected(torn.limit(5))
    ]


def _torn_ledger(comparison: Comparison, state: Ingested) -> list[str]:
    """Where all that the ledger counts is not what its batches say that they counted."""
    totals = without_canary(comparison.facts).select("sent_total", "landed_total")
    shards = collected(totals)
    held = {
        "traces": sum(shard.sent_total for shard in shards),
        "sink": sum(shard.landed_total for shard in shards),
    }
    if comparison.is_placing:
        del held["sink"]
    return [
        f"the ledger counts {found} of the {side}, the batches that were ingested say {said}: a "
        "batch is in it in part, or twice; `shardaudit ingest` finishes one that was cut off"
        for side, found in held.items()
        if (said := state.counted[side]) != found
    ]
