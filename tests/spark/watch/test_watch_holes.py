"""Holes on the real tables: the watch sees them by sums, tells them once, and believes an audit."""

from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.model.tables.watch_tables import HOLES, NOTIFICATIONS, SHARDS
from shardaudit.model.verdict import Level
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


def test_a_hole_is_told_with_its_minute_number_and_deadline(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("well"), Shard("holed", lost=[3 * 125, 3 * 125 + 1]))
    report = run(warehouse, tmp_path)
    (line,) = report.shards
    assert (line.shard_id, line.state, line.level) == ("holed", "ok", Level.WARN)
    assert (line.holes, line.hole_messages) == (1, 2)
    assert (line.hole_since, line.hole_until) == (at(125), at(126))
    assert line.hole_recoverable_until == at(125) + timedelta(hours=24)
    words = ("[2026-11-20T10:05Z, 2026-11-20T10:06Z)", "at least 2 messages")
    assert [one for one in words if one not in (line.advice or "")] == []
    (news,) = warehouse.read(NOTIFICATIONS).collect()
    assert (news.shard_id, news.kind, news.level) == ("holed", "hole", "warn")
    seen = warehouse.read(SHARDS).orderBy("observed_at").collect()
    row = {row.shard_id: row for row in seen}["holed"]
    assert (row.level, row.holes, row.hole_messages, row.recoverable_until) == ("warn", 1, 2, None)


def test_each_hole_is_told_once_and_the_next_one_on_the_shard_again(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[3 * 125]))
    run(warehouse, tmp_path)
    look(warehouse, tmp_path, NOW + MINUTE)
    assert warehouse.read(NOTIFICATIONS).count() == 1
    late = {"batch_id": "events/traces/2", "max_sequence_number": sequence(390)}
    fill(warehouse, [minute_row("s", 130, "traces", [7000]) | late])  # its trace came hours later
    report = look(warehouse, tmp_path, NOW + QUARTER)
    assert holes(report) == {"s": (2, 2)}
    news = warehouse.read(NOTIFICATIONS).orderBy("observed_at").collect()
    assert [(n.kind, n.level) for n in news] == [("hole", "warn"), ("hole", "warn")]
    assert warehouse.read(HOLES).count() == 2


def test_a_loss_is_seen_where_a_duplicate_makes_the_counts_equal(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[300], doubled=[301]))
    report = run(warehouse, tmp_path)
    assert holes(report) == {"s": (1, 1)}
    assert "in 1 of them as many rows landed as were sent" in str(report.shards[0].advice)


