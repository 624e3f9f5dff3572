"""The tables of the places between producer and sink, as data.

No comparison reads them, but for that of a stream which ends at a place: `handed_over`.
"""

from shardaudit.model.tables.table import Table

SIGHTINGS = Table(
    "sightings",
    (
        ("batch_id", "string", "the ingest batch that brought the row"),
        ("stream", "string", ""),
        ("location", "string", "a place between the producer and the sink"),
        ("message_id", "string", ""),
        ("event", "string", "received | sent | left_out"),
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
        ("received", "bigint", "messages that the place traced as received, by no batch before"),
        ("sent", "bigint", "messages that it traced as sent on, the same"),
        ("sent_day", "date", "UTC day of bucket_start"),
        (
            "received_latency_counts",
            "array<bigint>",
            "messages per latency bin from sent_at to when it first received them, bins as in "
            "fingerprints; NULL: of an older version",
        ),
        ("received_early", "bigint", "those in no bin: it says more than 1 s before sent_at"),
        ("sent_latency_counts", "array<bigint>", "the same, to when it first knew them sent on"),
        ("sent_early", "bigint", ""),
        (
            "left_out",
            "bigint",
            "messages that it traced as left out, not as sent; below 0: it now says that it sent "
            "some that it had left out; NULL: of an older version",
        ),
    ),
    ("batch_id", "stream", "location", "shard_id", "bucket_start"),
    ("stream", "sent_day"),
)

_HANDED_OVER = (
    ("batch_id", "string", "the ingest batch that brought the trace"),
    ("message_id", "string", ""),
    ("shard_id", "string", "as the place says it"),
    ("sequence_number", "string", "the same"),
    ("sent_at", "timestamp", "the message's time"),
    ("landed_at", "timestamp", "when the place knew that all made of the message was taken"),
    ("sent_day", "date", "UTC day of sent_at"),
)


def handed_over(stream: str, place: str) -> Table:
    """The sink of a stream that ends at a place: what that traced as sent, a row each time."""
    return Table(
        f"handed_over/stream={stream}/place={place}",
        _HANDED_OVER,
        ("batch_id", "message_id", "landed_at"),
        ("sent_day",),
        ("sent_at",),
    )
