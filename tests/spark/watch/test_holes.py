"""Holes by sums alone: which cells have one, what an audit knows of it, and what is told."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from shardaudit.audit.rules.classify import Damage
from shardaudit.model.config.eras import always
from shardaudit.watch.rules.differing_cells import differing_cells, unequal_hours
from shardaudit.watch.rules.holes import (
    HoleTerms,
    explained,
    hole_cells,
    shard_holes,
    standing_cells,
    with_news,
)
from tests.builders import NOW, T0
from tests.spark.audit.frames import frame
from tests.spark.watch.ledger import FACTS_DDL, LEDGER_DDL

S = timedelta(seconds=1)
TICK = timedelta(microseconds=1)
MINUTE = 60 * S
Row = dict[str, object]
Cells = dict[datetime, tuple[list[int], list[int]]]  # the numbers that were sent, and that landed

FRESH = NOW - 5 * MINUTE
DARK = T0 + 40 * MINUTE
# The cells of a shard and what is special about its facts; then its holes: by minute since T0
# how many messages are missing at least (0: in doubt).
CASES: dict[str, tuple[Cells, Row, dict[int, int]]] = {
    "sound": ({T0: ([10, 11], [10, 11])}, {}, {}),
    "one lost": ({T0: ([10, 11], [10])}, {}, {0: 1}),
    "two lost": ({T0: ([10, 11], [])}, {}, {0: 2}),
    "in two minutes": ({T0: ([10], []), T0 + MINUTE: ([11, 12], [])}, {}, {0: 1, 1: 2}),
    "lost and doubled": ({T0: ([10, 11], [10, 10])}, {}, {0: 1}),
    "doubled": ({T0: ([10], [10, 10])}, {}, {0: 0}),
    "at the frontier": ({T0: ([100], [])}, {}, {0: 1}),
    "ahead of it": ({T0: ([101], [])}, {}, {}),
    "ahead, a longer number": ({T0: ([99, 1000], [99])}, {}, {}),
    "without frontier": ({T0: ([10], [])}, {"settled_until": None}, {}),
    "by its minutes": ({T0: ([500], [])}, {"has_position": False}, {0: 1}),
    "after the last": (
        {T0: ([500], [])},
        {"has_position": False, "landed_until": T0 - TICK},
        {},
    ),
    "before the last, not settled": (
        {FRESH: ([500], [])},
        {"has_position": False, "landed_until": NOW},
        {},
    ),
    "not settled, but passed": ({FRESH: ([100], [])}, {}, {115: 1}),
    "in the dark": ({DARK: ([10], [])}, {}, {}),
    "moved to a later minute": ({T0: ([10, 11], [10]), T0 + 7 * MINUTE: ([12], [12, 11])}, {}, {}),
    "each to the next minute": (
        {
            T0: ([10, 11], [10]),
            T0 + MINUTE: ([12, 13], [11, 12]),
            T0 + 2 * MINUTE: ([14], [13, 14]),
            T0 + 5 * MINUTE: ([20], []),
        },
        {},
        {5: 1},
    ),
    "each, but the last is lost": (
        {
            T0: ([10, 11], [10]),
            T0 + MINUTE: ([12, 13], [11, 12]),
            T0 + 2 * MINUTE: ([14], [14]),
        },
        {},
        {0: 1, 1: 1},
    ),
}  # fmt: skip


def fingerprints(name: str, cells: Cells, *, whose: int | None = None) -> list[Row]:
    """Of a shard's cells; the sums are those of no other shard."""
    salt = 10_000 * (list(CASES).index(name) + 1 if whose is None else whose)
    found: list[Row] = []
    for at, (sent, landed) in cells.items():
        for side, numbers in (("traces", sent), ("sink", landed)):
            sums = {"sum_lo": sum(salt + n for n in numbers), "sum_hi": 3 * sum(numbers)}
            found.append(
                {"shard_id": name, "bucket_start": at, "side": side, "n": len(numbers)}
                | sums
                | {"max_sequence_number": str(max(numbers)) if numbers else None, "last_at": at}
            )
    return found


