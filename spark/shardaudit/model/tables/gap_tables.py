"""The tables of gaps, as data: cells of which (nearly) nothing landed, and what became of them."""

from shardaudit.model.tables.table import Table

GAPS = Table(
    "gaps",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", "start of the cell's time bucket"),
        ("bucket_end", "timestamp", "exclusive"),
        (
            "count",
            "bigint",
            "missing messages of the cell that no finding names; closed: came back",
        ),
        ("start_sequence_number", "string", "the least of the cell; NULL: not known of all of it"),
        ("end_sequence_number", "string", "the greatest of the cell; NULL as the least is"),
        ("cause", "string", "lost | stuck"),
        ("state", "string", "as of findings"),
        ("recoverable_until", "timestamp", "when the first of them leaves the stream"),
        ("first_audit_id", "string", ""),
        ("last_audit_id", "string", "the last that found it, and not as it was before"),
        ("opened_at", "timestamp", ""),
        ("updated_at", "timestamp", ""),
        ("state_reason", "string", ""),
        ("arrived_from", "timestamp", "when the stream took the first of the cell's messages"),
        ("arrived_until", "timestamp", "when it took the last: a gap expires when that has left"),
    ),
    ("stream", "shard_id", "bucket_start"),
)

GAP_TRANSITIONS = Table(
    "gap_transitions",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", ""),
        ("count", "bigint", "of the gap after it"),
        ("from_state", "string", "NULL for a new gap"),
        ("to_state", "string", ""),
        ("audit_id", "string", "NULL when a person did it"),
        ("reason", "string", ""),
        ("changed_at", "timestamp", "the as_of of the audit, or the clock of the person"),
    ),
    ("stream", "shard_id", "bucket_start", "to_state", "changed_at"),
)
