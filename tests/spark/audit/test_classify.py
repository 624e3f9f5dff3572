"""What is wrong with an id, by its evidence and by what its shard's consumer does."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession

from shardaudit.audit.rules.classify import (
    Damage,
    cell_counts,
    classified_ids,
    kinds,
    with_put_again,
)
from shardaudit.model.sequence import LENGTHS
from tests.builders import NOW, T0
from tests.spark.audit.frames import frame

S = timedelta(seconds=1)
KEY_30 = f"{LENGTHS + 2}30"  # the sequence key of 30
MINUTE = 60 * S
FACTS_DDL = (
    "shard_id string, patience double, has_position boolean, settled_frontier string, "
    "untimed_frontier string, consumer_state string, has_more boolean, behind_parent string"
)
FACTS: list[dict[str, object]] = [
    {"shard_id": "running", "has_position": True, "settled_frontier": "k30"},
    {"shard_id": "resting", "has_position": True, "settled_frontier": "k30"},
    {
        "shard_id": "idle resting",
        "has_position": True,
        "settled_frontier": "k30",
        "has_more": False,
    },
    {"shard_id": "not_started", "has_position": False},
    {"shard_id": "child not_started", "has_position": False, "behind_parent": "parent"},
    {"shard_id": "blind", "has_position": False, "settled_frontier": "k30"},
    {"shard_id": "untimed", "has_position": True, "untimed_frontier": "k30"},
    {"shard_id": "untimed resting", "has_position": True, "untimed_frontier": "k30"},
]
VANISHED_DDL = "message_id string"
IDS_DDL = (
    "message_id string, shard_id string, bucket_start timestamp, sent_count bigint, "
    "landed_count bigint, own_rows bigint, landed_pairs bigint, "
    "counted_key struct<digits: int, text: string>, last_sent_key string, sent_at timestamp, "
    "arrived_at timestamp, is_moved boolean, "
    "cells array<struct<shard_id: string, sent_sequences: array<string>>>"
)
# Shard, greatest sequence key, seconds since it arrived: what becomes of an id that did not land.
NOT_LANDED: dict[str, tuple[str, str, int, str]] = {
    "passed": ("running", "k29", 0, "lost"),
    "at the frontier": ("running", "k30", 0, "lost"),
    "beyond it": ("running", "k31", 0, "pending"),
    "beyond it for long": ("running", "k31", 9999, "pending"),
    "passed and resting": ("resting", "k29", 0, "lost"),
    "of the record where it stopped": ("resting", "k30", 601, "stuck"),
    "of the last record that was sent": ("idle resting", "k30", 0, "lost"),
    "of the record where it stopped, times unknown": ("untimed resting", "k30", 601, "stuck"),
    "stuck": ("resting", "k31", 601, "stuck"),
    "beyond a stop, in time": ("resting", "k31", 600, "pending"),
    "silent": ("not_started", "k1", 601, "stuck"),
    "silent, in time": ("not_started", "k1", 600, "pending"),
    "behind its parent": ("child not_started", "k1", 9999, "pending"),
    "passed, place unknown": ("blind", "k30", 0, "lost"),
    "overdue, place unknown": ("blind", "k31", 601, "lost"),
    "place unknown, in time": ("blind", "k31", 600, "pending"),
    "passed at a time unknown": ("untimed", "k30", 601, "lost"),
    "passed at a time unknown, in time": ("untimed", "k30", 600, "pending"),
    "not passed at a time unknown": ("untimed", "k31", 9999, "pending"),
    "stuck, times unknown": ("untimed resting", "k31", 601, "stuck"),
}


def an_id(name: str, **fields: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "message_id": name,
        "shard_id": "running",
        "bucket_start": T0,
        "sent_count": 1,
        "landed_count": 0,
        "own_rows": 0,
        "landed_pairs": 0,
        "counted_key": (2, "30"),
        "last_sent_key": "k29",
        "sent_at": NOW,
        "arrived_at": NOW,
        "is_moved": False,
    }
    return usual | fields


def said(
    spark: SparkSession,
    ids: list[dict[str, object]],
    damage: Damage | None = None,
    vanished: tuple[dict[str, object], ...] = (),
) -> dict[str, tuple[str | None, ...]]:
    """By id: not landed, duplicated, untraced, moved."""
    facts = [
        {"patience": 600.0, "has_more": True, "consumer_state": str(f["shard_id"]).split()[-1]} | f
        for f in FACTS
    ]
    states = {"running": "advancing", "blind": "advancing", "untimed": "advancing"}
    for fact in facts:
        fact["consumer_state"] = states.get(str(fact["consumer_state"]), fact["consumer_state"])
    found = classified_ids(
        frame(spark, IDS_DDL, ids),
        frame(spark, FACTS_DDL, facts),
        frame(spark, VANISHED_DDL, vanished),
        as_of=NOW,
        damage=damage or Damage(),
    )
    hidden = {"patience", "has_more", "consumer_state", "behind_parent", "has_position"}
    assert {*hidden, "has_vanished"}.isdisjoint(found.columns)
    return {
        row.message_id: (row.not_landed, row.duplicated, row.untraced, row.moved)
        for row in found.collect()
    }


def test_what_did_not_land_is_lost_stuck_or_pending_by_what_its_consumer_does(
    spark: SparkSession,
) -> None:
    ids = [
        an_id(name, shard_id=shard, last_sent_key=key, sent_at=NOW - age * S, arrived_at=None)
        for name, (shard, key, age, _) in NOT_LANDED.items()
    ]
    found = said(spark, ids)
    assert {name: answer[0] for name, answer in found.items()} == {
        name: expected for name, (*_, expected) in NOT_LANDED.items()
    }


def test_what_left_the_sink_when_it_was_old_is_not_lost(spark: SparkSession) -> None:
    ids = [
        an_id("gone"),
        an_id("gone, on a shard that stands", shard_id="resting", last_sent_key="k31"),
        an_id("lost"),
    ]
    gone: tuple[dict[str, object], ...] = tuple(
        {"message_id": name} for name in ("gone", "gone, on a shard that stands", "nobody")
    )
    assert {name: answer[0] for name, answer in said(spark, ids, vanished=gone).items()} == {
        "gone": "vanished",
        "gone, on a shard that stands": "vanished",
        "lost": "lost",
    }


def test_it_is_not_lost_while_another_shards_consumer_has_an_attempt_ahead(
    spark: SparkSession,
) -> None:
    """Shards and numbers of its attempts, seconds since it arrived: what becomes of it."""
    cases: dict[str, tuple[list[tuple[str, str | None]], int, str]] = {
        "passed there too": ([("advancing", "3")], 0, "lost"),
        "ahead of it": ([("advancing", "31")], 9999, "pending"),
        "longer is ahead": ([("advancing", "100")], 9999, "pending"),
        "stopped before it": ([("resting", "31")], 601, "stuck"),
        "stopped within its record": ([("resting", "30")], 601, "stuck"),
        "stopped before it, in time": ([("resting", "31")], 600, "pending"),
        "nothing of it landed": ([("not_started", "1")], 601, "stuck"),
        "behind its parent there": ([("child", "1")], 9999, "pending"),
        "on either": ([("resting", "31"), ("advancing", "31")], 601, "pending"),
        "one is passed": ([("resting", "31"), ("advancing", "30")], 601, "stuck"),
        "without a number": ([("advancing", None)], 601, "lost"),
        "place unknown": ([("blind", "31")], 601, "lost"),
        "passed at a time unknown": ([("untimed", "30")], 601, "lost"),
        "passed at a time unknown, in time": ([("untimed", "30")], 600, "pending"),
        "at home": ([("running", "31")], 601, "lost"),
    }
    ids = [
        an_id(
            name,
            arrived_at=NOW - age * S,
            cells=[("running", ["29"]), *((s, [n] if n else []) for s, n in attempts)],
        )
        for name, (attempts, age, _) in cases.items()
    ]
    facts: list[dict[str, object]] = [
        {"shard_id": "running", "has_position": True, "settled_frontier": KEY_30},
        {"shard_id": "advancing", "has_position": True, "settled_frontier": KEY_30},
        {"shard_id": "resting", "has_position": True, "settled_frontier": KEY_30},
        {"shard_id": "not_started", "has_position": False},
        {"shard_id": "child", "has_position": False, "behind_parent": "parent"},
        {"shard_id": "blind", "has_position": False},
        {"shard_id": "untimed", "has_position": True, "untimed_frontier": KEY_30},
    ]
    states = {"resting": "resting", "not_started": "not_started", "child": "not_started"}
    for fact in facts:
        fact["consumer_state"] = states.get(str(fact["shard_id"]), "advancing")
    found = classified_ids(
        frame(spark, IDS_DDL, [one | {"last_sent_key": "1"} for one in ids]),
        frame(spark, FACTS_DDL, [{"patience": 600.0, "has_more": True} | fact for fact in facts]),
        frame(spark, VANISHED_DDL, []),
        as_of=NOW,
        damage=Damage(),
    )
    assert {row.message_id: row.not_landed for row in found.collect()} == {
        name: expected for name, (*_, expected) in cases.items()
    }


def test_id_without_number_is_lost_when_its_time_is_over_whatever_its_attempts_had(
    spark: SparkSession,
) -> None:
    long_ago = NOW - 9999 * S
    ids = [
        an_id("overdue", counted_key=None, arrived_at=NOW - 601 * S),
        an_id("in time", counted_key=None, arrived_at=NOW - 600 * S, sent_at=long_ago),
        an_id("on a stop", counted_key=None, arrived_at=NOW - 601 * S, shard_id="resting"),
        an_id("with number, held back", last_sent_key="k31", sent_at=long_ago, shard_id="resting"),
    ]
    found = said(spark, ids)
    assert [found[str(i["message_id"])][0] for i in ids] == ["lost", "pending", "lost", "pending"]


def test_nothing_is_lost_where_an_unreadable_file_of_the_sink_may_have_fed_the_bucket(
    spark: SparkSession,
) -> None:
    """One of the traces hides no row: but of places, whose traces say what went elsewhere."""
    since, until = T0 + MINUTE, T0 + 3 * MINUTE
    buckets = range(-1, 4)
    lost = [an_id(f"{i}", bucket_start=T0 + i * MINUTE) for i in buckets]
    landed = [
        an_id(f"landed {i}", bucket_start=T0 + i * MINUTE, sent_count=0, landed_count=1)
        for i in buckets
    ]
    elsewhere = (T0 - 9 * MINUTE, T0 - 8 * MINUTE)
    traces = Damage(traces=((since, until), elsewhere))
    for damage, not_landed, untraced in (
        (traces, "lost", "unknown"),
        (traces.beside(["router"]), "pending", "unknown"),
        (Damage(sink=((since, until),)), "pending", "trace_loss"),
    ):
        found = said(spark, lost + landed, damage)
        dark = {i: i in (1, 2) for i in buckets}
        assert {i: found[f"{i}"][0] for i in buckets} == {
            i: not_landed if dark[i] else "lost" for i in buckets
        }
        assert {i: found[f"landed {i}"][2] for i in buckets} == {
            i: untraced if dark[i] else "trace_loss" for i in buckets
        }


def test_doubled_ids_have_the_cause_that_their_rows_show(spark: SparkSession) -> None:
    none = (None, None, None, None)
    cases = {
        "once": ({"landed_count": 1, "landed_pairs": 1}, none),
        "once, ours": ({"landed_count": 1, "landed_pairs": 1, "own_rows": 1}, none),
        "again": ({"landed_count": 2, "landed_pairs": 1}, (None, "consumer_replay", None, None)),
        "retried": ({"landed_count": 2, "landed_pairs": 2}, (None, "producer_retry", None, None)),
        "numbers unknown": ({"landed_count": 2}, (None, "unknown", None, None)),
        "by us": (
            {"landed_count": 2, "landed_pairs": 1, "own_rows": 1},
            (None, "backfill", None, None),
        ),
        "moved": (
            {"landed_count": 1, "landed_pairs": 1, "is_moved": True},
            (None, None, None, "reshard"),
        ),
        "untraced": (
            {"sent_count": 0, "landed_count": 1, "landed_pairs": 1},
            (None, None, "trace_loss", None),
        ),
        "untraced and again": (
            {"sent_count": 0, "landed_count": 2, "landed_pairs": 1},
            (None, "consumer_replay", "trace_loss", None),
        ),
        "nowhere": ({"sent_count": 0}, none),
    }
    found = said(spark, [an_id(name, **fields) for name, (fields, _) in cases.items()])
    assert found == {name: expected for name, (_, expected) in cases.items()}


def test_doubles_of_what_a_backfill_had_put_into_a_stream_are_by_it(spark: SparkSession) -> None:
    """And where they landed on another shard, as after a reshard, they are not told as moved."""
    cases = {
        ("put", "s0", "producer_retry"): ("backfill", None),
        ("put without number", "s0", "unknown"): ("backfill", None),
        ("put, and read twice", "s0", "consumer_replay"): ("consumer_replay", None),
        ("put, and sound", "s0", None): (None, None),
        ("in a gap", "s1", "producer_retry"): ("backfill", None),
        ("another", "s0", "producer_retry"): ("producer_retry", "reshard"),
    }
    at = {"bucket_start": T0, "moved": "reshard"}
    told = [
        {"message_id": one, "shard_id": shard, "duplicated": cause, **at}
        for one, shard, cause in cases
    ]
    ids = [{"message_id": one} for one, _, _ in cases if one.startswith("put")]
    cells = frame(spark, CELL_DDL, [{"shard_id": "s1", "bucket_start": T0}])
    ddl = f"message_id string, {CELL_DDL}, duplicated string, moved string"
    classified = frame(spark, ddl, told)
    found = with_put_again(classified, frame(spark, "message_id string", ids), cells)
    assert {row.message_id: (row.duplicated, row.moved) for row in found.collect()} == {
        one: expected for (one, _, _), expected in cases.items()
    }


CELL_DDL = "shard_id string, bucket_start timestamp"
CLASSIFIED_DDL = (
    "message_id string, shard_id string, sent_count bigint, landed_count bigint, "
    "not_landed string, duplicated string, untraced string, moved string, is_moved boolean, "
    "location string, "
    "counts_outside boolean, last_sent_key string, "
    "told_in struct<shard_id: string, bucket_start: timestamp>, "
    "counted_cells array<struct<shard_id: string, bucket_start: timestamp>>"
)
DISPLACED_DDL = "shard_id string, bucket_start timestamp, displaced bigint"


def classified(spark: SparkSession) -> DataFrame:
    here, there = ("s0", T0), ("s1", T0 + MINUTE)
    ids: dict[str, dict[str, object]] = {
        "sound": {"landed_count": 1},
        "lost": {"landed_count": 0, "not_landed": "lost"},
        "stuck": {"landed_count": 0, "not_landed": "stuck"},
        "pending": {"landed_count": 0, "not_landed": "pending"},
        "thrice": {"landed_count": 3, "duplicated": "consumer_replay"},
        "untraced": {"sent_count": 0, "landed_count": 2}
        | {"duplicated": "unknown", "untraced": "trace_loss"},
        "vanished": {"landed_count": 0, "not_landed": "vanished"},
        "doubled outside": {"landed_count": 2, "duplicated": "unknown", "counts_outside": True},
        "moved": {"landed_count": 1, "moved": "reshard"},
        "three cells": {"landed_count": 1, "counted_cells": [here, there, ("s2", T0)]},
    }
    usual: dict[str, object] = {"told_in": here, "counted_cells": [here], "shard_id": "s0"}
    usual |= {"sent_count": 1, "counts_outside": False, "location": "traced"}
    rows = [{"message_id": name} | usual | fields for name, fields in ids.items()]
    return frame(spark, CLASSIFIED_DDL, rows)


def test_a_cell_counts_each_of_its_ids_for_what_it_is(spark: SparkSession) -> None:
    displaced = frame(
        spark,
        DISPLACED_DDL,
        [{"shard_id": "s2", "bucket_start": T0, "displaced": -2}],
    )
    found = {
        row.shard_id: {name: n for name, n in row.asDict().items() if n and isinstance(n, int)}
        for row in cell_counts(classified(spark), displaced).collect()
    }
    assert found == {
        "s0": {
            "missing": 2,
            "pending": 1,
            "duplicated": 3,
            "extra_rows": 4,
            "untraced": 1,
            "moved": 1,
            "vanished": 1,
            "lost": 1,
            "stuck": 1,
            "there": 4,
        },
        "s1": {"over_counted": 1},
        "s2": {"over_counted": 1, "displaced": -2},
    }


def test_each_kind_of_an_id_is_a_row_and_what_is_pending_is_none(spark: SparkSession) -> None:
    found = kinds(classified(spark)).collect()
    assert {(row.message_id, row.kind, row.cause, row.location) for row in found} == {
        ("lost", "missing", "lost", "sink"),
        ("stuck", "missing", "stuck", "sink"),
        ("thrice", "duplicated", "consumer_replay", "producer"),
        ("untraced", "duplicated", "unknown", "producer"),
        ("untraced", "untraced", "trace_loss", "traced"),
        ("doubled outside", "duplicated", "unknown", "producer"),
        ("moved", "moved", "reshard", "traced"),
    }
    assert len(found) == 7
