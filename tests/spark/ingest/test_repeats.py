"""An id counts once: which of its traces does, and where the others say that it is counted."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.ingest.rules.refused_traces import GIVEN
from shardaudit.ingest.rules.repeats import (
    known_places,
    repeated_ids,
    single_traces,
    told_traces,
    unknown_traces,
)
from shardaudit.model.tables.audit_tables import TRACES
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
DAY = 24 * 60  # minutes
KINDS = {name: kind for name, kind, _ in TRACES.columns}
GIVEN_DDL = ", ".join(f"{name} {KINDS[name]}" for name in GIVEN)
Row = dict[str, object]
At = tuple[int, str, str | None]  # minute, shard, sequence number

# Of an id the traces of other batches, each with the minute in which it is counted (None: its own);
# the new ones; and of those that are told whether they count, or in which minute the id is counted.
CASES: dict[str, tuple[list[tuple[At, int | None]], list[At], dict[At, bool | int]]] = {
    "once": ([], [(0, "s0", "5")], {(0, "s0", "5"): True}),
    "by length first": (
        [],
        [(0, "s0", "10"), (0, "s0", "9")],
        {(0, "s0", "9"): True, (0, "s0", "10"): False},
    ),
    "by shard before number": (
        [],
        [(0, "s1", "1"), (7, "s0", "9")],
        {(7, "s0", "9"): True, (0, "s1", "1"): 7},
    ),
    "by number before time": (
        [],
        [(3, "s0", "2"), (1, "s0", "3")],
        {(3, "s0", "2"): True, (1, "s0", "3"): 3},
    ),
    "a line twice": ([], [(0, "s0", "5")] * 2, {(0, "s0", "5"): True}),
    "twice without a number": ([], [(0, "s0", None)] * 2, {(0, "s0", None): True}),
    "known": ([((3, "s9", "9"), None)], [(7, "s0", "1")], {(7, "s0", "1"): 3}),
    "known there": ([((3, "s9", "9"), None)], [(3, "s0", "1")], {(3, "s0", "1"): False}),
    "known, and counted elsewhere": ([((3, "s0", "9"), 1)], [(7, "s0", "1")], {(7, "s0", "1"): 1}),
    "known itself": ([((3, "s0", "9"), None)], [(3, "s0", "9")], {}),
    "a day apart": (
        [],
        [(0, "s0", "1"), (DAY, "s0", "2")],
        {(0, "s0", "1"): True, (DAY, "s0", "2"): 0},
    ),
    "further apart": (
        [],
        [(0, "s0", "1"), (DAY + 1, "s0", "2")],
        {(0, "s0", "1"): True, (DAY + 1, "s0", "2"): True},
    ),
    "in steps": (
        [],
        [(n * DAY * 3 // 4, "s0", str(n)) for n in range(3)],
        {(0, "s0", "0"): True, (DAY * 3 // 4, "s0", "1"): 0, (DAY * 3 // 2, "s0", "2"): 0},
    ),
    "known too long ago": (
        [((0, "s0", "1"), None)],
        [(DAY + 1, "s0", "2")],
        {(DAY + 1, "s0", "2"): True},
    ),
}


def trace(name: str, at: At) -> Row:
    minute, shard, number = at
    start = T0 + minute * MINUTE
    place = {"message_id": name, "shard_id": shard, "sequence_number": number}
    return place | {"bucket_start": start, "sent_at": start, "location": "producer"}


def fresh_of(spark: SparkSession) -> DataFrame:
    rows = [
        trace(name, at) | {"file": "f", "line": n}
        for name, (_, new, _) in CASES.items()
        for n, at in enumerate(new, 1)
    ]
    return frame(spark, f"{GIVEN_DDL}, file string, line bigint", rows)


def known_of(spark: SparkSession) -> DataFrame:
    rows = [
        trace(name, at) | {"counted_in": None if home is None else T0 + home * MINUTE}
        for name, (old, *_) in CASES.items()
        for at, home in old
    ]
    return frame(spark, f"{GIVEN_DDL}, counted_in timestamp", rows)


def minute_of(at: datetime | None) -> int | None:
    return None if at is None else (at.astimezone(UTC) - T0) // MINUTE


def test_of_the_traces_of_an_id_one_counts_and_the_others_say_where(spark: SparkSession) -> None:
    told: dict[str, dict[At, bool | int]] = {name: {} for name in CASES}
    found = told_traces(fresh_of(spark), known_of(spark))
    assert found.columns == [*GIVEN, "counted", "counted_in"]
    for row in found.collect():
        at = (minute_of(row.bucket_start) or 0, row.shard_id, row.sequence_number)
        home = minute_of(row.counted_in)
        assert at not in told[row.message_id]
        assert not (row.counted and home is not None)
        told[row.message_id][at] = row.counted if home is None else home
    assert told == {name: told for name, (*_, told) in CASES.items()}


def test_unknown_are_those_whose_place_no_batch_brought(spark: SparkSession) -> None:
    found = unknown_traces(fresh_of(spark), known_of(spark)).collect()
    assert {row.message_id for row in found} == CASES.keys() - {"known itself"}
    assert len(found) == sum(len(new) for _, new, _ in CASES.values()) - 1


def test_ids_come_again_when_known_or_twice_among_the_good(spark: SparkSession) -> None:
    # (id, why it was refused)
    lines: list[tuple[str, str | None]] = [
        ("once", None),
        ("twice", None),
        ("twice", None),
        ("known", None),
    ]
    lines += [("refused once", None), ("refused once", "x"), ("known, refused", "x")]
    judged = frame(
        spark,
        f"{GIVEN_DDL}, reason string",
        [trace(name, (n, "s0", "1")) | {"reason": why} for n, (name, why) in enumerate(lines)],
    ).withColumn("id_hash", F.xxhash64("message_id"))
    others = [("known", 3), ("known", 3), ("known", 9), ("known, refused", 1), ("else", 1)]
    known = frame(spark, GIVEN_DDL, [trace(name, (m, "s1", "7")) for name, m in others])
    places = known_places(judged, known)
    assert sorted(minute_of(row.bucket_start) or 0 for row in places.collect()) == [3, 9]
    repeated = repeated_ids(judged, places)
    ids = judged.join(repeated, ["id_hash"], how="left_semi").where("reason IS NULL")
    assert {row.message_id for row in ids.collect()} == {"twice", "known"}
    assert repeated.count() == 2
    single = single_traces(judged, repeated).collect()
    assert {(r.message_id, r.counted, r.counted_in) for r in single} == {
        *(("once", True, None), ("refused once", True, None)),
    }
