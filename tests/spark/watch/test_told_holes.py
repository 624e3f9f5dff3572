"""Holes that were told, while something else comes to their minute or part of them is given up."""

from pathlib import Path

import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, sequence
from tests.spark.watch.holed import (
    LAST,
    QUARTER,
    Shard,
    at,
    audited,
    filled,
    holes,
    look,
    minute_row,
    run,
)
from tests.spark.watch.ledger import MINUTE, fill

pytestmark = pytest.mark.usefixtures("_any_credentials")


def kinds(warehouse: Warehouse) -> list[str]:
    """What people were told, by time."""
    return [n.kind for n in warehouse.read(NOTIFICATIONS).orderBy("observed_at").collect()]


def came(warehouse: Warehouse, minute: int, number: int, side: str = "traces") -> None:
    """A message of minute 125 came into the stream, or landed, so many minutes after NOW."""
    row = minute_row("s", 125, side, [number]) | {"batch_id": f"events/{side}/{100 + minute}"}
    row |= {"max_sequence_number": sequence(4 * number)}
    times = ("arrived_from", "arrived_until") if side == "traces" else ("last_at",)
    fill(warehouse, [row | dict.fromkeys(times, NOW + minute * MINUTE)])


LOST, LATE = 3 * 125, 3 * LAST  # numbers; the late one is of a device that was offline


@pytest.mark.parametrize("doubled", [[], [LOST + 1]], ids=["a loss", "a loss and a double"])
def test_a_hole_is_not_over_while_something_else_comes_to_its_minute(
    warehouse: Warehouse, tmp_path: Path, doubled: list[int]
) -> None:
    filled(warehouse, Shard("s", lost=[LOST], doubled=doubled))
    run(warehouse, tmp_path)
    came(warehouse, 10, LATE)
    assert holes(look(warehouse, tmp_path, NOW + QUARTER)) == {"s": (1, 1)}
    came(warehouse, 16, LATE, "sink")
    for nth in (2, 3, 4):  # not settled yet, and settled
        assert holes(look(warehouse, tmp_path, NOW + nth * QUARTER)) == {"s": (1, 1)}
    assert kinds(warehouse) == ["hole"]


def test_a_hole_that_is_over_is_none_when_something_else_comes_to_its_minute(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[LOST]))
    run(warehouse, tmp_path)
    came(warehouse, 1, LOST, "sink")  # by a backfill
    assert holes(look(warehouse, tmp_path, NOW + QUARTER)) == {}
    came(warehouse, 25, LATE)
    assert holes(look(warehouse, tmp_path, NOW + 2 * QUARTER)) == {}
    assert kinds(warehouse) == ["hole", "clear"]


def test_a_hole_is_not_over_when_messages_come_to_its_minute_all_the_time(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[LOST]))
    run(warehouse, tmp_path)
    for nth in range(1, 13):
        came(warehouse, 5 * nth, LATE + nth)
        if nth < 12:
            came(warehouse, 5 * nth + 1, LATE + nth, "sink")
    assert holes(look(warehouse, tmp_path, NOW + 61 * MINUTE)) == {"s": (1, 1)}
    assert kinds(warehouse) == ["hole"]
    audited(warehouse, 125, state="recovered", as_of=NOW + 62 * MINUTE)
    assert holes(look(warehouse, tmp_path, NOW + 63 * MINUTE)) == {}


def test_what_was_lost_since_is_told_beside_what_was_given_up(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[300, 301]))
    run(warehouse, tmp_path)
    audited(warehouse, 100, state="accepted")
    other = {"stream": "events", "shard_id": "s", "message_id": "other", "kind": "missing"}
    warehouse.upsert([other | {"state": "open", "sent_at": at(100)}], FINDINGS)
    assert holes(look(warehouse, tmp_path, NOW + MINUTE)) == {"s": (1, 1)}
    assert kinds(warehouse) == ["hole"]
    removed = minute_row("s", 100, "sink", [302])
    less = {name: -int(str(removed[name])) for name in ("n", "sum_lo", "sum_hi")}
    fill(warehouse, [removed | less | {"batch_id": "events/sink/2", "latency_counts": None}])
    for nth in (1, 2):  # told, and told already
        assert holes(look(warehouse, tmp_path, NOW + nth * QUARTER)) == {"s": (1, 2)}
        assert kinds(warehouse) == ["hole", "hole"]
