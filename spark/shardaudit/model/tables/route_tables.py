"""The tables of the places between producer and sink, as data. No comparison reads them."""

from shardaudit.model.tables.table import Table

SIGHTINGS = Table(
    "sightings",
    (
        ("batch_id", "string", "the ingest batch that brought the row"),
        ("stream", "string", ""),
        ("location", "string", "a place between the producer and the sink"),
        ("message_id", "string", ""),
        ("event", "string", "received | sent"),
        ("shard_id", "string", "as the place says it"),
        ("sequence_number", "string", "the same"),
        ("sent_at", "timestamp", "the message's time"),
        ("bucket_start", "timestamp", "start of the cell's time bucket"),
        ("acked_at", "timestamp", "when the place received it, or knew that it was sent on"),
        ("producer_id", "string", "who traced it"),
        ("session", "string", "one life of that"),
        ("session_seq", "bigint", "counts the traces of a session"),
        ("sent_day", "date", "UTC day of bucket_start"),
    ),
    ("stream", "location", "message_id", "event", "session", "session_seq", "acked_at"),
    ("stream", "sent_day"),
    ("bucket_start", "location"),
)

SIGHTING_COUNTS = Table(
    "sighting_counts",
    (
        ("batch_id", "string", "the ingest batch that brought the row"),
        ("stream", "string", ""),
        ("location", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", ""),
        ("received", "bigint", "messages that the place traced as received"),
        ("sent", "bigint", "messages that it traced as sent on"),
        ("sent_day", "date", "UTC day of bucket_start"),
    ),
    ("batch_id", "stream", "location", "shard_id", "bucket_start"),
    ("stream", "sent_day"),
)
