"""All tables of the warehouse, by the lock that whoever writes them holds."""

from shardaudit.model.tables.audit_tables import (
    AUDITS,
    BATCHES,
    CELLS,
    EVIDENCE,
    FINDINGS,
    FINGERPRINTS,
    GATES,
    QUARANTINE,
    QUIET_TIMES,
    TRACES,
    TRANSITIONS,
    WATERMARKS,
)
from shardaudit.model.tables.backfill_tables import (
    BACKFILL_GAPS,
    BACKFILL_IDS,
    BACKFILLS,
    DEDUPE_IDS,
    DEDUPES,
    PLAN_REQUESTS,
    REMOVED_ROWS,
)
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS, LEDGER_HOURS, TRACE_SESSIONS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS, SIGHTINGS
from shardaudit.model.tables.watch_tables import HOLES, NOTIFICATIONS, POSITIONS, SHARDS

OF_LEDGER = (
    TRACES, FINGERPRINTS, BATCHES, QUARANTINE, CELLS, EVIDENCE, FINDINGS, TRANSITIONS, AUDITS,
    BACKFILLS, BACKFILL_IDS, DEDUPES, DEDUPE_IDS, REMOVED_ROWS, GATES,
    WATERMARKS, QUIET_TIMES, SIGHTINGS, SIGHTING_COUNTS, GAPS, GAP_TRANSITIONS, BACKFILL_GAPS,
    LEDGER_HOURS, TRACE_SESSIONS, FINDING_COUNTS,
)  # fmt: skip
OF_WATCH = (SHARDS, POSITIONS, NOTIFICATIONS, HOLES, PLAN_REQUESTS)
