"""The tables of the backfill, as data: what is planned, what of it was done, by whom."""

from shardaudit.model.tables.table import Table

BACKFILLS = Table(
    "backfills",
    (
        ("plan_id", "string", "the same for the same findings and configuration"),
        ("window_id", "string", "counts the plan's windows, the most urgent first"),
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("window_start", "timestamp", "of arrival, margins included"),
        ("window_end", "timestamp", "exclusive"),
        ("start_sequence_number", "string", "first record to read; NULL: cut by time"),
        ("end_sequence_number", "string", "last record to read; NULL: cut by time"),
        ("expected_ids", "bigint", "missing messages that it must bring"),
        ("estimated_bytes", "bigint", "at most: what a shard can take in that time"),
        ("estimated_seconds", "double", "at most: to read it at the allowed share"),
        ("deadline", "timestamp", "recoverable_until of the oldest expected message"),
        ("feasible", "boolean", "read before the deadline, after those that are more urgent"),
        (
            "state",
            "string",
            "planned | approved | running | merged | verified | incomplete | expired | cancelled",
        ),
        ("read_records", "bigint", "user records that were read"),
        ("merged_rows", "bigint", "rows that the sink did not have before"),
        ("expired_from", "timestamp", "what the stream no longer had when it was read"),
        ("expired_to", "timestamp", "exclusive"),
        ("error", "string", "why it is incomplete"),
        ("approved_by", "string", ""),
        ("created_at", "timestamp", ""),
        ("updated_at", "timestamp", ""),
        ("estimated_records", "bigint", "at most"),
        ("estimated_calls", "bigint", "GetRecords calls, at most"),
        ("because", "string", "why it is planned"),
        ("takes_all", "boolean", "merges every record of the window, not the expected ids alone"),
        ("owner", "string", "the run that has it"),
        (
            "heartbeat_at",
            "timestamp",
            "when that run last stored the window, as its state changed",
        ),
        ("sent_from", "timestamp", "its messages were sent from here on; NULL: see window_start"),
        ("sent_to", "timestamp", "exclusive; NULL: another window's, that arrived late"),
        ("begins_at", "timestamp", "arrival of the oldest record left, if later than the window's"),
        ("configured", "string", "JSON: settings that it was planned with; NULL: not kept then"),
    ),
    ("plan_id", "window_id"),
)

BACKFILL_IDS = Table(
    "backfill_ids",
    (
        ("plan_id", "string", ""),
        ("window_id", "string", ""),
        ("stream", "string", ""),
        ("message_id", "string", "a missing message that the window must bring"),
        ("sent_at", "timestamp", ""),
        ("acked_at", "timestamp", "NULL when its trace does not say it"),
    ),
    ("plan_id", "message_id"),
    ("plan_id",),
)

BACKFILL_GAPS = Table(
    "backfill_gaps",
    (
        ("plan_id", "string", ""),
        ("window_id", "string", ""),
        ("stream", "string", ""),
        ("shard_id", "string", "of a gap that the window must close"),
        ("bucket_start", "timestamp", "of that gap"),
        ("bucket_end", "timestamp", "exclusive"),
        ("count", "bigint", "messages that were missing in it when it was planned"),
        ("arrived_until", "timestamp", "when the stream took the last of them"),
    ),
    ("plan_id", "shard_id", "bucket_start"),
    ("plan_id",),
)

DEDUPES = Table(
    "dedupes",
    (
        ("plan_id", "string", "the same for the same findings"),
        ("stream", "string", ""),
        ("ids", "bigint", "messages that landed more than once"),
        ("extra_rows", "bigint", "rows beyond the first of each, as the last audit counted them"),
        (
            "sent_from",
            "timestamp",
            "start of the first bucket in which anything of the messages stands",
        ),
        ("sent_to", "timestamp", "end of the last such bucket, inclusive"),
        ("state", "string", "planned | approved | merged | verified | incomplete | cancelled"),
        ("removed_rows", "bigint", "rows that were taken out of the sink"),
        ("approved_by", "string", ""),
        ("created_at", "timestamp", ""),
        ("updated_at", "timestamp", ""),
        ("error", "string", "why it is incomplete"),
        ("owner", "string", "the run that has it"),
        ("configured", "string", "as of the table backfills"),
    ),
    ("plan_id",),
)

DEDUPE_IDS = Table(
    "dedupe_ids",
    (
        ("plan_id", "string", ""),
        ("stream", "string", ""),
        ("message_id", "string", "a message of which one row is to be left"),
        ("sent_at", "timestamp", ""),
    ),
    ("plan_id", "message_id"),
    ("plan_id",),
)

PLAN_REQUESTS = Table(
    "plan_requests",
    (
        ("request_id", "string", "the run of the DAG backfill that asked for a plan"),
        ("stream", "string", ""),
        ("what", "string", "missing | duplicates"),
        ("scope", "string", "options of `backfill plan`; empty or NULL: all that is open"),
        ("plan_id", "string", "NULL: nothing was to be put right"),
        ("number", "bigint", "counts the stream's requests: the greatest is the newest"),
        ("state", "string", "planned | asked | decided | replaced"),
        ("reason", "string", "what replaced its question"),
        ("updated_at", "timestamp", ""),
    ),
    ("request_id",),
)

REMOVED_ROWS = Table(
    "removed_rows",
    (
        ("plan_id", "string", "the dedupe that removed it"),
        ("stream", "string", ""),
        ("message_id", "string", ""),
        ("copy", "int", "2 is the first that was removed; 1 stayed in the sink"),
        ("row_digest", "bigint", "of the row's content"),
        ("content", "string", "the sink's row as JSON"),
        ("removed_at", "timestamp", ""),
    ),
    ("plan_id", "stream", "message_id", "copy", "row_digest"),
    ("plan_id",),
)
