"""The standard names of the columns that come in; the configuration maps others to them."""

TRACE_COLUMNS = (
    "message_id",
    "stream",
    "shard_id",
    "sequence_number",
    "sent_at",
    "location",
    "attempt",
    "producer_id",
    "session",
    "session_seq",
    "sample_rate",
    "acked_at",
    "attributes",
)

SINK_COLUMNS = (
    "message_id",
    "shard_id",
    "sequence_number",
    "sent_at",
    "landed_at",
    "arrived_at",
)
