"""What is to be read again: the place of each missing message, and of the stretches they make."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.backfill.rules.missing import (
    ACKED_WITHIN,
    asked_for,
    missing_ids,
    sent_before,
    stretches,
)
from shardaudit.backfill.rules.ranges import AFTER, BEFORE
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.window import Window
from tests.builders import T0
from tests.spark.audit.frames import frame

S = timedelta(seconds=1)
MINUTE = 60 * S
Row = dict[str, object]
TRACES_DDL = (
    "message_id string, shard_id string, bucket_start timestamp, sequence_number string, "
    "attempt int, acked_at timestamp"
)
MISSING_DDL = (
    "message_id string, cause string, shard_id string, bucket_start timestamp, "
    "sent_at timestamp, acked_at timestamp, recoverable_until timestamp, "
    "arrives_from timestamp, arrives_until timestamp, place struct<digits: int, text: string>"
)


def seconds(value: object) -> float | None:
    if value is None:
        return None
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) / S


def at(second: float) -> datetime:
    return T0 + second * S


def test_live_missing_messages_are_where_their_last_attempt_is(spark: SparkSession) -> None:
    states = ("open", "planned", "replayed", "expired", "accepted", "recovered", "false_alarm")
    findings: list[Row] = [
        {"message_id": m, "kind": kind, "state": state, "cause": "lost"}
        | {"sent_at": at(1), "recoverable_until": at(9)}
        for m, kind, state in (
            *((state, "missing", state) for state in states),
            *((m, "missing", "open") for m in ("retried", "again", "bare", "late", "tied")),
            ("doubled", "duplicated", "open"),
        )
    ]
    # Shard, number, attempt, and when it was acknowledged.
    traces: dict[str, list[tuple[str, str | None, int | None, float | None]]] = {
        **{str(f["message_id"]): [("s0", "5", None, 2)] for f in findings},
        "retried": [("s1", "10", 2, 3), ("s0", "99", 1, 9)],
        "again": [("s0", "9", 1, 3), ("s0", "10", 1, 3)],
        "tied": [("s0", "9", None, 4), ("s0", "10", None, 3)],
        "bare": [("s0", None, None, None)],
        "late": [("s0", "7", None, 1000)],
    }
    rows: list[Row] = [
        {"message_id": m, "shard_id": shard, "sequence_number": number, "attempt": attempt}
        | {"acked_at": None if acked is None else at(acked), "bucket_start": T0}
        for m, some in traces.items()
        for shard, number, attempt, acked in some
    ]
    found = {
        row.message_id: row
        for row in missing_ids(
            frame(spark, FINDINGS.ddl, findings), frame(spark, TRACES_DDL, rows)
        ).collect()
    }
    places = {m: (r.shard_id, r.place and r.place.text) for m, r in found.items()}
    assert places == {
        **{state: ("s0", "5") for state in ("open", "planned", "replayed")},
        "retried": ("s1", "10"),
        "again": ("s0", "10"),
        "tied": ("s0", "9"),
        "bare": ("s0", None),
        "late": ("s0", "7"),
    }
    within = ACKED_WITHIN / S
    arrives = {m: (seconds(r.arrives_from), seconds(r.arrives_until)) for m, r in found.items()}
    assert arrives["open"] == (1, 2)
    assert arrives["bare"] == (1, 1)
    assert arrives["late"] == (1000 - within, 1000)
    row = found["open"]
    assert (seconds(row.sent_at), seconds(row.recoverable_until), row.cause) == (1, 9, "lost")
    assert (seconds(row.acked_at), found["bare"].acked_at) == (2, None)


def lost(name: str, **fields: object) -> Row:
    usual: Row = {"message_id": name, "cause": "lost", "shard_id": "s0", "bucket_start": T0}
    usual |= {"sent_at": at(5), "acked_at": at(6), "recoverable_until": at(500)}
    return usual | {"arrives_from": at(5), "arrives_until": at(6), "place": (2, "50")} | fields


def test_a_stretch_reaches_over_all_its_messages(spark: SparkSession) -> None:
    missing = [
        lost("a"),
        lost("b", sent_at=at(3), arrives_from=at(2), recoverable_until=at(400), place=(1, "9")),
        lost("c", sent_at=at(9), arrives_until=at(30), place=(3, "100")),
        lost("d", acked_at=None, place=None),
        lost("e", acked_at=None, place=None, sent_at=at(4)),
        lost("stuck", cause="stuck"),
        lost("elsewhere", shard_id="s1", bucket_start=at(60)),
    ]
    rows = stretches(frame(spark, MISSING_DDL, missing)).collect()
    found = {(row.shard_id, row.cause): row for row in rows}
    assert len(found) == len(rows) == 3
    row = found["s0", "lost"]
    assert (row.ids, row.places) == (5, 3)
    names = ("first_sent_at", "last_sent_at", "deadline", "first_arrival", "last_arrival")
    assert [seconds(row[name]) for name in names] == [3, 9, 400, 2, 30]
    assert seconds(row.unacked_until) == 5
    assert (row.first_place.text, row.last_place.text) == ("9", "100")
    assert found["s0", "stuck"].unacked_until is None
    assert len({one.ids_sum for one in found.values()}) == 3  # other messages


def test_of_a_range_what_came_too_late_is_read_where_it_came(spark: SparkSession) -> None:
    window = Window(at(60), at(120))
    edge = (120 * S + AFTER - BEFORE) / S
    missing = [
        lost("before", sent_at=at(59.9)),
        lost("first", sent_at=at(60)),
        lost("last", sent_at=at(119.9), arrives_until=at(edge - 0.001)),
        lost("late", sent_at=at(100), arrives_until=at(edge)),
        lost("after", sent_at=at(120)),
    ]
    rows = asked_for(frame(spark, MISSING_DDL, missing), window).collect()
    assert {row.message_id: seconds(row.bucket_start) for row in rows} == {
        "first": 0,
        "last": 0,
        "late": edge // 60 * 60,
    }


def test_a_record_came_no_sooner_than_what_stands_before_it_was_sent(spark: SparkSession) -> None:
    cells = [("a", 5, "20"), ("a", 0, "100"), ("a", 7, "120"), ("a", 30, None), ("b", 9, "20")]
    marks: list[Row] = [
        {"shard_id": shard, "bucket_start": T0 + n * MINUTE, "min_sequence_number": number}
        for shard, n, number in cells
    ]
    minutes = {
        ("a", "9"): None,
        ("a", "20"): 5,
        ("a", "110"): 5,
        ("a", "120"): 7,
        ("b", "19"): None,
    }
    asked: list[Row] = [{"shard_id": shard, "sequence_number": n} for shard, n in minutes]
    found = sent_before(
        frame(spark, "shard_id string, bucket_start timestamp, min_sequence_number string", marks),
        frame(spark, "shard_id string, sequence_number string", asked),
    )
    told = {
        (row.shard_id, row.sequence_number): seconds(row.sent_before) for row in found.collect()
    }
    assert told == {place: n and n * 60.0 for place, n in minutes.items()}
