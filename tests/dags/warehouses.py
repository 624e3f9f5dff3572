"""Small published results, written without Spark."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from shardaudit.model.tables.audit_tables import AUDITS, BATCHES, CELLS, FINDINGS, GATES
from shardaudit.model.tables.table import Table

START = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "boolean": pa.bool_(),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
_COUNTS = (
    *("sent", "landed", "matched", "missing", "pending"),
    *("duplicated", "extra_rows", "untraced", "moved"),
)

Row = Mapping[str, object]


def audit(audit_id: str, *, verdict: str = "ok", status: str = "published", **more: object) -> Row:
    """A row of `audits`."""
    return {
        "audit_id": audit_id,
        "stream": "events",
        "window_start": START,
        "window_end": START + 2 * MINUTE,
        "as_of": START + timedelta(hours=1),
        "finished_at": START + timedelta(hours=1),
        "status": status,
        "verdict": verdict,
        **dict.fromkeys(_COUNTS, 0),
        "trace_coverage": 1.0,
        "cells_total": 4,
        "cells_compared_by_id": 1,
        "self_check": "passed",
        "watermark": START,
        **more,
    }


def cell(
    audit_id: str, shard_id: str, *, minute: int = 0, verdict: str = "ok", **more: object
) -> Row:
    """A row of `cells`."""
    start = START + minute * MINUTE
    return {
        "audit_id": audit_id,
        "stream": "events",
        "shard_id": shard_id,
        "bucket_start": start,
        "bucket_end": start + MINUTE,
        **dict.fromkeys(_COUNTS, 0),
        "verdict": verdict,
        "compared": "ids",
        **more,
    }


def missing(audit_id: str, message_id: str, *, shard_id: str, **more: object) -> Row:
    """A row of `findings`: a message that was lost and can be read again for a week."""
    return {
        "stream": "events",
        "shard_id": shard_id,
        "message_id": message_id,
        "kind": "missing",
        "cause": "lost",
        "state": "open",
        "sent_at": START,
        "sent_count": 1,
        "landed_count": 0,
        "sequence_numbers": [],
        "recoverable_until": START + timedelta(days=7),
        "last_audit_id": audit_id,
        **more,
    }


def gate(
    audit_id: str,
    suite: str = "ledger",
    *,
    minute: int = 0,
    plan_id: str | None = None,
    **check: object,
) -> Row:
    """A row of `gates` with one check that passed."""
    passed = {
        "kind": "expect_column_values_to_be_between",
        "severity": "error",
        "state": "passed",
        "sentence": f"{suite}: all is well",
        "details": {"judged": 1},
    }
    return {
        "audit_id": audit_id,
        "stream": "events",
        "plan_id": plan_id,
        "suite": suite,
        "state": check.get("state", "passed"),
        "rows": 1,
        "results": json.dumps([passed | check]),
        "judged_at": START + minute * MINUTE,
    }


def arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    """The rows with the table's types; what is not named is NULL."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind, _ in table.columns])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def write_result(
    warehouse: Path,
    *,
    audits: Sequence[Row],
    cells: Sequence[Row] = (),
    findings: Sequence[Row] = (),
    batches: Sequence[Row] = (),
    gates: Sequence[Row] = (),
) -> None:
    """Writes the tables of a result."""
    tables = {AUDITS: audits, CELLS: cells, FINDINGS: findings, BATCHES: batches, GATES: gates}
    for table, rows in tables.items():
        write_deltalake(
            str(warehouse / table.name),
            arrow(table, rows),
            mode="append",
            partition_by=list(table.partitions) or None,
        )
