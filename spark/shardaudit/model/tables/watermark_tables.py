"""The tables of what is proven complete, and of what people said of times without messages."""

from shardaudit.model.tables.table import Table

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
