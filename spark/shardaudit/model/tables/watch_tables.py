"""The tables of the watch. To `shards` the ingest adds what Kinesis says; it writes no other."""

from shardaudit.model.tables.table import Table

SHARDS = Table(
    "shards",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("parent_shard_ids", "array<string>", "none, one (split) or two (merge)"),
        ("hash_start", "string", "decimal"),
        ("hash_end", "string", "decimal, inclusive"),
        ("opened", "boolean", "still takes records"),
        ("retention_hours", "bigint", ""),
        ("observed_at", "timestamp", ""),
        ("produced_until", "timestamp", ""),
        ("frontier", "string", "the greatest sequence number that landed"),
        ("frontier_at", "timestamp", "when it landed"),
        ("position", "string", ""),
        ("state", "string", "ok | idle | silent | stalled | rewound | lagging | closed"),
        ("level", "string", "none | notice | warn | urgent | lost"),
        ("recoverable_until", "timestamp", ""),
        ("start_by", "timestamp", ""),
        ("hours_to_read", "double", ""),
        ("advice", "string", ""),
        ("settled_frontier", "string", "up to there all that will land has landed"),
        ("holes", "bigint", "cells that the consumer is past and in which something is missing"),
        ("hole_messages", "bigint", "missing in them, at least"),
        ("hole_since", "timestamp", "start of the first of them; NULL when there is none"),
        ("hole_until", "timestamp", "end of the last of them, exclusive"),
        ("hole_recoverable_until", "timestamp", "when the oldest of them leaves the stream"),
        ("hole_start_by", "timestamp", "when reading them again must begin"),
        ("unnamed_since", "timestamp", "start of the first cell that differs and none audited"),
        ("unnamed_until", "timestamp", "end of the last of them, exclusive"),
        ("audit_level", "string", "how urgent an audit of them is: as level"),
    ),
    ("stream", "shard_id", "observed_at"),
)

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
        (
            "kind",
            "string",
            "change | standstill | resumed | hole | reminder | clear (of a shard) | audit",
        ),
        ("previous_level", "string", "of the shard's last notification; none for the first"),
        ("level", "string", "none | notice | warn | urgent | lost"),
        ("text", "string", "audit: the title is its first line"),
        ("observed_at", "timestamp", "the as_of of the watch or audit that found it"),
        ("state", "string", "pending | sent"),
        ("sent_at", "timestamp", "by when every receiver had it"),
        ("taken_by", "array<string>", "the receivers that have it; pending for the others"),
    ),
    ("notification_id",),
)

HOLES = Table(
    "holes",
    (
        ("stream", "string", ""),
        ("shard_id", "string", ""),
        ("bucket_start", "timestamp", "of the cell that the consumer is past"),
        ("told_at", "timestamp", "the as_of of the watch that told it"),
        ("sent", "bigint", "distinct ids acknowledged"),
        ("landed", "bigint", "rows in the sink"),
        ("missing", "bigint", "ids, at least, with those that were accepted or have expired"),
    ),
    ("stream", "shard_id", "bucket_start", "told_at"),
)
