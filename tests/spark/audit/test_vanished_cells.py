"""Cells of which all was known: the table of the rule, a shard for each case."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.cells import compared_cells, grid
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.vanished import (
    Deadlines,
    Past,
    is_emptied,
    is_known_in_part,
    last_arrival,
    overdue_cells,
    vanished_cells,
    vanished_ids,
    with_vanished,
)
from shardaudit.columns.ledger_sums import SUMS, cell_sums, sums_digest
from shardaudit.ingest.stream_traces import BROUGHT_DDL
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
KEPT = Retention(60 * MINUTE)  # the minute's messages leave the stream at T0 + 61
Row = dict[str, object]
Ids = tuple[int, ...]
Said = tuple[int | None, int | None, int | None]
LEDGER_DDL = (
    "batch_id string, shard_id string, bucket_start timestamp, side string, n bigint, "
    "sum_lo bigint, sum_hi bigint, max_sequence_number string, last_at timestamp, "
    "unnumbered_at timestamp, own_n bigint, without_landed_at bigint, arrived_from timestamp, "
    "arrived_until timestamp"
)
ONE, TWO = (1,), (1, 2)


@dataclass(frozen=True)
class Seen:
    """What the newest audit of the cell saw, and as of which minute."""

    sent: Ids
    rows: Ids
    at: int = 65
    pending: int = 0
    vanished: int = 0


@dataclass(frozen=True)
class Case:
    """A cell. Traces: (batch, when they came, which ids); rows: (batch, minute of it, -: gone).

    `unplaced`: the ids of rows that are there now, and that no batch counted.
    `told`: by_ledger, by_audit, seen_at; None: it is not among them.
    """

    traces: tuple[tuple[int, int, Ids], ...]
    rows: tuple[tuple[int, int, Ids], ...]
    told: Said | None
    seen: Seen | None = None
    unplaced: Ids = ()


SENT, LANDED, GONE = (1, 0, TWO), (1, 1, TWO), (2, 62, (-1, -2))
HALF = (2, 62, (-2,))
BY_LEDGER = (1, None, None)
BY_AUDIT = (None, 1, 65)
CASES: dict[str, Case] = {
    "all gone": Case((SENT,), (LANDED, GONE), BY_LEDGER),
    "one gone": Case((SENT,), (LANDED, HALF), BY_LEDGER),
    "bit by bit": Case((SENT,), (LANDED, HALF, (3, 63, (-1,))), BY_LEDGER),
    "at the deadline": Case((SENT,), (LANDED, (2, 61, (-1, -2))), None),
    "landed in two batches": Case((SENT,), ((1, 1, ONE), (2, 2, (2,)), (3, 62, (-1,))), BY_LEDGER),
    "nothing sent": Case((), (LANDED, HALF), None),
    "nothing gone": Case((SENT,), (LANDED,), None),
    "never complete": Case((SENT,), ((1, 1, ONE), (2, 62, (-1,))), None),
    "doubled when it went": Case((SENT,), (LANDED, (2, 3, ONE), (3, 62, (-1, -1, -2))), None),
    "held back, gone too early": Case(((1, 5, TWO),), (LANDED, (2, 66, (-1, -2))), None),
    "held back, gone later": Case(((1, 5, TWO),), (LANDED, (2, 67, (-1, -2))), BY_LEDGER),
    "traces came later": Case(((1, 0, ONE), (2, 0, (2,))), (LANDED, GONE), (2, None, None)),
    "one more was sent later": Case((SENT, (2, 50, (3,))), (LANDED, GONE), BY_LEDGER),
    "two more were sent later": Case(
        (SENT, (2, 50, (3,)), (3, 40, (4,))), (LANDED, GONE), BY_LEDGER
    ),
    "later, and told apart": Case((SENT, (2, 1, (3,))), (LANDED, GONE), BY_LEDGER),
    "later, not told apart by time": Case((SENT, (2, 0, (3,))), (LANDED, GONE), BY_LEDGER),
    "later, and landed": Case(
        (SENT, (2, 50, (3,))), (LANDED, GONE, (3, 63, (3,))), BY_LEDGER
    ),
    "later, and gone with it": Case(
        (SENT, (2, 2, (3,))), (LANDED, (2, 3, (3,)), (3, 64, (-1, -2, -3))), (2, None, None)
    ),
    "one message": Case(((1, 0, ONE),), ((1, 1, ONE), (2, 62, (-1,))), BY_LEDGER),
    "gone and there again": Case((SENT,), (LANDED, GONE, (3, 63, TWO)), None),
    "of two places, one later": Case(((1, 0, ONE), (1, 30, (2,))), (LANDED, GONE), None),
    "came in two batches, gone too early": Case(
        ((1, 0, ONE), (2, 30, (2,))), (LANDED, (2, 70, (-1, -2))), None
    ),
    "held back, gone after the time that is asked for": Case(
        ((1, 39, TWO),), (LANDED, (2, 101, (-1, -2))), BY_LEDGER
    ),
    "held back, gone then and too early": Case(
        ((1, 40, TWO),), (LANDED, (2, 101, (-1, -2))), None
    ),
    "nothing counts but what came later": Case(
        ((1, 0, ()), (2, 50, TWO)), ((1, 62, ONE),), None
    ),
    "later, of two places": Case(
        (SENT, (2, 50, (3,)), (2, 70, (4,))), (LANDED, GONE), BY_LEDGER
    ),
    "complete without what came later, and with it": Case(
        (SENT, (2, 5, (3,))), (LANDED, (2, 65, (3,)), (3, 68, (-1, -2, -3))), (2, None, None)
    ),
    "complete twice without what came later": Case(
        ((1, 0, ONE), (2, 5, (2,)), (3, 50, (3,))),
        ((1, 1, ONE), (2, 65, (2,)), (3, 70, (-1, -2))),
        (2, None, None),
    ),
    "nothing sent, seen so": Case((), (LANDED, HALF), None, Seen((), TWO)),
    "seen so": Case((SENT,), ((1, 1, ONE), (2, 62, (-1,))), BY_AUDIT, Seen(TWO, ONE)),
    "seen so, gone too early": Case((SENT,), ((1, 1, ONE), (2, 61, (-1,))), None, Seen(TWO, ONE)),
    "seen, one on its way": Case(
        (SENT,), ((1, 1, ONE), (2, 62, (-1,))), None, Seen(TWO, ONE, pending=1)
    ),
    "seen otherwise": Case((SENT,), ((1, 1, ONE), (2, 62, (-1,))), None, Seen(ONE, ONE)),
    "as it was seen": Case((SENT,), ((1, 1, ONE),), (None, None, 65), Seen(TWO, ONE)),
    "as it was seen, others gone then": Case(
        (SENT,), ((1, 1, ONE),), BY_AUDIT, Seen(TWO, ONE, vanished=1)
    ),
    "as it was seen, held back": Case(
        ((1, 90, TWO),), ((1, 1, ONE),), (None, None, 65), Seen(TWO, ONE, vanished=1)
    ),
    "as it was seen, held back until now": Case(
        ((1, 39, TWO),), ((1, 1, ONE),), (None, None, 65), Seen(TWO, ONE, vanished=1)
    ),
    "as it was seen, by a later audit": Case(
        ((1, 90, TWO),), ((1, 1, ONE),), (None, 1, 152), Seen(TWO, ONE, at=152, vanished=1)
    ),
    "as it was seen, one held back": Case(
        ((1, 0, ONE), (2, 90, (2,))),
        ((1, 1, ONE),),
        BY_AUDIT,
        Seen(TWO, ONE, vanished=1),
    ),
    "unplaced alone, then one more": Case((SENT,), ((1, 62, (3,)),), BY_LEDGER, unplaced=TWO),
    "beside an unplaced one": Case(
        (SENT,), ((1, 1, ONE), (2, 62, (-1,))), BY_LEDGER, unplaced=(2,)
    ),
    "beside an unplaced one, gone too early": Case(
        (SENT,), ((1, 1, ONE), (2, 61, (-1,))), None, unplaced=(2,)
    ),
    "beside an unplaced one, never complete": Case(
        (SENT,), ((1, 1, ONE), (2, 62, (-1,))), None, unplaced=(3,)
    ),
    "seen so, beside an unplaced one": Case(
        ((1, 0, (1, 2, 3)),),
        ((1, 1, ONE), (2, 62, (-1,))),
        BY_AUDIT,
        Seen((1, 2, 3), TWO),
        unplaced=(2,),
    ),
    "seen so, the unplaced one gone too": Case(
        ((1, 0, (1, 2, 3)),), ((1, 1, ONE), (2, 62, (-1,))), None, Seen((1, 2, 3), TWO)
    ),
    "seen so, one more was sent later": Case(
        (SENT, (2, 50, (3,))), ((1, 1, ONE), (2, 62, (-1,))), BY_AUDIT, Seen(TWO, ONE)
    ),
    "seen so, one more came and landed": Case(
        (SENT, (2, 50, (3,))),
        ((1, 1, ONE), (2, 62, (-1,)), (3, 63, (3,))),
        BY_AUDIT,
        Seen(TWO, ONE),
    ),
    "by both": Case((SENT,), (LANDED, HALF), (1, 1, 65), Seen(TWO, ONE, vanished=1)),
}  # fmt: skip


def sums(ids: Iterable[int]) -> Row:
    """Of a fingerprint: rows that went count below zero."""
    some = list(ids)
    signs = [1 if i > 0 else -1 for i in some]
    return {
        "n": sum(signs),
        "sum_lo": sum(some) * 10,
        "sum_hi": sum(i * i * s for i, s in zip(some, signs, strict=True)),
    }


def ledger_rows(name: str, case: Case) -> Iterable[Row]:
    whose = {"shard_id": name, "bucket_start": T0}
    for number, came, ids in case.traces:  # of one batch several: of several locations
        at = {"arrived_from": T0 + came * MINUTE, "arrived_until": T0 + came * MINUTE}
        yield {"batch_id": f"{name}/t{number}", "side": "traces"} | whose | sums(ids) | at
    for number, _, ids in case.rows:
        yield {"batch_id": f"{name}/s{number}", "side": "sink"} | whose | sums(ids)
    if case.unplaced:
        yield {"side": "sink"} | whose | sums(case.unplaced)


def batches(name: str, case: Case) -> Iterable[Row]:
    for number in {number for number, _, _ in case.traces}:
        yield {"batch_id": f"{name}/t{number}", "number": number, "planned_at": T0}
    for number, at, _ in case.rows:
        planned_at = T0 + at * MINUTE
        yield {"batch_id": f"{name}/s{number}", "number": number, "planned_at": planned_at}


def seen_cell(name: str, seen: Seen) -> Row:
    sides = {"sent": sums(seen.sent), "landed": sums(seen.rows)}
    return (
        {"shard_id": name, "bucket_start": T0, "as_of": T0 + seen.at * MINUTE}
        | {"pending": seen.pending, "vanished": seen.vanished}
        | {f"{side}_{n}": of[n] for side, of in sides.items() for n in SUMS}
    )


def told(spark: SparkSession, *, damage: Damage, as_of: int) -> dict[str, object]:
    """By case what is said of the cell."""
    ledger = frame(spark, LEDGER_DDL, (r for n, c in CASES.items() for r in ledger_rows(n, c)))
    of_batches = frame(
        spark,
        "batch_id string, number bigint, planned_at timestamp",
        (r for n, c in CASES.items() for r in batches(n, c)),
    )
    counts = ", ".join(f"{side}_{n} bigint" for side in ("sent", "landed") for n in SUMS)
    audited = frame(
        spark,
        "shard_id string, bucket_start timestamp, as_of timestamp, pending bigint, "
        f"vanished bigint, {counts}",
        (seen_cell(n, c.seen) for n, c in CASES.items() if c.seen),
    ).withColumn("sums_digest", sums_digest())
    shards = frame(spark, "shard_id string", ({"shard_id": name} for name in CASES))
    cells = compared_cells(
        grid(shards, window=Window(T0, T0 + 2 * MINUTE), bucket=MINUTE),
        cell_sums(ledger, last_arrival(MINUTE)),
    )
    missing = frame(spark, "message_id string", ())
    by = Deadlines(MINUTE, KEPT, T0 + as_of * MINUTE, damage)
    past = Past(ledger, of_batches, audited, missing)
    found = vanished_cells(overdue_cells(cells, past, by), past, by)
    both = with_vanished(cells, found, cells.where(F.lit(False))).withColumns(
        {"is_emptied": is_emptied(), "is_known_in_part": is_known_in_part()}
    )
    rows = both.where(F.col("bucket_start") == F.lit(T0)).collect()
    assert len(rows) == len(CASES)
    assert both.where(F.col("was_known")).count() == sum(row.was_known for row in rows)
    known = {row.shard_id: {row.by_ledger, row.by_audit} - {None} for row in rows}
    last = {n: max((number for number, *_ in c.traces), default=0) for n, c in CASES.items()}
    assert all(row.was_known == bool(known[row.shard_id]) for row in rows)
    assert {row.shard_id for row in rows if row.is_emptied} == {
        row.shard_id
        for row in rows
        if not row.landed_n and last[row.shard_id] in known[row.shard_id]
    }
    assert {row.shard_id for row in rows if row.is_known_in_part} == {
        name for name, numbers in known.items() if numbers - {last[name]}
    }
    return {row.shard_id: (row.by_ledger, row.by_audit, minute(row.seen_at)) for row in rows}


def minute(at: datetime | None) -> int | None:
    return None if at is None else (at.astimezone(UTC) - T0) // MINUTE


NOTHING = (None, None, None)


def test_what_was_known_of_a_cell_is_told(spark: SparkSession) -> None:
    expected = {name: case.told or NOTHING for name, case in CASES.items()}
    of_traces = Damage(traces=((T0, T0 + MINUTE),))  # such a file hides no row
    assert told(spark, damage=of_traces, as_of=100) == expected


@pytest.mark.parametrize(
    ("damage", "as_of"),
    [(Damage(sink=((T0, T0 + MINUTE),)), 100), (Damage(), 61)],
)
def test_nothing_is_told_when_a_file_is_unreadable_or_the_stream_has_the_cell(
    spark: SparkSession, damage: Damage, as_of: int
) -> None:
    assert set(told(spark, damage=damage, as_of=as_of).values()) == {NOTHING}


# Of the cell: by_ledger, by_audit, seen_at. Of the id: when it came and by which batch (0: nobody
# asked, as all of the cell is known), cells, rows, sent.
IDS: dict[str, tuple[Said, tuple[int, int, int, int, int], bool]] = {
    "by the ledger": ((1, None, None), (0, 0, 1, 0, 1), True),
    "by the ledger, missing": ((1, None, None), (0, 0, 1, 0, 1), True),
    "before what came later": ((1, None, None), (0, 1, 1, 0, 1), True),
    "what came later": ((1, None, None), (0, 2, 1, 0, 1), False),
    "what came later, seen": ((1, 2, 65), (0, 2, 1, 0, 1), True),
    "what came later still": ((1, 2, 65), (0, 3, 1, 0, 1), False),
    "by an audit": ((None, 1, 65), (0, 0, 1, 0, 1), True),
    "by an audit, missing": ((None, 1, 65), (0, 0, 1, 0, 1), False),
    "by an audit, before what came later": ((None, 1, 65), (0, 1, 1, 0, 1), True),
    "by an audit, what came later": ((None, 1, 65), (0, 2, 1, 0, 1), False),
    "as it was, nothing gone": ((None, None, 65), (0, 0, 1, 0, 1), False),
    "retried, seen when it had left": ((None, None, 65), (4, 0, 2, 0, 1), True),
    "retried, seen when it had left, missing": ((None, None, 65), (4, 0, 2, 0, 1), False),
    "retried, seen just before": ((None, 1, 65), (5, 0, 2, 0, 1), False),
    "retried, not seen": ((None, 1, None), (4, 0, 2, 0, 1), False),
    "retried, came after what was seen": ((None, 1, 65), (4, 2, 2, 0, 1), False),
    "there": ((1, 1, 65), (0, 0, 1, 1, 1), False),
    "never sent": ((1, 1, 65), (0, 0, 1, 0, 0), False),
    "of an unknown cell": ((None, None, None), (0, 0, 1, 0, 1), False),
}  # fmt: skip


def test_ids_that_landed_once_are_told(spark: SparkSession) -> None:
    cells = [
        {"shard_id": name, "bucket_start": T0, "by_ledger": by_ledger, "by_audit": by_audit}
        | {"seen_at": None if seen is None else T0 + seen * MINUTE}
        | {"was_known": bool(by_ledger or by_audit)}
        for name, ((by_ledger, by_audit, seen), _, _) in IDS.items()
    ]
    ids: list[Row] = [
        {"message_id": name, "shard_id": name, "bucket_start": T0}
        | {"arrived_at": T0 + came * MINUTE}
        | {"cells": ["a", "b"][:places], "landed_count": rows, "sent_count": sent}
        for name, (_, (came, _, places, rows, sent), _) in IDS.items()
    ]
    brought: list[Row] = [
        {"message_id": name, "shard_id": name, "bucket_start": T0, "number": number}
        for name, (_, (_, number, *_), _) in IDS.items()
        if number
    ]
    ids.append(ids[0] | {"message_id": "of the next minute", "bucket_start": T0 + MINUTE})
    missing = [{"message_id": name} for name in IDS if name.endswith("missing")]
    found = vanished_ids(
        frame(
            spark,
            "message_id string, shard_id string, bucket_start timestamp, arrived_at timestamp, "
            "cells array<string>, landed_count bigint, sent_count bigint",
            ids,
        ),
        frame(
            spark,
            "shard_id string, bucket_start timestamp, by_ledger bigint, by_audit bigint, "
            "seen_at timestamp, was_known boolean",
            cells,
        ),
        frame(spark, "message_id string", missing),
        frame(spark, BROUGHT_DDL, brought),
        KEPT,
    )
    names = [row.message_id for row in found.orderBy(F.col("message_id")).collect()]
    assert names == sorted(name for name, (*_, is_gone) in IDS.items() if is_gone)