def test_duplicates_alone_are_no_hole_and_the_report_says_what_may_hide_there(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", doubled=range(300, 330)))
    report = run(warehouse, tmp_path)
    assert (report.worst, report.shards, report.told) == (Level.NONE, (), 0)
    assert "in 10 cells of 1 shard from 2026-11-20T09:40:00Z" in report.notes[-1]


def test_messages_that_sit_in_another_minute_or_on_another_shard_are_no_hole(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    within_the_hour, over_the_hour = {400: 134, 401: 135}, {3 * 179: 181, 3 * 179 + 1: 181}
    one_after_the_other = {400: 134, 402: 135, 405: 136}  # from the minutes 133, 134 and 135
    shards = {"s": within_the_hour, "t": over_the_hour, "u": one_after_the_other}
    filled(warehouse, *(Shard(name, moved=moved) for name, moved in shards.items()))
    both = [Shard("a", lost=[600, 601]), Shard("b")]
    rows = [row for shard in both for row in shard.rows()]
    there = [minute_row("b", 200, "sink", [600, 601]) | {"batch_id": "events/sink/2"}]
    fill(warehouse, [*rows, *there])
    report = run(warehouse, tmp_path)
    assert (report.worst, holes(report)) == (Level.NONE, {})


def test_a_hole_between_messages_that_moved_is_told(warehouse: Warehouse, tmp_path: Path) -> None:
    moved = {400: 134, 402: 135, 600: 201, 603: 202}
    filled(warehouse, Shard("s", lost=[300, 500, 900], moved=moved))
    assert holes(run(warehouse, tmp_path)) == {"s": (3, 3)}


def test_what_waits_behind_a_stop_is_no_hole_and_what_was_lost_before_it_is(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("stopped", lost=[300], stops_at=LAST - 60), Shard("well"))
    (line,) = run(warehouse, tmp_path).shards
    assert (line.state, line.messages_ahead) == ("stalled", 3 * 61)
    assert (line.holes, line.hole_messages, line.hole_since) == (1, 1, at(100))
    assert line.advice is not None
    assert "restart its consumer" in line.advice
    assert "a HOLE" in line.advice


def test_a_cell_that_is_not_settled_for_a_quarter_of_an_hour_is_no_hole_yet(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    # Settle grace 10 minutes: the next minute landed 25 minutes before that of the second watch.
    minute = LAST - 12
    filled(warehouse, Shard("s", lost=[3 * minute + 2]))
    assert holes(run(warehouse, tmp_path)) == {}
    assert holes(run(warehouse, tmp_path, NOW + QUARTER)) == {"s": (1, 1)}


def test_a_shard_that_kinesis_lists_no_more_is_told_of(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("open"), Shard("gone", lost=[30], until=60))
    listed = {"stream": "events", "parent_shard_ids": [], "opened": True, "retention_hours": 24}
    row = listed | {"shard_id": "open", "observed_at": NOW - 2 * QUARTER}
    warehouse.upsert([row], SHARDS)
    report = run(warehouse, tmp_path)
    assert [(s.shard_id, s.state, s.holes) for s in report.shards] == [("gone", "closed", 1)]


def test_what_has_left_the_stream_is_a_notice_for_a_day(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[300]))
    run(warehouse, tmp_path)
    later = at(100) + timedelta(hours=24, minutes=20)
    (line,) = run(warehouse, tmp_path, later).shards
    assert "at least 1 message of older holes have left the stream" in str(line.advice)
    report = run(warehouse, tmp_path, later + timedelta(days=1))
    assert "HOLE" not in "".join(str(s.advice) for s in report.shards)


def test_a_longer_retention_brings_back_no_hole_that_left_under_the_shorter_one(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[300]))
    left = at(100) + timedelta(hours=24, minutes=5)
    listed = {"stream": "events", "parent_shard_ids": [], "opened": True, "shard_id": "s"}
    for seen_at, hours in ((left - MINUTE, 24), (left + MINUTE, 48)):
        warehouse.upsert([listed | {"retention_hours": hours, "observed_at": seen_at}], SHARDS)
    (line,) = run(warehouse, tmp_path, left + QUARTER).shards
    assert (line.holes, line.hole_recoverable_until) == (0, None)
    assert "at least 1 message of older holes have left the stream" in str(line.advice)
    report = run(warehouse, tmp_path, left + timedelta(days=1))
    assert all("left the stream" not in str(shard.advice) for shard in report.shards)


def test_nothing_is_said_of_cells_that_an_unreadable_file_may_have_fed(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    damaged = {
        "batch_id": "events/sink/1",
        "stream": "events",
        "side": "sink",
        "number": 1,
        "state": "done",
        "damaged_from": at(90),
        "damaged_to": at(110),
    }
    warehouse.upsert([damaged], BATCHES)
    filled(warehouse, Shard("s", lost=[300]))
    assert holes(run(warehouse, tmp_path)) == {}


@pytest.mark.parametrize(
    ("state", "pending", "found"),
    [
        ("open", 0, {"s": (1, 1)}),
        ("replayed", 0, {"s": (1, 1)}),
        ("accepted", 0, {}),
        ("expired", 0, {}),
        ("accepted", 1, {"s": (1, 1)}),
    ],
)
def test_what_an_audit_knows_by_id_is_believed_while_the_cell_is_the_same(
    warehouse: Warehouse, tmp_path: Path, state: str, pending: int, found: object
) -> None:
    filled(warehouse, Shard("s", lost=[300, 301]))
    audited(warehouse, 100, state=state, pending=pending)
    assert holes(run(warehouse, tmp_path)) == found


def test_a_cell_that_changed_since_its_audit_is_judged_anew(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[300]))
    audited(warehouse, 100, state="accepted")
    assert holes(run(warehouse, tmp_path)) == {}
    removed = minute_row("s", 100, "sink", [301])
    less = {name: -int(str(removed[name])) for name in ("n", "sum_lo", "sum_hi")}
    fill(warehouse, [removed | less | {"batch_id": "events/sink/2", "latency_counts": None}])
    assert holes(run(warehouse, tmp_path, NOW + QUARTER)) == {"s": (1, 1)}


def strays(warehouse: Warehouse, number: int, *, minute: int, rows: int) -> None:
    """A batch of the sink, read in that minute, in which so many rows lack their time."""
    batch = {"batch_id": f"events/sink/{number}", "stream": "events", "side": "sink"}
    read = {"number": number, "state": "done", "unplaced": rows, "done_at": at(minute)}
    warehouse.upsert([batch | read], BATCHES)


@pytest.mark.parametrize(
    ("minute", "rows", "found"),
    [
        (80, 400, {"s": (1, 1)}),  # they had landed 20 minutes before it was sent
        (110, 1, {}),
        (110, 400, {}),
    ],
)
def test_what_lacks_may_be_among_rows_without_a_time_that_came_after_it_was_sent(
    warehouse: Warehouse, tmp_path: Path, minute: int, rows: int, found: object
) -> None:
    strays(warehouse, 1, minute=minute, rows=rows)
    filled(warehouse, Shard("s", lost=[300]))
    report = run(warehouse, tmp_path)
    assert holes(report) == found
    assert any("in 1 cell of 1 shard" in note for note in report.notes) != bool(found)


def test_rows_without_a_time_in_many_batches_count_for_what_was_sent_before_they_came(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    for number in range(1, 71):
        strays(warehouse, number, minute=30 + number, rows=1)
    filled(warehouse, Shard("s", lost=[3 * 50, 3 * 120]))
    report = run(warehouse, tmp_path)
    assert holes(report) == {"s": (1, 1)}
    assert any("in 1 cell of 1 shard" in note for note in report.notes)


def test_what_an_audit_named_is_told_whatever_rows_lack_their_time(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    strays(warehouse, 1, minute=110, rows=400)
    filled(warehouse, Shard("s", lost=[300]))
    audited(warehouse, 100, state="open")
    assert holes(run(warehouse, tmp_path)) == {"s": (1, 1)}
