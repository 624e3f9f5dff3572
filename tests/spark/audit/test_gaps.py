"""A shard falls silent for three full minutes: gaps beside messages that are named one by one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from pyspark.sql import Row

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import gap_messages
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import CELLS, EVIDENCE, FINDINGS
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from shardaudit.store.published import published_audit
from shardaudit.store.read_findings import open_counts
from shardaudit.store.transitions import Said, accept_gaps
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, Line, sequence, shard, sink_row, trace_line
from tests.spark.audit.nights import settings_of
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
GAP, SIZE, MOVED = (5, 6, 7), 1_500, 1_100
KEPT = Retention(24 * HOUR)
WINDOW = Window(T0, T0 + 12 * MINUTE)


def unlanded(minute: int, number: int) -> Line:
    """A message of the shard that falls silent, within one of the minutes."""
    sent_at = T0 + minute * MINUTE + number * timedelta(milliseconds=30)
    return {
        "message_id": f"gap-{minute}-{number}",
        "shard_id": shard(1),
        "sequence_number": sequence(minute * 10_000 + number),
        "sent_at": sent_at,
    }


def late(minute: int, numbers: Iterable[int], at: datetime) -> list[Line]:
    return [{**unlanded(minute, n), "landed_at": at} for n in numbers]


def audited(lake: Lake, at: datetime) -> AuditReport:
    lake.ingest(now=at)
    request = AuditRequest(lake.name, lake.stream, WINDOW, at, KEPT)
    return audit(lake.warehouse, request, ungated(), now=at)


@dataclass(frozen=True)
class Told:
    """What one audit left."""

    report: AuditReport
    again: AuditReport
    gaps: list[Row]
    findings: list[Row]
    open_ids: int

    def states(self) -> dict[int, tuple[str, str, int]]:
        """By minute what the gap is."""
        return {
            round((row.bucket_start.timestamp() - T0.timestamp()) / 60): (
                row.cause,
                row.state,
                row["count"],
            )
            for row in self.gaps
        }

    def named(self, kind: str = "missing") -> Counter[str]:
        ids = (row.message_id for row in self.findings if row.kind == kind)
        return Counter(one.rpartition("-")[0] for one in ids)


def told(lake: Lake, report: AuditReport) -> Told:
    settings = settings_of(lake)
    again = published_audit(settings, lake.name, report.audit_id)
    ids = sum(count.ids for count in open_counts(settings) if count.kind == "missing")
    return Told(report, again, lake.rows(GAPS), lake.rows(FINDINGS), ids)


@dataclass(frozen=True)
class Story:
    """Silent; then one minute lands, one to its half, one not; then accepted; then expired."""

    lake: Lake
    silent: Told
    cells: list[Row]
    evidence: int
    partly: Told
    accepted: Told
    expired: Told


@pytest.fixture(scope="module")
def story(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("gaps")
    lake = Lake(engine.session, Warehouse(engine.session, str(folder / "warehouse")), folder)
    steady = [n * 10 for n in range(70)]  # of the other shard, all the time
    before = [(n, {"shard_id": shard(1), "message_id": f"b-{n}"}) for n in range(0, 240, 20)]
    lake.log("steady.jsonl", [trace_line(n, message_id=f"one-{n}") for n in steady])
    lake.log("before.jsonl", [trace_line(n, **of) for n, of in before])
    lines = [unlanded(m, n) for m in GAP for n in range(SIZE)]
    lake.log("gap.jsonl", [{**line, "sent_at": line["sent_at"].isoformat()} for line in lines])  # type: ignore[attr-defined] # a time
    lost = {130, 370}
    lake.land(sink_row(n, message_id=f"one-{n}") for n in steady if n not in lost)
    lake.land([sink_row(n, **of) for n, of in before])
    # Nothing of minute 9 lacks: the sink has another shard's name for it.
    moved = [unlanded(9, n) for n in range(MOVED)]
    lake.log("moved.jsonl", [{**line, "sent_at": line["sent_at"].isoformat()} for line in moved])  # type: ignore[attr-defined] # a time
    lake.land([{**line, "shard_id": shard(0), "landed_at": T0 + 10 * MINUTE} for line in moved])
    # One in a hundred is nearly nothing.
    lake.land(late(7, range(15), T0 + 8 * MINUTE))
    silent = told(lake, audited(lake, T0 + 2 * HOUR))
    cells, evidence = lake.rows(CELLS), len(lake.rows(EVIDENCE))
    lake.land(late(5, range(SIZE), T0 + 2 * HOUR) + late(6, range(SIZE // 2), T0 + 2 * HOUR))
    partly = told(lake, audited(lake, T0 + 3 * HOUR))
    minute = Window(T0 + 7 * MINUTE, T0 + 8 * MINUTE)
    known = Said(lake.name, minute, (shard(1),), "known")
    accept_gaps(lake.warehouse, known, now=T0 + 3 * HOUR)
    accepted = told(lake, audited(lake, T0 + 4 * HOUR))
    expired = told(lake, audited(lake, T0 + 25 * HOUR))
    return Story(lake, silent, cells, evidence, partly, accepted, expired)


LEFT = SIZE - 15


@pytest.mark.drill
def test_a_cell_of_which_nearly_nothing_landed_is_one_gap(story: Story) -> None:
    told = story.silent
    lost = ("lost", "open", SIZE)
    assert told.states() == {5: lost, 6: lost, 7: ("stuck", "open", LEFT)}
    assert told.named() == {"one": 2}
    first = min(told.gaps, key=lambda row: row.bucket_start)
    assert first.start_sequence_number == sequence(50_000)
    assert first.end_sequence_number == sequence(50_000 + SIZE - 1)
    assert first.recoverable_until.timestamp() == (T0 + 5 * MINUTE + KEPT.length).timestamp()
    # Of the ids of gaps those alone are read that landed; of one that moved there are two rows.
    assert story.evidence == 2 + 15 + 2 * MOVED


def test_its_messages_count_as_if_they_were_named(story: Story) -> None:
    report, missing = story.silent.report, 2 * SIZE + LEFT
    assert report.counts["missing"] == story.silent.open_ids == missing + 2
    assert report.verdict is Verdict.STALLED
    assert {(line.gaps, line.ids) for line in report.deadlines} == {(0, 2), (2, 3000), (1, LEFT)}
    assert story.silent.again == report
    cells = {(row.missing, row.matched, row.verdict, row.compared) for row in story.cells}
    assert (SIZE, 0, "loss", "fingerprint") in cells
    assert (LEFT, 15, "stalled", "fingerprint") in cells


def test_a_gap_ends_when_its_messages_come_and_findings_name_what_is_left(story: Story) -> None:
    told = story.partly
    assert told.states() == {
        5: ("lost", "false_alarm", SIZE),
        6: ("lost", "false_alarm", SIZE // 2),
        7: ("stuck", "open", LEFT),
    }
    assert told.named() == {"one": 2, "gap-6": SIZE - SIZE // 2}
    assert told.report.counts["missing"] == told.open_ids == 2 + SIZE - SIZE // 2 + LEFT
    reasons = {row.state_reason for row in told.gaps}
    assert "it arrived later, but for 750 that findings name" in reasons


def test_an_accepted_gap_stays_so_and_holds_nothing(story: Story) -> None:
    for told in (story.accepted, story.expired):
        assert told.states()[7] == ("stuck", "accepted", LEFT)
        assert told.report.counts["missing"] == 2 + SIZE - SIZE // 2 + LEFT
        assert told.again == told.report
    assert story.accepted.open_ids == 2 + SIZE - SIZE // 2
    missing = [row.state for row in story.expired.findings if row.kind == "missing"]
    assert set(missing) == {"expired"}


def test_a_cell_whose_messages_landed_elsewhere_is_no_gap(story: Story) -> None:
    assert story.silent.named("moved") == {"gap-9": MOVED}
    [home] = [row for row in story.cells if row.moved]
    assert (home.shard_id, home.missing, home.matched) == (shard(1), 0, MOVED)


def test_the_messages_of_a_gap_are_read_when_somebody_asks(story: Story) -> None:
    lake, cell = story.lake, (shard(1), T0 + 7 * MINUTE)
    rows, total = gap_messages(lake.warehouse, lake.name, lake.stream, cell=cell, limit=2)
    assert ([row["message_id"] for row in rows], total) == (["gap-7-15", "gap-7-16"], LEFT)


def test_every_change_of_a_gap_is_kept(story: Story) -> None:
    changes = Counter(
        (row.from_state, row.to_state, row["count"]) for row in story.lake.rows(GAP_TRANSITIONS)
    )
    assert changes == {
        (None, "open", SIZE): 2,
        (None, "open", LEFT): 1,
        ("open", "false_alarm", SIZE): 1,
        ("open", "false_alarm", SIZE // 2): 1,
        ("open", "accepted", LEFT): 1,
    }
    told = [row.text for row in story.lake.rows(NOTIFICATIONS)]
    assert any(f"3 gaps of 4,485 messages: shard {shard(1)}" in text for text in told)


def test_what_landed_without_its_place_lacks_in_no_gap(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line(n) for n in range(5)])
    lake.land([sink_row(0), sink_row(1, shard_id=None), sink_row(2, sent_at=None)])
    lake.ingest()
    cell = (shard(0), T0)
    rows, total = gap_messages(lake.warehouse, lake.name, lake.stream, cell=cell, limit=1)
    assert ([row["message_id"] for row in rows], total) == (["m3"], 2)
