"""Cells that go when newer audits looked at their minutes: readers find what they found before."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest

from shardaudit.model.audit_id import AuditOrder, audit_order, ended_at
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.store.superseded_cells import delete_superseded_cells
from shardaudit.store.warehouse import Warehouse

HOUR = timedelta(hours=1)
START = datetime(2026, 11, 1, tzinfo=UTC)
EVERYTHING = pc.field("stream") == "events"
Row = dict[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """One that no engine is asked about."""
    return Warehouse(None, str(tmp_path))  # type: ignore[arg-type] # its few rows need none


def audit(name: str, first: int, last: int, *, as_of: int, ran: int, **more: object) -> Row:
    return {
        "audit_id": name,
        "stream": "events",
        "window_start": START + first * HOUR,
        "window_end": START + last * HOUR,
        "as_of": START + as_of * HOUR,
        "started_at": START + ran * HOUR,
        "finished_at": START + ran * HOUR,
        "status": "published",
        "pending": 0,
        **more,
    }


def cells(of: Row, pending: Callable[[int], int] = lambda _: 0) -> list[Row]:
    hours = (of["window_end"] - of["window_start"]) // HOUR
    starts = [of["window_start"] + n * HOUR for n in range(hours)]
    return [
        {
            "audit_id": of["audit_id"],
            "stream": "events",
            "shard_id": shard,
            "bucket_start": start,
            "bucket_end": start + HOUR,
            "pending": pending(n),
        }
        for n, start in enumerate(starts)
        for shard in ("a", "b")
    ]


def stored(warehouse: Warehouse, audits: Sequence[Row], rows: Sequence[Row]) -> None:
    warehouse.upsert(audits, AUDITS)
    warehouse.upsert(rows, CELLS)


def spans(warehouse: Warehouse) -> dict[str, list[int]]:
    """By audit the hours of which it has cells."""
    found = dict[str, set[int]]()
    for row in warehouse.rows(CELLS, where=EVERYTHING):
        found.setdefault(row["audit_id"], set()).add((row["bucket_start"] - START) // HOUR)
    return {name: sorted(hours) for name, hours in found.items()}


def by_run(row: Row) -> AuditOrder:
    return ended_at(row), row["as_of"], row["audit_id"]


def known_of(audits: Sequence[Row], rows: Sequence[Row]) -> dict[tuple[str, datetime], object]:
    """What readers take from each cell: that of the newest audit, by either order, and done again;
    of those that saw messages on their way the one that saw none."""
    found = dict[tuple[str, datetime], object]()
    by_id = {row["audit_id"]: row for row in audits}
    for key in {(row["shard_id"], row["bucket_start"]) for row in rows}:
        mine = [row for row in rows if (row["shard_id"], row["bucket_start"]) == key]
        newest = sorted(mine, key=lambda row: audit_order(by_id[row["audit_id"]]), reverse=True)
        last_run = max(mine, key=lambda row: by_run(by_id[row["audit_id"]]))
        settled = [
            next((row["audit_id"] for row in seen if row["pending"] == 0), None)
            for seen in (newest, newest[1:])
            if seen and newest[0]["pending"]
        ]
        found[key] = [row["audit_id"] for row in newest[:2]], last_run["audit_id"], settled
    return found


def test_of_nights_that_look_back_a_week_each_hour_is_kept_twice(warehouse: Warehouse) -> None:
    nights = [audit(f"n{n}", n, n + 7, as_of=n + 7, ran=n + 7) for n in range(12)]
    stored(warehouse, nights, [row for night in nights for row in cells(night)])
    gone = delete_superseded_cells(warehouse, nights, over_by=START + 10 * HOUR)
    kept = spans(warehouse)
    assert [kept[f"n{n}"] for n in (0, 1, 2)] == [[n, n + 1] for n in (0, 1, 2)]
    assert kept["n3"] == list(range(3, 10))  # as old as that it is not
    assert gone == 3 * 5 * 2
    version = warehouse.files(CELLS)
    assert delete_superseded_cells(warehouse, nights, over_by=START + 10 * HOUR) == 0
    assert warehouse.files(CELLS) == version


def test_an_hour_stays_while_the_newest_audit_saw_messages_on_their_way(
    warehouse: Warehouse,
) -> None:
    audits = [audit(f"n{n}", 0, 4, as_of=n + 4, ran=n + 4, pending=n // 3) for n in range(4)]
    rows = [row for one in audits[:3] for row in cells(one)]
    stored(warehouse, audits, [*rows, *cells(audits[3], lambda hour: int(hour == 1))])
    assert delete_superseded_cells(warehouse, audits, over_by=START + 100 * HOUR) == 2 * 2 * 3
    assert spans(warehouse) == {"n0": [1], "n1": [1], "n2": [0, 1, 2, 3], "n3": [0, 1, 2, 3]}


@pytest.mark.parametrize("seed", range(8))
def test_readers_find_the_same_cells(warehouse: Warehouse, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - to be repeated
    audits, rows = list[Row](), list[Row]()
    for number in range(9):
        first = chance.randrange(8)
        last = first + chance.randrange(1, 6)
        as_of = last + chance.randrange(4)
        waits = chance.choice([0, 0, 2])
        one = audit(f"n{number}", first, last, as_of=as_of, ran=number, pending=waits)
        audits.append(one)
        rows += cells(one, lambda hour, waits=waits: waits * (hour % 3 == 1))  # type: ignore[misc]
    stored(warehouse, audits, rows)
    before = known_of(audits, warehouse.rows(CELLS, where=EVERYTHING))
    old = START + chance.randrange(4, 10) * HOUR
    gone = delete_superseded_cells(warehouse, audits, over_by=old)
    left = warehouse.rows(CELLS, where=EVERYTHING)
    assert known_of(audits, left) == before
    assert len(left) == len(rows) - gone
    assert delete_superseded_cells(warehouse, audits, over_by=old) == 0
