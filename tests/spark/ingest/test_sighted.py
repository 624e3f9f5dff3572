"""What traces of places say of messages, and of cells."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest
from pyspark.sql import Row, SparkSession

from shardaudit.ingest.rules.sighted import (
    counted_sightings,
    handings_over,
    new_sightings,
    seen_at,
)
from shardaudit.model.tables.route_tables import SIGHTINGS
from shardaudit.model.tables.table import LATENCY_BINS
from tests.builders import T0
from tests.spark.audit.frames import frame

# message, place, event, session_seq
LINES = [
    ("once", "router", "received", 1),
    ("once", "router", "received", 1),  # its file was read again
    ("once", "router", "sent", 2),
    ("often", "router", "received", 3),
    *(("often", "router", "sent", number) for number in (4, 5, 6)),
    ("often", "enricher", "sent", 7),
    ("bare", "enricher", "received", None),
    ("bare", "enricher", "received", None),
    *(("bare", "enricher", "left_out", number) for number in (8, 9, 10)),
    ("anew", "writer", "left_out", 11),  # it was restarted, and has another rule
    ("anew", "writer", "sent", 12),
]
SEEN = {"once": "router:1:1:0", "often": "enricher:0:1:0,router:1:2:0", "bare": "enricher:1:0:2"}
SEEN["anew"] = "writer:0:1:1"


def rows() -> list[dict[str, object]]:
    cell = {"shard_id": "s0", "bucket_start": T0}
    names = ("message_id", "location", "event", "session_seq")
    return [cell | dict(zip(names, line, strict=True)) for line in LINES]


def test_each_place_says_how_often_it_saw_a_message(spark: SparkSession) -> None:
    told = seen_at(frame(spark, SIGHTINGS.ddl, rows()))
    assert {row.message_id: row.seen for row in told.collect()} == SEEN


def test_a_place_counts_its_messages_once_each(spark: SparkSession) -> None:
    lines, nothing = frame(spark, SIGHTINGS.ddl, rows()), frame(spark, SIGHTINGS.ddl, [])
    counts = counted_sightings(lines, nothing).collect()
    assert {(row.location, row.received, row.sent, row.left_out) for row in counts} == {
        ("router", 2, 2, 0),
        ("enricher", 1, 1, 1),
        ("writer", 0, 1, 0),
    }


def summed(counts: Iterable[Row]) -> Counter[tuple[str, str]]:
    sums = Counter[tuple[str, str]]()
    for row in counts:
        for name in ("received", "sent"):
            timed = sum(row[f"{name}_latency_counts"])
            sums.update({(row.location, name): row[name], (row.location, f"{name} at"): timed})
        sums[row.location, "left_out"] += row.left_out
    return sums


@pytest.mark.parametrize("first", [1, 7, 11, len(LINES) - 1])
def test_counts_of_batches_add_up_though_the_second_tells_all_again(
    spark: SparkSession, first: int
) -> None:
    lines = [row | {"sent_at": T0, "acked_at": T0} for row in rows()]
    nothing, some, whole = (frame(spark, SIGHTINGS.ddl, lines[:n]) for n in (0, first, None))
    both = [*counted_sightings(some, nothing).collect(), *counted_sightings(whole, some).collect()]
    assert summed(both) == summed(counted_sightings(whole, nothing).collect())


# of a message: seconds from sent_at to its receipts, to its sending on; what bins they are in
TIMES: dict[str, tuple[list[float | None], list[float], int | None, int | None]] = {
    "at once": ([0.5], [1.5], 0, 1),
    "again": ([300, 3, 9000], [4], 2, 2),  # the first time of each counts
    "clocks apart": ([-1.0, 7], [], 0, None),
    "before it was sent": ([-1.5, 60], [-86400], None, None),
    "without a time": ([None], [8.001], None, 4),
    "twelve days late": ([1.1e6], [], 21, None),
}


def test_times_of_a_place_add_up_to_its_messages(spark: SparkSession) -> None:
    lines = [
        {"shard_id": "s0", "bucket_start": T0, "location": "router", "sent_at": T0}
        | {"message_id": name, "event": event, "session_seq": number}
        | {"acked_at": None if after is None else T0 + timedelta(seconds=after)}
        for name, (received, sent, *_) in TIMES.items()
        for event, seconds in (("received", received), ("sent", sent))
        for number, after in enumerate(seconds)
    ]
    nothing = frame(spark, SIGHTINGS.ddl, [])
    [row] = counted_sightings(frame(spark, SIGHTINGS.ddl, lines), nothing).collect()
    for nth, counts in ((2, row.received_latency_counts), (3, row.sent_latency_counts)):
        found = Counter(bins for bins in (of[nth] for of in TIMES.values()) if bins is not None)
        assert counts == [found[number] for number in range(LATENCY_BINS)]
    assert (row.received, row.received_early, row.sent, row.sent_early) == (6, 1, 4, 1)


def test_what_is_known_is_not_new_and_without_event_it_was_received(spark: SparkSession) -> None:
    given = [row | ({"event": None} if row["event"] == "received" else {}) for row in rows()]
    known = frame(spark, SIGHTINGS.ddl, [row for row in rows() if row["message_id"] == "once"])
    new = new_sightings(frame(spark, SIGHTINGS.ddl, given), known).collect()
    assert sorted((row.message_id, row.location, row.event) for row in new) == sorted(
        line[:3] for line in LINES if line[0] != "once"
    )


def test_a_message_is_handed_over_as_often_as_it_was_sent(spark: SparkSession) -> None:
    given = [{"batch_id": "b", "acked_at": T0, "sent_at": T0} | row for row in rows() * 2]
    handed = handings_over(frame(spark, SIGHTINGS.ddl, given)).collect()
    assert Counter(row.message_id for row in handed) == {"once": 1, "often": 4, "anew": 1}
    assert {row.shard_id for row in handed} == {"s0"}
    assert all(row.landed_at == row.sent_at for row in handed)
