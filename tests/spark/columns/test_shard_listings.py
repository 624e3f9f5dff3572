"""Which shards took no records any more, by what was ever seen of them."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.columns.shard_listings import closed_shards
from tests.spark.audit.frames import frame

BY = datetime(2026, 11, 20, tzinfo=UTC)
Seen = tuple[bool | None, str | None]
OPEN: Seen = (True, "ok")
CLOSED: Seen = (False, None)
UNKNOWN: Seen = (None, "ok")
GONE: Seen = (None, "closed")  # a watch found it in no listing, which may be an old one
DDL = "shard_id string, opened boolean, state string, observed_at timestamp"
# What was seen how many hours after BY; whether it was closed by then, and whether it ever is.
CASES: dict[str, tuple[list[tuple[int, Seen]], bool, bool]] = {
    "open": ([(-2, OPEN)], False, False),
    "unknown": ([(-2, UNKNOWN)], False, False),
    "closed": ([(-2, CLOSED)], True, True),
    "closed just then": ([(0, CLOSED)], True, True),
    "closed later": ([(1, CLOSED)], False, True),  # it may have taken records until then
    "open, closed, closed": ([(-3, OPEN), (-2, CLOSED), (5, CLOSED)], True, True),
    "open, closed later": ([(-3, OPEN), (1, CLOSED)], False, True),
    "made anew": ([(-3, CLOSED), (-2, OPEN)], False, False),
    "made anew, closed": ([(-3, CLOSED), (-2, OPEN), (-1, CLOSED)], True, True),
    "made anew later, closed": ([(-3, CLOSED), (2, OPEN), (3, CLOSED)], False, True),
    "closed, unknown": ([(-3, CLOSED), (-2, UNKNOWN)], True, True),
    "gone": ([(-3, GONE)], False, False),
    "gone, made anew": ([(-3, GONE), (-2, OPEN)], False, False),
}


def test_shard_is_closed_when_it_was_seen_so_and_not_as_open_since(spark: SparkSession) -> None:
    seen = frame(
        spark,
        DDL,
        [
            {"shard_id": name, "opened": opened, "state": state}
            | {"observed_at": BY + timedelta(hours=hours)}
            for name, (observations, *_) in CASES.items()
            for hours, (opened, state) in observations
        ],
    )
    by_then, ever = closed_shards(seen, by=BY).collect(), closed_shards(seen).collect()
    assert {row.shard_id: row.is_closed for row in by_then} == {n: c[1] for n, c in CASES.items()}
    assert {row.shard_id: row.is_closed for row in ever} == {n: c[2] for n, c in CASES.items()}
    assert {row.shard_id for row in ever if not row.was_listed} == {"unknown", "gone"}
