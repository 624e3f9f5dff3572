"""The ledger by shard and hour: what its cells add up to, and what of a day is kept."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.ledger_hours import (
    HOUR_FACTS,
    shard_hours,
    time_measures,
    unequal_cells,
)
from shardaudit.columns.ledger_sums import cell_sums
from shardaudit.model.tables.ledger_tables import CELL_FACTS, LEDGER_HOURS
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import LEDGER_DDL, MINUTE, Row, batch

NOW = T0 + 180 * MINUTE


def at(value: object) -> int | None:
    """Minutes since T0."""
    return (value.astimezone(UTC) - T0) // MINUTE if isinstance(value, datetime) else None


# Of a shard a batch of its only cell, and until when it says that messages were sent and consumed.
TIMES: dict[str, tuple[Row, int | None, int | None]] = {
    "traces": ({"side": "traces", "n": 2}, 5, None),
    "traces of none that counts": ({"side": "traces", "n": 0}, None, None),
    "rows": ({"side": "sink", "n": 2}, None, 5),
    "rows of the consumer and of ours": ({"side": "sink", "n": 2, "own_n": 1}, None, 5),
    "rows of ours": ({"side": "sink", "n": 2, "own_n": 2}, None, None),
    "rows that went": ({"side": "sink", "n": -2}, None, None),
    "rows that do not say when": ({"side": "sink", "n": 2, "last_at": None}, None, None),
}


def test_times_are_of_what_was_added(spark: SparkSession) -> None:
    rows = [
        batch(name, "", 0) | {"last_at": T0 + 5 * MINUTE} | said
        for name, (said, *_) in TIMES.items()
    ]
    found = cell_sums(frame(spark, LEDGER_DDL, rows), *time_measures()).collect()
    assert {row.shard_id: (at(row.produced_until), at(row.consumed_until)) for row in found} == {
        name: (sent, landed) for name, (_, sent, landed) in TIMES.items()
    }


def numbered(shard: str, minute: int, side: str, n: int, number: str) -> Row:
    said = {"max_sequence_number": number, "min_sequence_number": number}
    return batch(shard, side, n, at=minute) | said | {"last_at": T0 + (minute + 1) * MINUTE}


def test_cells_add_up_by_shard_and_hour(spark: SparkSession) -> None:
    ledger = [
        *(numbered("s0", 0, side, 3, "99") for side in ("traces", "sink")),
        numbered("s0", 59, "traces", 4, "100"),
        numbered("s0", 59, "sink", 1, "100"),
        numbered("s0", 60, "traces", 5, "101"),
        numbered("s1", 10, "sink", 2, "7"),
        numbered("s1", 190, "traces", 2, "8"),  # a clock that is ahead
    ]
    sums = cell_sums(frame(spark, LEDGER_DDL, ledger), *gap_measures(MINUTE), *time_measures())
    found = shard_hours(sums, as_of=NOW, settle_grace=10 * MINUTE, bucket=MINUTE)
    assert found.columns == HOUR_FACTS
    names = ("sent_n", "landed_n", "ever_landed")
    times = ("first_sent_at", "landed_until", "last_active", "produced_until", "consumed_until")
    assert {
        (row.shard_id, at(row.hour)): tuple(row[n] for n in names)
        + tuple(at(row[n]) for n in times)
        for row in found.collect()
    } == {
        ("s0", 0): (7, 4, True, 0, 59, 59, 60, 60),
        ("s0", 60): (5, 0, False, 60, None, 60, 61, None),
        ("s1", 0): (0, 2, True, None, 10, 10, None, 11),
        ("s1", 180): (2, 0, False, 190, None, None, 191, None),
    }
    keys = {(r.shard_id, at(r.hour)): (r.least_sent_key, r.sent_key) for r in found.collect()}
    texts = {place: tuple(key and key[4:] for key in pair) for place, pair in keys.items()}
    assert texts["s0", 0] == ("99", "100")  # by length first
    assert texts["s1", 0] == (None, None)


def test_an_hour_is_no_shorter_than_a_bucket(spark: SparkSession) -> None:
    ledger = [numbered("s0", minute, "traces", 1, "1") for minute in (0, 120, 360)]
    bucket = timedelta(hours=2)
    sums = cell_sums(frame(spark, LEDGER_DDL, ledger), *gap_measures(bucket), *time_measures())
    found = shard_hours(sums, as_of=NOW, settle_grace=MINUTE, bucket=bucket).collect()
    assert sorted(at(row.hour) or 0 for row in found) == [0, 120, 360]


def test_cells_that_are_kept_come_out_as_they_were(spark: SparkSession) -> None:
    names = [name for name, _ in CELL_FACTS]
    cells = [
        tuple(
            {"bucket_start": T0 + n * MINUTE, "sent_n": n, "ever_landed": n > 1}.get(k)
            for k in names
        )
        for n in range(3)
    ]
    kept = frame(
        spark,
        LEDGER_HOURS.ddl,
        [
            {"shard_id": "s0", "hour": T0, "unequal": cells[:2]},
            {"shard_id": "s1", "hour": T0, "unequal": cells[2:]},
            {"shard_id": "s1", "hour": T0 + 60 * MINUTE, "unequal": None},
        ],
    )
    found = unequal_cells(kept)
    assert found.columns == ["shard_id", *names]
    told = {(r.shard_id, at(r.bucket_start), r.sent_n, r.ever_landed) for r in found.collect()}
    assert told == {("s0", 0, 0, False), ("s0", 1, 1, False), ("s1", 2, 2, True)}
