"""Very many rows of ids that no trace tells of: they are counted, all else is told as always."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

import pytest

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.rules.gaps import MOST_NAMED
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import LIVE, Kind
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, Line, sequence, shard
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SHARDS, MINUTES, SIZE = 17, 15, 500  # as few as make more than MOST_NAMED
WINDOW = Window(T0, T0 + MINUTES * MINUTE)
UNTRACED, HALF_TRACED, SOUND = 3, 5, 13  # minutes; of the others other ids landed
Ids = set[str]


def message(of: int, minute: int, number: int, prefix: str = "sent") -> Line:
    return {
        "message_id": f"{prefix}-{of}-{minute}-{number}",
        "shard_id": shard(of),
        "sequence_number": sequence(minute * 10_000 + number),
        "sent_at": T0 + minute * MINUTE + number * timedelta(milliseconds=100),
    }


def is_traced(minute: int, number: int) -> bool:
    return minute != UNTRACED and (minute != HALF_TRACED or number % 2 == 0)


def landed_as(minute: int, number: int) -> str:
    """One message in 250 of the other ids landed as it was sent."""
    is_other = minute not in (UNTRACED, HALF_TRACED, SOUND) and number % 250
    return "other" if is_other else "sent"


@dataclass(frozen=True)
class Told:
    """Of one audit: what it counts, how many of the missing gaps tell, and what is named."""

    missing: int
    untraced: int
    in_gaps: int
    named: dict[str, int]


def audited(lake: Lake, at: datetime) -> Told:
    lake.ingest(now=at)
    request = AuditRequest(lake.name, lake.stream, WINDOW, at, Retention(24 * HOUR))
    counts = audit(lake.warehouse, request, ungated(), now=at).counts
    in_gaps = sum(row["count"] for row in lake.rows(GAPS) if row.state in LIVE)
    live = [row.kind for row in lake.rows(FINDINGS) if row.state in LIVE]
    named = {kind.value: live.count(kind) for kind in Kind}
    return Told(counts["missing"], counts["untraced"], in_gaps, named)


def expected(sent: Ids, landed: Ids) -> tuple[int, int]:
    return len(sent - landed), len(landed - sent)


def ids(lines: Iterable[Line]) -> Ids:
    return {str(line["message_id"]) for line in lines}


def landing(lines: Iterable[Line], *, after: timedelta = MINUTE) -> list[Line]:
    return [{**line, "landed_at": line["sent_at"] + after} for line in lines]  # type: ignore[operator] # a time


@dataclass(frozen=True)
class Night:
    told: Told
    missing: int
    untraced: int


@pytest.fixture(scope="module")
def nights(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[Night]:
    """Other ids landed; then the traces that lacked come; then what was sent lands."""
    folder = tmp_path_factory.mktemp("unsent")
    lake = Lake(engine.session, Warehouse(engine.session, str(folder / "warehouse")), folder)
    each = [*product(range(SHARDS), range(MINUTES), range(SIZE))]
    sent = [message(*one) for one in each]
    traced = [line for line, one in zip(sent, each, strict=True) if is_traced(*one[1:])]
    late = [line for line, one in zip(sent, each, strict=True) if not is_traced(*one[1:])]
    came = [message(*one, prefix=landed_as(*one[1:])) for one in each]
    right = [line for line, one in zip(sent, each, strict=True) if landed_as(*one[1:]) == "other"]
    found = []

    def night(hours: int, acked: list[Line], landed: list[Line]) -> None:
        told = audited(lake, T0 + hours * HOUR)
        found.append(Night(told, *expected(ids(acked), ids(landed))))

    lake.log("first.jsonl", [{**line, "sent_at": line["sent_at"].isoformat()} for line in traced])  # type: ignore[attr-defined] # a time
    lake.land(landing(came))
    night(2, traced, came)
    night(3, traced, came)
    lake.log("late.jsonl", [{**line, "sent_at": line["sent_at"].isoformat()} for line in late])  # type: ignore[attr-defined] # a time
    lake.land(landing(right[: len(right) // 2], after=3 * HOUR))
    night(4, sent, [*came, *right[: len(right) // 2]])
    lake.land(landing(right[len(right) // 2 :], after=4 * HOUR))
    night(5, sent, [*came, *right])
    return found


def test_each_message_is_counted(nights: list[Night]) -> None:
    told = [(night.told.missing, night.told.untraced) for night in nights]
    assert told == [(night.missing, night.untraced) for night in nights]
    assert nights[0].untraced > MOST_NAMED


def test_what_lacks_beside_other_ids_makes_gaps(nights: list[Night]) -> None:
    for night in nights:
        assert night.told.in_gaps + night.told.named["missing"] == night.missing
    assert [night.told.in_gaps == night.missing for night in nights[:2]] == [True, True]


def test_of_too_many_untraced_messages_none_is_named(nights: list[Night]) -> None:
    assert [night.told.named["untraced"] for night in nights] == [0, 0, 0, 0]
