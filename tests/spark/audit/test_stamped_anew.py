"""Producers that give a retry a `sent_at` of its own, where hours are audited one by one."""

from datetime import datetime, timedelta

import pyarrow.compute as pc
import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.backfill.dedupe_plan import plan_dedupe, stored_dedupe
from shardaudit.backfill.stamped_apart import edges_of_apart
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.page.page_reading import read_line
from shardaudit.report.summary import AuditReport
from shardaudit.store.published import published_audit
from tests.builders import T0, Line, shard, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

HOUR = timedelta(hours=1)
NOW = T0 + 3 * HOUR
FIRST, RETRY = trace_line(3590), trace_line(3610, message_id="m3590")
RETRIED_ROW = sink_row(3610, message_id="m3590")
BESIDE = (3000, 4000)  # messages of either hour with which all is well


def audited(lake: Lake, hour: int, *, hours: int = 1) -> AuditReport:
    """Each is later than the one before."""
    lake.ingest(now=NOW)
    as_of = NOW + len(lake.rows(AUDITS)) * timedelta(minutes=1)
    window = Window(T0 + hour * HOUR, T0 + (hour + hours) * HOUR)
    request = AuditRequest(lake.name, lake.stream, window, as_of, Retention(timedelta(days=1)))
    return audit(lake.warehouse, request, ungated(), now=as_of)


def said(report: AuditReport) -> tuple[object, ...]:
    return (report.verdict, *(report.counts[n] for n in ("sent", "landed", "extra_rows")))


def states(lake: Lake) -> dict[tuple[str, str], str]:
    rows = lake.warehouse.rows(FINDINGS, where=pc.scalar(True))
    return {(row["message_id"], row["kind"]): row["state"] for row in rows}


def with_others(lake: Lake, lines: list[Line], rows: list[Line]) -> None:
    lake.log("a.jsonl", [*map(trace_line, BESIDE), *lines])
    lake.land([*map(sink_row, BESIDE), *rows])


def test_both_hours_tell_of_a_message_that_landed_in_both(lake: Lake) -> None:
    with_others(lake, [FIRST], [sink_row(3590)])
    assert said(audited(lake, 0)) == (Verdict.OK, 2, 2, 0)
    lake.log("b.jsonl", [RETRY])
    lake.land([RETRIED_ROW])
    for hour, counts in ((1, (1, 2, 1)), (0, (2, 3, 1)), (1, (1, 2, 1)), (0, (2, 3, 1))):
        assert said(audited(lake, hour)) == (Verdict.DUPLICATION, *counts), hour
        assert states(lake) == {("m3590", "duplicated"): "open"}
    assert said(audited(lake, 0, hours=2)) == (Verdict.DUPLICATION, 3, 4, 1)

    lake.sql("DELETE FROM SINK WHERE sent_at = timestamp '2026-11-20 13:00:10+00:00'")
    for hour, counts in ((1, (1, 1, 0)), (0, (2, 2, 0))):
        assert said(audited(lake, hour)) == (Verdict.OK, *counts), hour
    assert states(lake) == {("m3590", "duplicated"): "recovered"}


@pytest.mark.parametrize("on", [pytest.param(shard(0), marks=pytest.mark.drill), shard(7)])
def test_what_landed_by_its_retry_alone_is_neither_lost_nor_doubled(lake: Lake, on: str) -> None:
    elsewhere = {"shard_id": on}
    with_others(lake, [FIRST, RETRY | elsewhere], [RETRIED_ROW | elsewhere])
    assert said(audited(lake, 1)) == (Verdict.OK, 1, 1, 0)
    assert said(audited(lake, 0))[1:] == (2, 2, 0)
    assert not {kind for _, kind in states(lake)} & {"missing", "duplicated", "untraced"}