def holes_of(spark: SparkSession, ledger: list[Row], facts: list[Row]) -> list[Row]:
    rows = frame(spark, LEDGER_DDL, ledger)
    differing = differing_cells(
        rows, unequal_hours(rows, shape=always(MINUTE)), shape=always(MINUTE)
    )
    usual: Row = {"has_position": True, "settled_until": "100", "landed_until": T0}
    standing = standing_cells(
        differing,
        frame(spark, FACTS_DDL, (usual | {"patience": 600.0} | fact for fact in facts)),
        HoleTerms(NOW, always(MINUTE), Damage(sink=((DARK, DARK + TICK),))),
    )
    found = hole_cells(standing, differing)
    return [row.asDict() for row in found.collect()]


def utc(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value.astimezone(UTC)


def test_a_hole_is_a_settled_minute_of_which_something_lacks(spark: SparkSession) -> None:
    ledger = [row for name, (cells, *_) in CASES.items() for row in fingerprints(name, cells)]
    facts = [{"shard_id": name} | special for name, (_, special, _) in CASES.items()]
    told: dict[str, dict[int, int]] = {name: {} for name in CASES}
    for row in holes_of(spark, ledger, facts):
        missing = row["missing"]
        assert isinstance(missing, int)
        assert row["is_sure"] == (missing > 0)
        minute = (utc(row["bucket_start"]) - T0) // MINUTE
        assert minute not in told[str(row["shard_id"])]
        told[str(row["shard_id"])][minute] = missing
    assert told == {name: expected for name, (*_, expected) in CASES.items()}


def test_what_sits_on_other_shards_in_the_same_minute_is_no_hole(spark: SparkSession) -> None:
    shards: dict[str, Cells] = {
        "from": {T0: ([10, 11], [])},
        "to": {T0: ([12], [12, 10])},
        "and to": {T0: ([13], [13, 11])},
    }
    ledger = [row for name, cells in shards.items() for row in fingerprints(name, cells, whose=1)]
    facts: list[Row] = [{"shard_id": name} for name in shards]
    assert holes_of(spark, ledger, facts) == []
    lost = fingerprints("lost", {T0: ([20], [])}, whose=1)
    facts.append({"shard_id": "lost"})
    assert holes_told(spark, ledger + lost, facts) == {"lost"}
    both = [*ledger, *lost, *fingerprints("too", {T0: ([30, 31], [30])}, whose=1)]
    facts.append({"shard_id": "too"})
    assert holes_told(spark, both, facts) == {"lost", "too"}
    doubled = fingerprints("doubled", {T0: ([40], [40, 40])}, whose=1)
    assert holes_told(spark, both + doubled, facts) == {"lost", "too"}
    again = fingerprints("again", {T0: ([50], [50, 50])}, whose=1)
    # Where several shards have rows too many for other reasons, nobody can say whose they are.
    assert holes_told(spark, both + doubled + again, facts) == {"from", "lost", "too"}
    # One id in the traces of both: lost all the same.
    twice = [row for n in ("lost", "too") for row in fingerprints(n, {T0: ([20], [])}, whose=1)]
    assert holes_told(spark, twice, facts) == {"lost", "too"}


def holes_told(spark: SparkSession, ledger: list[Row], facts: list[Row]) -> set[object]:
    return {row["shard_id"] for row in holes_of(spark, ledger, facts) if row["is_sure"]}


CELLS_DDL = (
    "shard_id string, bucket_start timestamp, sent_n bigint, landed_n bigint, missing bigint, "
    "is_sure boolean, sums_digest bigint, arrived_from timestamp, arrived_until timestamp"
)
AUDITED_DDL = "shard_id string, bucket_start timestamp, pending bigint, sums_digest bigint"
LIVE_DDL = "shard_id string, bucket_start timestamp, live bigint, given_up bigint"


def test_an_audit_is_believed_while_a_cell_is_what_it_saw(spark: SparkSession) -> None:
    # What the audit saw (pending, digest), its live findings; then missing, sure, named.
    cases: dict[str, tuple[tuple[int, int] | None, int | None, tuple[int, bool, bool] | None]] = {
        "never audited": (None, None, (5, True, False)),
        "known": ((0, 7), 2, (2, True, True)),
        "nothing to be had": ((0, 7), None, None),
        "nothing live": ((0, 7), 0, None),
        "pending then": ((1, 7), 2, (5, True, False)),
        "changed since": ((0, 8), 2, (5, True, False)),
        "changed, nothing live": ((0, 8), None, (5, True, False)),
        "doubt": (None, None, (5, False, False)),
        "doubt that is known": ((0, 7), 1, (1, True, True)),
    }
    given_up = {"changed, some given up": 3, "changed, all given up": 5, "doubt, given up": 1}
    cases |= {
        "changed, some given up": ((0, 8), 0, (2, True, False)),
        "changed, all given up": ((0, 8), 0, (0, False, False)),
        "doubt, given up": ((0, 8), 0, (0, False, False)),
    }
    at = {"bucket_start": T0}
    cells: list[Row] = [
        {"shard_id": name, "sent_n": 9, "landed_n": 4, "sums_digest": 7}
        | {"is_sure": not name.startswith("doubt")}
        | {"missing": 0 if name == "doubt, given up" else 5}
        | at
        for name in cases
    ]
    audited: list[Row] = [
        {"shard_id": name, "pending": saw[0], "sums_digest": saw[1]} | at
        for name, (saw, *_) in cases.items()
        if saw
    ]
    live = [
        {"shard_id": n, "live": k, "given_up": given_up.get(n, 0)} | at
        for n, (_, k, _) in cases.items()
        if k is not None
    ]
    # Another minute of each that is known: it says nothing of this one.
    elsewhere = {"bucket_start": T0 + MINUTE}
    audited += [row | elsewhere | {"sums_digest": 7, "pending": 0} for row in audited]
    found = explained(
        frame(spark, CELLS_DDL, cells),
        frame(spark, AUDITED_DDL, audited),
        frame(spark, LIVE_DDL, live + [row | elsewhere | {"live": 9} for row in live]),
    ).collect()
    told = {row.shard_id: (row.missing, row.is_sure, row.is_named) for row in found}
    assert len(told) == len(found)
    assert told == {name: said for name, (*_, said) in cases.items() if said}
    assert {(row.sent_n, row.landed_n, row.sums_digest) for row in found} == {(9, 4, 7)}


TIMES = (
    *("since", "last", "doubted_since", "unnamed_since", "unnamed_last"),
    *("arrived_from", "unnamed_arrived_from"),
)
EXPLAINED_DDL = CELLS_DDL + ", is_named boolean, given_up bigint"
TOLD_DDL = "shard_id string, bucket_start timestamp, missing bigint"


def told_holes(spark: SparkSession) -> DataFrame:
    def cell(shard: str, minute: int, missing: int, **fields: object) -> Row:
        usual: Row = {"shard_id": shard, "bucket_start": T0 + minute * MINUTE, "missing": missing}
        usual |= {"sent_n": 10, "landed_n": 10 - missing, "is_sure": True, "is_named": False}
        usual |= dict.fromkeys(("arrived_from", "arrived_until"), T0 + minute * MINUTE)
        return usual | {"sums_digest": 1, "given_up": 0} | fields

    cells = [
        cell("s0", -1, 4),  # gone
        cell("s0", -2, 3, is_named=True),  # gone
        cell("s0", 0, 1, arrived_until=T0 + 2 * MINUTE),
        cell("s0", 3, 2, is_named=True),
        cell("s0", 5, 2, given_up=1),
        cell("s0", 7, 5, landed_n=10, is_named=True),
        cell("s0", 8, 0, is_sure=False, landed_n=12),
        cell("s0", 9, 0, is_sure=False, landed_n=12, is_named=True),
        cell("s0", -3, 0, is_sure=False),  # gone
        cell("doubt", 2, 0, is_sure=False),
        cell("named", 2, 1, is_named=True, given_up=2),
        cell("gone", -1, 1),
        # Its producer held them back: some are still here, of others not even the last one is.
        cell("held back", -5, 4, arrived_from=T0 + MINUTE, arrived_until=T0 + 6 * MINUTE),
        cell("held back", -4, 4, arrived_until=T0),
        cell("held back", -6, 4, arrived_until=T0 - TICK),
    ]
    told = [("s0", 0, 1), ("s0", 3, 1), ("s0", 3, 0), ("s0", 5, 3), ("s0", 5, 1), ("s9", 7, 9)]
    told += [("named", 2, 2)]
    return with_news(
        frame(spark, EXPLAINED_DDL, cells),
        frame(
            spark,
            TOLD_DDL,
            ({"shard_id": s, "bucket_start": T0 + m * MINUTE, "missing": n} for s, m, n in told),
        ),
        gone_before=T0,
    )


def test_news_is_a_hole_of_which_less_was_told_while_it_can_be_read(spark: SparkSession) -> None:
    rows = told_holes(spark).collect()
    news = {(r.shard_id, (utc(r.bucket_start) - T0) // MINUTE) for r in rows if r.is_new}
    assert news == {("s0", 3), ("s0", 7), ("named", 2), ("held back", -5), ("held back", -4)}
    assert {(utc(r.bucket_start) - T0) // MINUTE for r in rows if r.is_gone} == {-1, -2, -3, -6}
    assert len(rows) == 15
    due = {(utc(r.due_from) - T0) // MINUTE for r in rows if r.shard_id == "held back"}
    assert due == {1, 0, -1}


def test_holes_of_a_shard_are_added_up(spark: SparkSession) -> None:
    rows = [row.asDict() for row in shard_holes(told_holes(spark)).collect()]
    for row in rows:
        for name in TIMES:
            at = row[name]
            row[name] = None if at is None else (utc(at) - T0) // MINUTE
    none = {
        "unnamed": 0,
        "cells": 0,
        "missing": 0,
        "sent": 0,
        "even": 0,
        "news": 0,
        "gone": 0,
        "doubts": 0,
    }
    nowhen = dict.fromkeys(TIMES)
    assert {row["shard_id"]: row for row in rows} == {
        "s0": {"shard_id": "s0", "cells": 4, "missing": 10, "sent": 40, "even": 1, "news": 2}
        | {"unnamed": 2}
        | {"since": 0, "last": 7, "gone": 7, "doubts": 2, "doubted_since": 8}
        | {"unnamed_since": 0, "unnamed_last": 8}
        | {"arrived_from": 0, "unnamed_arrived_from": 0},
        "doubt": none
        | nowhen
        | {"shard_id": "doubt", "doubts": 1, "doubted_since": 2}
        | {"unnamed_since": 2, "unnamed_last": 2, "unnamed_arrived_from": 2},
        "named": none
        | nowhen
        | {"shard_id": "named", "cells": 1, "missing": 1, "sent": 10, "news": 1}
        | {"since": 2, "last": 2, "arrived_from": 2},
        "held back": none
        | nowhen
        | {
            "shard_id": "held back",
            "cells": 2,
            "unnamed": 2,
            "missing": 8,
            "sent": 20,
            "news": 2,
            "gone": 4,
        }
        | {"since": -5, "last": -4, "unnamed_since": -5, "unnamed_last": -4}
        | {"arrived_from": 0, "unnamed_arrived_from": 0},
        "gone": none | nowhen | {"shard_id": "gone", "gone": 1},
    }
