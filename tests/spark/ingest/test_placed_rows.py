"""Rows that lack their shard or their time are put where their trace is."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.ingest.rules.deliveries import DELIVERY, DELIVERY_DDL
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD, placed_rows
from shardaudit.model.config.eras import CellShape, Eras
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
TRACES_DDL = "message_id string, shard_id string, sent_at timestamp, counted boolean"


def minute(value: object) -> int | None:
    if value is None:
        return None
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) // MINUTE


def test_a_row_gets_what_it_lacks_from_the_trace_that_counts(spark: SparkSession) -> None:
    # Shard and minutes at which it was sent and landed; then shard and minute of its bucket.
    cases: dict[str, tuple[tuple[str | None, int | None, int | None], tuple[str, int] | None]] = {
        "whole": (("s9", 4, 8), ("s9", 4)),
        "no shard": ((None, 4, 8), ("s0", 4)),
        "no time": (("s9", None, 8), ("s9", 1)),
        "neither": ((None, None, 8), ("s0", 1)),
        "no trace": ((None, 4, 8), (UNKNOWN_SHARD, 4)),
        "no trace, no time": (("s9", None, 8), ("s9", 8)),
        "nothing": (("s9", None, None), None),
    }
    rows: list[Row] = [
        {"message_id": name, "shard_id": shard, "sequence_number": "5", "is_own": False}
        | {"sent_at": sent and T0 + sent * MINUTE, "landed_at": landed and T0 + landed * MINUTE}
        for name, ((shard, sent, landed), _) in cases.items()
    ]
    # It landed twice: it was sent no later than it first landed.
    rows += [row | {"landed_at": T0 + 9 * MINUTE} for row in rows if row["landed_at"]]
    traces: list[Row] = [
        {"message_id": name, "shard_id": shard, "counted": counts, "sent_at": T0 + at * MINUTE}
        for name in cases
        if name[:8] != "no trace" and name != "nothing"
        for shard, counts, at in (("s8", False, 0), ("s0", True, 1))
    ]
    found = placed_rows(
        frame(spark, DELIVERY_DDL, rows),
        frame(spark, TRACES_DDL, traces),
        shape=Eras(CellShape(60, 1.0)),
    )
    assert tuple(found.columns) == DELIVERY
    told: dict[str, set[tuple[str, int | None]]] = {}
    listed = found.collect()
    for row in listed:
        told.setdefault(row.message_id, set()).add((row.shard_id, minute(row.bucket_start)))
        assert minute(row.sent_at) == minute(row.bucket_start)
        assert minute(row.landed_at) in {8, 9}
    assert len(listed) == len(rows) - 1
    assert told == {name: {place} for name, (_, place) in cases.items() if place}