def test_what_a_narrow_audit_read_of_it_is_not_all_that_there_is(lake: Lake) -> None:
    with_others(lake, [FIRST, RETRY], [sink_row(3590)])
    assert said(audited(lake, 1)) == (Verdict.OK, 1, 1, 0)
    assert said(audited(lake, 0, hours=2)) == (Verdict.OK, 3, 3, 0)
    assert states(lake) == {}


def test_what_landed_by_no_attempt_is_missing_once(lake: Lake) -> None:
    with_others(lake, [FIRST, RETRY], [])
    assert said(audited(lake, 1)) == (Verdict.OK, 1, 1, 0)
    assert said(audited(lake, 0)) == (Verdict.LOSS, 2, 1, 0)
    assert states(lake) == {("m3590", "missing"): "open"}


@pytest.mark.parametrize(("retries", "is_habit"), [(10, True), (9, False)])
def test_a_habit_is_told_by_who_audits_who_reads_it_later_and_the_page(
    lake: Lake, retries: int, is_habit: bool
) -> None:
    numbers = range(0, 60 * retries, 60)
    again = [trace_line(n + 70, message_id=f"m{n}") for n in numbers]
    soon = [trace_line(n + 1, message_id=f"m{n}") for n in numbers]
    lake.log("a.jsonl", [*map(trace_line, numbers), *again, *soon])
    lake.land([sink_row(n) for n in numbers])
    lake.settings["retention"] = timedelta(days=1)
    report = audited(lake, 0)
    assert report.verdict is Verdict.OK
    note = f"{retries} messages were acknowledged more than once, in different minutes of their"
    assert [text.startswith(note) for text in report.notes] == [True] * is_habit
    settings = Settings.model_validate(
        {
            "warehouse": str(lake.folder / "warehouse"),
            "streams": {lake.name: lake.stream.model_dump()},
        }
    )
    assert published_audit(settings, lake.name, report.audit_id).notes == report.notes
    audits = lake.warehouse.rows(AUDITS, where=pc.scalar(True))
    line, _ = read_line(settings, lake.name, audits, findings=[], now=NOW)
    assert line.notes == report.notes


@pytest.mark.drill
def test_a_dedupe_looks_where_any_attempt_of_its_messages_was_stamped(lake: Lake) -> None:
    lake.settings["bucket"] = timedelta(minutes=5)
    retry = trace_line(4500, message_id="m3590")
    untraced = [sink_row(n, message_id="other") for n in (3700, 5000)]
    with_others(lake, [FIRST, retry], [sink_row(3590), sink_row(4500, message_id="m3590")])
    assert audited(lake, 0).verdict is Verdict.DUPLICATION
    for rows, until in (([], 4800), (untraced, 5100)):
        lake.land(rows)
        audited(lake, 0, hours=2)
        plan = plan_dedupe(
            lake.warehouse, lake.name, shape=Eras(lake.stream.cell_shape), configured=None, now=NOW
        )
        assert plan.plan_id is not None
        stored = stored_dedupe(lake.warehouse, plan.plan_id)
        assert stored is not None
        assert stored.sent_from == T0 + timedelta(seconds=3300)
        assert stored.sent_to == T0 + timedelta(seconds=until) - timedelta.resolution


def test_a_backfill_looks_where_attempts_of_its_messages_were_stamped(lake: Lake) -> None:
    def edges(*numbers: int) -> tuple[datetime, datetime] | None:
        found = lake.frame([sink_row(n) for n in numbers]).select("message_id", "sent_at")
        return edges_of_apart(lake.warehouse, lake.name, found, shape=Eras(lake.stream.cell_shape))

    retry = trace_line(3690, message_id="m3590")
    with_others(lake, [FIRST, retry], [sink_row(3690, message_id="m3590")])
    lake.ingest(now=NOW)
    last = T0 + timedelta(seconds=3720) - timedelta.resolution
    assert edges(3590) == (T0 + timedelta(seconds=3540), last)
    assert edges(3000, 3590) == (T0 + timedelta(seconds=3000), last)
    assert edges(3000) is None
