"""The table of the gates: what the expectations said of each run."""

from shardaudit.model.tables.table import Table

GATES = Table(
    "gates",
    (
        ("audit_id", "string", "the audit that was to be published"),
        ("stream", "string", ""),
        ("plan_id", "string", "the backfill that the audit was to verify; NULL for others"),
        ("suite", "string", "traces | sink | ledger | audit_result | backfill_result"),
        ("state", "string", "passed | failed | broken (the check itself); warnings do not fail it"),
        ("rows", "bigint", "summary rows that were judged"),
        ("results", "string", "JSON: a list of kind, severity, state, sentence, details"),
        ("judged_at", "timestamp", ""),
    ),
    ("audit_id", "suite"),
)
