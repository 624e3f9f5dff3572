"""The tables of ingest and audit as data: columns, types, keys, meaning.

This is the only place that knows them; every write goes through `store/warehouse.py`, which
takes the order and the types from here. Types are Spark SQL's; all timestamps are UTC.
"""

from shardaudit.model.tables.table import Table

TRACES = Table(
    "traces",
    (
        ("batch_id", "string", "the ingest batch that brought the row"),
        ("stream", "string", "the stream's name in the configuration"),
        ("message_id", "string", "the producer's id of the message"),
        ("shard_id", "string", "the shard that acknowledged it"),
        ("sequence_number", "string", "decimal text, up to 129 digits; NULL when not logged"),
        ("sent_at", "timestamp", "the message's time, the same in every trace of an id"),
        ("bucket_start", "timestamp", "start of the cell's time bucket"),
        ("location", "string", "where the trace was written"),
        ("attempt", "int", "the producer's try, 1 is the first"),
        ("producer_id", "string", ""),
        ("session", "string", "one life of a producer process"),
        ("session_seq", "bigint", "counts the traces of a session"),
        ("sample_rate", "double", "share of ids traced, 0 to 1"),
        ("acked_at", "timestamp", "when the attempt was acknowledged"),
        ("attributes", "map<string,string>", "what a recovery may need"),
        ("counted", "boolean", "the one trace of its id that the fingerprint counts"),
        ("sent_day", "date", "UTC day of bucket_start"),
        ("counted_in", "timestamp", "bucket_start of its id's counted trace, where another one"),
        ("moved", "boolean", "true: its id came again; an earlier batch counted it in a kept file"),
        (
            "ingested_at",
            "timestamp",
            "by then it had arrived, whatever its producer's clock says; NULL: no time is later",
        ),
    ),
    ("stream", "message_id", "shard_id", "sequence_number", "bucket_start"),
    ("stream", "sent_day"),
    ("bucket_start", "shard_id"),
)

