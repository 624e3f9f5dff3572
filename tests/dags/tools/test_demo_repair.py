from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console

from tools.demo_repair import DemoRepair, repair_view, repaired

START = datetime(2026, 11, 1, tzinfo=UTC)
UNTIL = START + timedelta(days=1)
MINUTE = timedelta(minutes=1)


def row(message_id: str, **more: object) -> dict[str, object]:
    """A finding: the message is of the minute that its letter counts."""
    return {
        "message_id": message_id,
        "shard_id": "s",
        "kind": "missing",
        "cause": "stuck",
        "state": "open",
        "recoverable_until": UNTIL,
        "sent_at": START + (ord(message_id) - ord("a")) * MINUTE + timedelta(seconds=7),
        **more,
    }


def cell(minute: int, verdict: str = "ok") -> dict[str, object]:
    return {"shard_id": "s", "bucket_start": START + minute * MINUTE, "verdict": verdict}


PLANTED = [
    row("a", fault="stuck_shard"),
    row("b", fault="stuck_shard", state="expired"),
    row("c", fault="replay", kind="duplicated", recoverable_until=None),
    row("d", fault="untraced", kind="untraced", recoverable_until=None),
]
AFTER = [
    row("a", state="recovered"),
    row("b", state="expired"),
    row("c", kind="duplicated", state="recovered", recoverable_until=None),
    row("d", kind="untraced", recoverable_until=None),
]
CELLS = [cell(0), cell(1, "loss"), cell(2), cell(3, "untraced"), cell(4)]


def compare(found: list[dict[str, object]], cells: list[dict[str, object]]) -> DemoRepair:
    return repaired(PLANTED, found, cells, bucket=MINUTE)


def test_it_is_done_when_all_that_could_be_repaired_is_and_the_rest_is_as_it_was() -> None:
    repair = compare(AFTER, CELLS)
    assert repair.is_done
    assert (repair.cells_ok, repair.cells_not_ok, repair.beyond) == (3, 2, 2)
    page = StringIO()
    Console(file=page, width=140).print(repair_view(repair))
    assert "3 cells ok, 2 not: those of 2 messages" in page.getvalue()
    [stuck] = [line for line in page.getvalue().splitlines() if "stuck_shard" in line]
    assert stuck.split() == ["stuck_shard", "missing", "2", "1", "1", "0", "0"]


@pytest.mark.parametrize("place", range(4))
def test_it_is_not_done_when_one_finding_is_otherwise(place: int) -> None:
    wrong = [{**one, "state": "planned"} if n == place else one for n, one in enumerate(AFTER)]
    assert not compare(wrong, CELLS).is_done
    assert not compare(AFTER[:place] + AFTER[place + 1 :], CELLS).is_done


def test_it_is_not_done_when_the_repair_made_a_finding() -> None:
    doubled = row("e", kind="duplicated", cause="backfill", recoverable_until=None)
    assert not compare([*AFTER, doubled], CELLS).is_done


@pytest.mark.parametrize("place", range(5))
def test_it_is_not_done_when_one_cell_is_otherwise(place: int) -> None:
    other = "ok" if CELLS[place]["verdict"] != "ok" else "pending"
    cells = [{**one, "verdict": other} if n == place else one for n, one in enumerate(CELLS)]
    repair = compare(AFTER, cells)
    assert (repair.is_done, repair.unexpected) == (False, 1)
