"""The consumer stands still before many cells of few messages each: gaps until they landed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import pytest

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.rules.gaps import LEAST_MISSING, MOST_NAMED
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import LIVE, Verdict
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, Line, sequence, shard
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SHARDS, MINUTES, SIZE = 20, 12, 450
WINDOW = Window(T0, T0 + MINUTES * MINUTE)
HALF = 225  # of the cell that lands in part


def message(of: int, minute: int, number: int) -> Line:
    return {
        "message_id": f"small-{of}-{minute}-{number}",
        "shard_id": shard(of),
        "sequence_number": sequence(minute * 10_000 + number),
        "sent_at": T0 + minute * MINUTE + number * timedelta(milliseconds=100),
    }


@dataclass(frozen=True)
class Told:
    """What one audit says: its verdict, all that is missing, by gaps that live, and by findings."""

    verdict: Verdict
    missing: int
    gaps: int
    in_gaps: int
    named: int


def audited(lake: Lake, at: datetime) -> Told:
    lake.ingest(now=at)
    request = AuditRequest(lake.name, lake.stream, WINDOW, at, Retention(24 * HOUR))
    report = audit(lake.warehouse, request, ungated(), now=at)
    gaps = [row for row in lake.rows(GAPS) if row.state in LIVE]
    named = [row for row in lake.rows(FINDINGS) if row.state in LIVE]
    counts = [row["count"] for row in gaps]
    return Told(report.verdict, report.counts["missing"], len(gaps), sum(counts), len(named))


@pytest.fixture(scope="module")
def nights(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """Nothing there; all but the first minute; half of one cell of that, too; all."""
    folder = tmp_path_factory.mktemp("small-gaps")
    lake = Lake(engine.session, Warehouse(engine.session, str(folder / "warehouse")), folder)
    cells = [(of, minute) for of in range(SHARDS) for minute in range(MINUTES)]
    sent = {cell: [message(*cell, n) for n in range(SIZE)] for cell in cells}
    lines = [line for one in sent.values() for line in one]
    lake.log("all.jsonl", [{**line, "sent_at": line["sent_at"].isoformat()} for line in lines])  # type: ignore[attr-defined] # a time
    lake.land([])
    told = [audited(lake, T0 + 2 * HOUR)]
    first = partial(dict.__or__, {"landed_at": T0 + 2 * HOUR})
    later = [line for (_, minute), one in sent.items() if minute for line in one]
    lake.land(map(first, later))
    audited(lake, T0 + 12 * HOUR)  # it has just begun again: what it passed over may still come
    told.append(audited(lake, T0 + 13 * HOUR))
    lake.land(map(first, sent[0, 0][:HALF]))
    told.append(audited(lake, T0 + 14 * HOUR))
    rest = [line for (_, minute), one in sent.items() if not minute for line in one]
    lake.land(map(first, rest[HALF:]))
    return [*told, audited(lake, T0 + 15 * HOUR)]


def test_messages_are_not_named_where_too_many_lack(nights: list[Told]) -> None:
    everything, cells = SHARDS * MINUTES * SIZE, SHARDS * MINUTES
    assert everything > MOST_NAMED
    assert SIZE < LEAST_MISSING
    assert nights[0] == Told(Verdict.SILENT, everything, cells, everything, 0)


def test_what_was_a_gap_stays_one_when_less_lacks_by_now(nights: list[Told]) -> None:
    left = SHARDS * SIZE
    assert nights[1] == Told(Verdict.LOSS, left, SHARDS, left, 0)


def test_a_small_gap_of_which_some_came_is_named(nights: list[Told]) -> None:
    left, named = (SHARDS - 1) * SIZE, SIZE - HALF
    assert nights[2] == Told(Verdict.LOSS, left + named, SHARDS - 1, left, named)


def test_nothing_stays_open_when_all_landed(nights: list[Told]) -> None:
    assert nights[3] == Told(Verdict.OK, 0, 0, 0, 0)