FINGERPRINTS = Table(
    "fingerprints",
    (
        ("batch_id", "string", "the ingest batch that brought the row"),
        ("stream", "string", ""),
        ("side", "string", "traces | sink"),
        ("location", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", "start of the cell's time bucket"),
        ("n", "bigint", "traces: distinct ids; sink: rows; below zero for rows that were removed"),
        ("sum_lo", "bigint", "sum of the low 32 bits of xxhash64(message_id)"),
        ("sum_hi", "bigint", "sum of the high 32 bits, signed"),
        ("max_sequence_number", "string", "the greatest that was added, by (length, text)"),
        ("last_at", "timestamp", "latest landing (sink) or sent_at (traces) that was added"),
        ("latency_counts", "array<bigint>", "rows per latency bin, bin i up to 2^i s; sink only"),
        ("sent_day", "date", "UTC day of bucket_start"),
        ("own_n", "bigint", "rows in n that our backfills landed: no other column knows of them"),
        ("without_landed_at", "bigint", "rows in n without a sound landing time"),
        ("unnumbered_at", "timestamp", "latest landing of a row without a sequence number"),
        (
            "arrived_from",
            "timestamp",
            "traces: the first arrival (the later of sent_at and acked_at, at most when it "
            "was read) that was added",
        ),
        ("arrived_until", "timestamp", "traces: the last such arrival"),
        (
            "min_sequence_number",
            "string",
            "traces: the least that was added; NULL: one of them has none, or an older batch",
        ),
    ),
    ("batch_id", "stream", "side", "location", "shard_id", "bucket_start"),
    ("stream", "sent_day"),
)

BATCHES = Table(
    "batches",
    (
        ("batch_id", "string", "<stream>/<side>/<number>"),
        ("stream", "string", ""),
        ("side", "string", "traces | sink"),
        ("number", "bigint", "counts the side's batches from 1"),
        ("state", "string", "planned | done"),
        ("inputs", "string", "JSON: files with size and time, or table versions, and columns"),
        ("rows", "bigint", "good rows read"),
        ("counted", "bigint", "ids or rows added to the ledger, less those taken away"),
        ("quarantined", "bigint", "rows and files set aside"),
        (
            "unplaced",
            "bigint",
            "rows without shard or time, less those that went: audits place them",
        ),
        ("damaged_from", "timestamp", "cells from here on may lack rows of an unreadable file"),
        ("damaged_to", "timestamp", "end of that span, exclusive"),
        ("planned_at", "timestamp", ""),
        ("done_at", "timestamp", ""),
    ),
    ("batch_id",),
)

QUARANTINE = Table(
    "quarantine",
    (
        ("batch_id", "string", ""),
        ("stream", "string", ""),
        ("source", "string", "traces | sink | backfill"),
        ("file", "string", "or kinesis:STREAM/SHARD/SEQUENCE NUMBER/SUB-SEQUENCE"),
        ("line", "bigint", "line or row number from 1; NULL for a whole file"),
        ("raw", "string", "the text, cut to 4 KiB"),
        ("reason", "string", "what was wanted and what was found"),
        ("quarantined_at", "timestamp", ""),
    ),
    ("stream", "source", "file", "line", "reason"),
)

CELLS = Table(
    "cells",
    (
        ("audit_id", "string", ""),
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", ""),
        ("bucket_end", "timestamp", "exclusive"),
        ("sent", "bigint", "distinct ids acknowledged"),
        ("landed", "bigint", "rows in the sink"),
        ("matched", "bigint", "ids sent and landed, also those whose row left the sink"),
        ("missing", "bigint", "ids"),
        ("pending", "bigint", "ids"),
        ("duplicated", "bigint", "ids landed more than once"),
        ("extra_rows", "bigint", "rows beyond the first of an id"),
        ("untraced", "bigint", "ids"),
        ("moved", "bigint", "ids"),
        ("verdict", "string", ""),
        ("compared", "string", "fingerprint | ids"),
        ("sums_digest", "bigint", "of both fingerprints as compared; NULL where they were equal"),
        ("reason", "string", "why it is inconclusive, not ok without a message, or ok; else NULL"),
        ("vanished", "bigint", "ids in matched without a row now; NULL: of an older audit"),
        ("filtered", "bigint", "ids that a filter of the route left out; NULL: an older audit"),
    ),
    ("audit_id", "stream", "shard_id", "bucket_start"),
    ("audit_id",),
)

EVIDENCE = Table(
    "evidence",
    (
        ("stream", "string", ""),
        ("message_id", "string", "an id that was not sent once and landed once in one cell"),
        ("shard_id", "string", "of the cell in which something of it was seen"),
        ("bucket_start", "timestamp", ""),
        ("bucket_digest", "bigint", "of the bucket's ledger: the row holds while it is the same"),
        ("sent_count", "bigint", "traces in the cell"),
        ("counted", "bigint", "1 when the cell's fingerprint counts the id"),
        ("landed_count", "bigint", "rows in the cell"),
        ("counted_key", "struct<digits:int,text:string>", "sequence number of the counted trace"),
        ("sent_sequences", "array<string>", ""),
        ("landed_sequences", "array<string>", ""),
        ("sent_at", "timestamp", ""),
        ("first_landed_at", "timestamp", ""),
        ("last_landed_at", "timestamp", ""),
        ("location", "string", ""),
        ("attributes", "map<string,string>", ""),
        ("own_rows", "bigint", "rows in landed_count that our backfills landed"),
        ("arrived_at", "timestamp", "when the stream took it, at the latest; NULL: not asked for"),
        ("sent_day", "date", "UTC day of bucket_start"),
    ),
    ("stream", "message_id", "shard_id", "bucket_start"),
    ("stream", "sent_day"),
)

FINDINGS = Table(
    "findings",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("message_id", "string", ""),
        ("kind", "string", ""),
        ("cause", "string", ""),
        ("state", "string", ""),
        (
            "location",
            "string",
            "missing: the first place not reached; duplicated: doubled after it",
        ),
        ("sent_at", "timestamp", ""),
        ("first_landed_at", "timestamp", ""),
        ("last_landed_at", "timestamp", ""),
        ("sent_count", "bigint", "acknowledged traces"),
        ("landed_count", "bigint", "rows in the sink"),
        ("sequence_numbers", "array<string>", "all that are known, by (length, text)"),
        ("recoverable_until", "timestamp", "missing only: arrived_at plus the retention"),
        ("attributes", "map<string,string>", ""),
        ("first_audit_id", "string", ""),
        ("last_audit_id", "string", "the last that found it, and not as it was before"),
        ("opened_at", "timestamp", ""),
        ("updated_at", "timestamp", ""),
        ("state_reason", "string", ""),
        ("arrived_at", "timestamp", "the last of sent_at, acked_at and arrived_at that are known"),
        ("hops", "string", "JSON: on which hops it may be lost; NULL: not missing, or not known"),
    ),
    ("stream", "message_id", "kind"),
)

