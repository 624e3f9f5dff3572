"""What is kept of days and files to which nothing comes any more, and of sessions, as data."""

from shardaudit.model.tables.table import Table

# A cell as `cell_sums` gives it, with its measures.
CELL_FACTS = (
    ("bucket_start", "timestamp"),
    ("sent_n", "bigint"),
    ("sent_sum_lo", "bigint"),
    ("sent_sum_hi", "bigint"),
    ("landed_n", "bigint"),
    ("landed_sum_lo", "bigint"),
    ("landed_sum_hi", "bigint"),
    ("sent_key", "string"),
    ("landed_key", "string"),
    ("reached", "string"),
    ("last_landed_at", "timestamp"),
    ("unnumbered_at", "timestamp"),
    ("ever_landed", "boolean"),
    ("has_lost_rows", "boolean"),
    ("consumed_n", "bigint"),
    ("without_landed_at", "bigint"),
    ("ledger_rows", "bigint"),
    ("arrived_until", "timestamp"),
    ("first_key", "string"),
    ("first_arrival", "timestamp"),
    ("last_arrival", "timestamp"),
)

LEDGER_HOURS = Table(
    "ledger_hours",
    (
        ("stream", "string", ""),
        ("sent_day", "date", "UTC day of hour"),
        ("shard_id", "string", ""),
        ("hour", "timestamp", "its start; of a bucket, where that is longer"),
        ("sent_n", "bigint", "ids acknowledged"),
        ("landed_n", "bigint", "rows in the sink"),
        ("without_landed_at", "bigint", "rows without a sound landing time"),
        ("sent_key", "string", "the greatest sequence number that was sent, its length before it"),
        ("least_sent_key", "string", "the least of its cells' greatest"),
        ("landed_key", "string", "the greatest that landed"),
        ("furthest", "string", "the same, with when its cell last landed behind it"),
        ("frontier_at", "timestamp", "when that was"),
        ("reached", "string", "the greatest that landed, with when it first did"),
        ("settled_key", "string", "the greatest of the cells that rested when it was kept"),
        ("rested_at", "timestamp", "since when the last of these rests"),
        ("untimed_key", "string", "the greatest of cells of which no row says when it landed"),
        ("unnumbered_at", "timestamp", "latest landing of a row without a sequence number"),
        ("ever_landed", "boolean", "whether the consumer landed rows"),
        ("has_lost_rows", "boolean", "whether rows left the sink"),
        ("last_active", "timestamp", "the last cell with messages"),
        ("came_after_us", "bigint", "from a cell's start to its first arrival, the least, µs"),
        ("first_sent_at", "timestamp", "its first cell with traces"),
        ("produced_until", "timestamp", "the latest sent_at"),
        ("landed_until", "timestamp", "its last cell in which the consumer landed rows"),
        ("consumed_until", "timestamp", "when it last did"),
        ("last_arrival", "timestamp", "when the last of its traces arrived"),
        ("latency_bin", "int", "within 2^bin s 99 % of its rows landed; NULL: none did"),
        (
            "unequal",
            f"array<struct<{','.join(map(':'.join, CELL_FACTS))}>>",
            "the cells whose two sides are not the same",
        ),
        ("day_digest", "string", "of the ledger's files of that day, of which this is the sum"),
    ),
    ("stream", "shard_id", "hour"),
    ("stream",),
)

FINDING_COUNTS = Table(
    "finding_counts",
    (
        ("file", "string", "of the table findings, of which this is the sum"),
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("kind", "string", ""),
        ("cause", "string", ""),
        ("state", "string", ""),
        ("sent_month", "date", "first UTC day of the month of sent_at"),
        ("ids", "bigint", "findings"),
        ("first_deadline", "timestamp", "the least recoverable_until"),
    ),
    ("file", "stream", "shard_id", "kind", "cause", "state", "sent_month"),
)

TRACE_SESSIONS = Table(
    "trace_sessions",
    (
        ("batch_id", "string", "the ingest batch that read it"),
        ("stream", "string", "whose traces are in the folder; the lines may be of others, too"),
        ("location", "string", "where the traces were written"),
        ("producer_id", "string", ""),
        ("session", "string", "one life of a producer process; NULL: too many to look at"),
        (
            "told",
            "string",
            "lines: each number came as a trace or is told by a gap | gap: such a gap | "
            "health: there are that many at least | whole: up to here all was in files or "
            "dropped, flushed or closed | sparse: only some came, too many runs",
        ),
        ("first_seq", "bigint", "the first number of the span"),
        ("last_seq", "bigint", "its last number"),
        ("first_at", "timestamp", "least acked_at, else sent_at, in it; health: when it said so"),
        ("last_at", "timestamp", "the greatest; health: of its last line"),
        ("dropped", "bigint", "gap: how many of the span; fewer than it holds where many are one"),
    ),
    ("batch_id", "location", "producer_id", "session", "told", "first_seq"),
    ("stream",),
)
