"""The tables that the watch alone writes; `shards`, which the ingest feeds too, is in `tables`."""

from shardaudit.model.table import Table

POSITIONS = Table(
    "positions",
    (
        ("stream", "string", ""),
        ("source", "string", "sink | kcl | file"),
        ("consumer", "string", "the sink, the lease table or the file's folder"),
        ("shard_id", "string", ""),
        ("observed_at", "timestamp", "the as_of of the watch"),
        ("checkpoint", "string", "a sequence number, or TRIM_HORIZON, LATEST, SHARD_END, …"),
        ("sub_sequence", "bigint", "record inside an aggregate; NULL when not known"),
        ("lease_owner", "string", "kcl only"),
        ("lease_counter", "bigint", "kcl only: grows while the worker lives"),
        ("reported_at", "timestamp", "when the consumer said so; sink: when it landed"),
    ),
    ("stream", "source", "consumer", "shard_id", "observed_at"),
)

NOTIFICATIONS = Table(
    "notifications",
    (
        ("notification_id", "string", "stable: a receiver drops what it already has"),
        ("stream", "string", ""),
        ("shard_id", "string", "NULL: it is about an audit of the stream"),
        ("kind", "string", "change | reminder | clear (of a shard) | audit"),
        ("previous_level", "string", "of the shard's last notification; none for the first"),
        ("level", "string", "none | notice | warn | urgent | lost"),
        ("text", "string", "audit: the title is its first line"),
        ("observed_at", "timestamp", "the as_of of the watch or audit that found it"),
        ("state", "string", "pending | sent"),
        ("sent_at", "timestamp", ""),
    ),
    ("notification_id",),
)