TRANSITIONS = Table(
    "transitions",
    (
        ("stream", "string", ""),
        ("message_id", "string", ""),
        ("kind", "string", ""),
        ("from_state", "string", "NULL for a new finding"),
        ("to_state", "string", ""),
        ("audit_id", "string", "NULL when a person did it"),
        ("reason", "string", ""),
        ("changed_at", "timestamp", "the as_of of the audit, or the clock of the person"),
    ),
    ("stream", "message_id", "kind", "to_state", "changed_at"),
)

AUDITS = Table(
    "audits",
    (
        ("audit_id", "string", ""),
        ("stream", "string", ""),
        ("window_start", "timestamp", ""),
        ("window_end", "timestamp", ""),
        ("as_of", "timestamp", ""),
        ("started_at", "timestamp", ""),
        ("finished_at", "timestamp", ""),
        ("status", "string", "running | published | rejected | failed"),
        ("verdict", "string", ""),
        ("sent", "bigint", ""),
        ("landed", "bigint", ""),
        ("matched", "bigint", ""),
        ("missing", "bigint", ""),
        ("pending", "bigint", ""),
        ("duplicated", "bigint", ""),
        ("extra_rows", "bigint", ""),
        ("untraced", "bigint", ""),
        ("moved", "bigint", ""),
        ("trace_coverage", "double", "landed ids with a trace / landed ids; NULL when none landed"),
        ("cells_total", "bigint", ""),
        ("cells_compared_by_id", "bigint", ""),
        ("latency_p50", "double", "half of the window's rows landed within, s; NULL: unknown"),
        ("latency_p99", "double", "99 % of them; both at most, a power of two"),
        ("self_check", "string", "passed | failed; NULL before it was done"),
        ("watermark", "timestamp", "the stream is complete until then, since its first audit"),
        ("engine", "string", "name and version of what ran it; NULL before warehouse version 3"),
        ("config_digest", "string", ""),
        ("inputs", "string", "JSON"),
        ("watermark_reason", "string", "why the watermark is not further; NULL: nothing holds it"),
        (
            "retention_s",
            "bigint",
            "how long the stream keeps records, as deadlines were counted, s",
        ),
        (
            "stamped_anew",
            "bigint",
            "messages of which the window has a trace and another bucket too: a producer gave a "
            "retry another sent_at; NULL: an older audit did not count them",
        ),
        ("vanished", "bigint", ""),
        ("vanished_until", "timestamp", "end of the last cell that has some; NULL: none has"),
        ("hops", "string", "JSON: what each place of the route traced; NULL: it has none"),
        (
            "shard_verdicts",
            "string",
            "JSON: by shard its verdict, where that is not the worst of its cells; NULL: an older "
            "audit did not keep it",
        ),
        (
            "waiting",
            "string",
            "JSON: seconds before the window that wait to be audited, their spans, as of when each "
            "was first left, and what is given up; NULL: it looked at none",
        ),
        (
            "unnamed",
            "bigint",
            "of untraced those that are only counted: no finding names them; NULL: an older audit "
            "named all",
        ),
        ("producers", "string", "JSON: what of each one's numbers came; NULL: none numbers"),
        ("filtered", "bigint", "NULL: an older audit called them missing"),
    ),
    ("audit_id",),
)

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

WATERMARKS = Table(
    "watermarks",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("watermark", "timestamp", "the shard is complete until then, since its first audit"),
        (
            "held_by",
            "string",
            "findings | damaged | quiet | thin | unaudited | changed | doubt | …",
        ),
        ("audited_from", "timestamp", "the start of its first audit: no gap before it counts"),
        ("audited_until", "timestamp", "the end of what was audited"),
        ("as_of", "timestamp", "the latest now of the audits that were counted"),
        ("holds", "string", "JSON: [from, to, why] of what is not proven, findings aside"),
        ("audit_id", "string", "the last audit that was counted"),
        ("batches", "string", "JSON: the last batch of each side that it knew"),
    ),
    ("stream", "shard_id"),
)

QUIET_TIMES = Table(
    "quiet_times",
    (
        ("stream", "string", ""),
        ("shard_id", "string", "NULL: all of the stream's"),
        ("quiet_from", "timestamp", "a person says it of the time from then"),
        ("quiet_until", "timestamp", "to then, exclusive"),
        ("reason", "string", ""),
        ("accepted_by", "string", ""),
        ("accepted_at", "timestamp", ""),
        ("said", "string", "NULL: nothing was sent; inconclusive: it may stay so"),
    ),
    ("stream", "shard_id", "quiet_from", "quiet_until", "said"),
)
INCONCLUSIVE = "inconclusive"  # in `said`
