"""What comes late, to minutes that no window of the last days looks at any more."""

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc
import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.judged import broken_rules
from shardaudit.audit.late import audit_with_late
from shardaudit.cli.audit_command import AUDIT_STAGES
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.page.page_lines import trend
from shardaudit.page.page_reading import read_line
from shardaudit.page.page_report import stream_report
from shardaudit.page.page_state import PageState
from shardaudit.report.next_steps import late_lines
from shardaudit.report.summary import AuditReport
from shardaudit.store.transitions import Said, accept_time
from tests.builders import T0, cut_off, sink_row, trace_line
from tests.spark.audit.nights import (
    DAY,
    DAY_S,
    HOUR,
    MINUTE,
    audited,
    buffered,
    landed,
    of_day,
    on_stream,
    once,
    published,
    settings_of,
    sound_days,
    told,
)
from tests.spark.lake import Lake
from tests.spark.ungated import ungated


class Stages:
    """Keeps what an audit says it is at."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str) -> AbstractContextManager[None]:
        self.names.append(name)
        return nullcontext()


def test_a_loss_among_what_a_device_sent_days_later_is_found(lake: Lake) -> None:
    sound_days(lake, 2)
    # Written on the first day, put on the stream on the third.
    lake.log("offline.jsonl", [buffered(n, 2.5) for n in range(600, 606)])
    lake.land([landed(n, 2.5) for n in range(600, 605)])
    of_day(lake, 2, *range(0, DAY_S, 3600))
    report = audited(lake, 2)
    minute = Window(T0 + 10 * MINUTE, T0 + 11 * MINUTE)
    assert report.verdict == Verdict.OK
    assert told(report) == [(minute, Verdict.LOSS, 1)]

    # Once looked at it is a finding as others, and the watermark stands before it.
    of_day(lake, 3, *range(0, DAY_S, 3600))
    after = audited(lake, 3)
    assert (after.late, after.verdict, after.watermark) == ((), Verdict.OK, minute.start)


def test_what_came_since_is_looked_at_before_all_audits_and_where_a_row_was_too_many(
    lake: Lake,
) -> None:
    lake.settings = {"trace_coverage_floor": 0.5}
    of_day(lake, 0, *range(0, DAY_S, 3600))
    again = sink_row(7200, landed_at=T0 + 3 * HOUR)
    lake.land([again, sink_row(12_000)])  # of the last one no trace came yet
    # A device that was offline for three days comes back within the first window.
    held_back = [600 - 3 * DAY_S + n for n in range(6)]
    lake.log("offline.jsonl", [buffered(n, 0.5) for n in held_back])
    lake.land([landed(n, 0.5) for n in held_back[:5]])
    # The clock of another says for all that it was then.
    behind = 1200 - 3 * DAY_S
    lake.log("off.jsonl", [trace_line(behind, **on_stream(behind, 0.6))])
    first = audited(lake, 0)
    early, off = (
        Window(T0 - 3 * DAY + n * MINUTE, T0 - 3 * DAY + (n + 1) * MINUTE) for n in (10, 20)
    )
    losses = [(early, Verdict.LOSS, 1), (off, Verdict.LOSS, 1)]
    assert (told(first), first.watermark) == (losses, early.start)
    # A device whose clock is a month behind; and somebody deletes the row too many.
    old = [600 - 30 * DAY_S + n for n in range(6)]
    lake.log("behind.jsonl", [trace_line(n, **on_stream(n, 1.5)) for n in old])
    lake.land([landed(n, 1.5) for n in old[:5]])
    lake.sql("DELETE FROM SINK WHERE message_id = 'm7200' AND landed_at > '2026-11-20 14:30:00'")
    of_day(lake, 1, *range(0, DAY_S, 3600))
    lake.log("late.jsonl", [trace_line(12_000)])
    report = audited(lake, 1)
    minute, *others = (
        Window(at, at + MINUTE)
        for at in (T0 - 30 * DAY + 10 * MINUTE, T0 + 2 * HOUR, T0 + 200 * MINUTE)
    )
    assert report.verdict == Verdict.OK
    assert told(report) == [(minute, Verdict.LOSS, 1), *((at, Verdict.OK, 0) for at in others)]
    states = {row.message_id: (row.kind, row.state) for row in lake.rows(FINDINGS)}
    assert states == {
        "m7200": ("duplicated", "recovered"),
        "m12000": ("untraced", "false_alarm"),
        f"m{held_back[5]}": ("missing", "expired"),
        f"m{behind}": ("missing", "expired"),
        f"m{old[5]}": ("missing", "expired"),  # by its own clock, for all that is known
    }
    assert (report.watermark, audited(lake, 1).watermark) == (minute.start, minute.start)


def one_on_its_way(lake: Lake) -> AuditReport:
    """The night of the third day: a minute before it a message of the first was put on."""

    def nights(lake: Lake) -> AuditReport:
        for day in range(2):
            of_day(lake, day, *range(0, DAY_S, 3600))
        assert audited(lake, 1, since=0).late == ()
        of_day(lake, 2, *range(0, DAY_S, 3600))
        lake.log("offline.jsonl", [buffered(30, 3.0416)])
        return audited(lake, 2)

    return once(lake, "one on its way", nights)


def test_what_is_on_its_way_is_looked_at_until_it_is_settled(lake: Lake) -> None:
    report = one_on_its_way(lake)
    minute = Window(T0, T0 + MINUTE)
    assert told(report) == [(minute, Verdict.PENDING, 0)]
    assert all(verdict.is_good for verdict in report.all_verdicts)
    of_day(lake, 3, *range(0, DAY_S, 3600))
    assert told(audited(lake, 3)) == [(minute, Verdict.LOSS, 1)]


def test_an_audit_by_a_clock_that_was_a_year_ahead_hides_nothing_that_comes_after_it(
    lake: Lake,
) -> None:
    sound_days(lake, 2)
    audited(lake, 400)
    of_day(lake, 2, *range(0, DAY_S, 3600))
    lost = 3 * DAY_S - 7200 + 60
    lake.log("new.jsonl", [buffered(600, 2.5), trace_line(lost)])
    report = audited(lake, 2)
    minute = Window(T0 + 10 * MINUTE, T0 + 11 * MINUTE)
    # Behind it: by that clock the stream had fallen silent there.
    late, silent = told(report)
    assert (late, silent[1], report.verdict) == (
        (minute, Verdict.LOSS, 1),
        Verdict.OK,
        Verdict.LOSS,
    )
    assert report.watermark == minute.start
    states = {row.message_id: row.state for row in lake.rows(FINDINGS)}
    assert states == {"m600": "open", f"m{lost}": "open"}


def test_a_stream_whose_first_audit_was_by_a_clock_ahead_is_audited_from_today_on(
    lake: Lake,
) -> None:
    for day in (2, 3):
        of_day(lake, day, *range(0, DAY_S, 3600))
    lake.log("lost.jsonl", [trace_line(2 * DAY_S + 3660)])
    lake.ingest(now=T0 + 4 * DAY)
    audited(lake, 400)
    report = audited(lake, 3)
    assert (report.verdict, [found[1:] for found in told(report)]) == (
        Verdict.OK,
        [(Verdict.LOSS, 1)],
    )
    behind = audited(lake, 2, since=2)  # by a clock that is a day late
    rows = lake.warehouse.rows(AUDITS, where=pc.scalar(True))
    assert {row["status"] for row in rows if row["as_of"] > report.as_of} == {"rejected"}
    assert behind.audit_id in {row["audit_id"] for row in rows if row["status"] == "published"}


@pytest.mark.drill
def test_the_tables_tell_what_the_run_told(lake: Lake) -> None:
    sound_days(lake, 2)
    lake.log("offline.jsonl", [buffered(600, 2.5)])
    of_day(lake, 2, *range(0, DAY_S, 3600))
    report = audited(lake, 2)
    assert len(report.late) == 1
    assert published(lake, report).late == report.late
    assert audited(lake, 2).late == report.late  # asked again, by a retry or a person

    [note] = late_lines(report.late, report.waiting, report.given_up)
    audits, now = lake.warehouse.rows(AUDITS, where=pc.scalar(True)), report.as_of
    line, _ = read_line(settings_of(lake), lake.name, audits, findings=[], now=now)
    assert (line.audit_id, note in line.notes) == (report.audit_id, True)
    assert len(trend(audits)) == 2  # the late audit is none of them
    state = PageState(stream=lake.name)
    html = stream_report(settings_of(lake), state, audit_id=report.audit_id, now=now).html
    assert note in html


def test_what_came_late_and_is_well_holds_the_watermark_no_more(lake: Lake) -> None:
    before = one_on_its_way(lake)
    assert (before.watermark, before.late[0].verdict) == (T0, Verdict.PENDING)
    of_day(lake, 3, *range(0, DAY_S, 3600))
    lake.land([landed(30, 3.05)])
    report = audited(lake, 3)
    assert told(report) == [(Window(T0, T0 + MINUTE), Verdict.OK, 0)]
    for one in (report, published(lake, report)):
        assert (one.watermark, one.watermark_reason) == (T0 + 4 * DAY, None)


@pytest.mark.drill
def test_an_audit_of_a_time_to_come_looks_at_its_window_alone(lake: Lake) -> None:
    assert len(one_on_its_way(lake).late) == 1
    assert audited(lake, 2, ahead=2 * DAY).late == ()


@pytest.mark.drill
def test_many_late_minutes_are_few_audits(lake: Lake) -> None:
    sound_days(lake, 2)
    minutes = [60 * minute for minute in range(5, 95, 10)]
    lake.log("offline.jsonl", [buffered(n, 2.5) for n in minutes])
    lake.land([landed(n, 2.5) for n in minutes[:-1]])
    of_day(lake, 2, *range(0, DAY_S, 3600))
    before, stages = len(lake.rows(AUDITS)), Stages()
    report = audited(lake, 2, progress=stages)
    # All but the last landed: one cell is not as it should be.
    assert [(verdict, missing) for _, verdict, missing in told(report)] == [(Verdict.LOSS, 1)]
    assert len(lake.rows(AUDITS)) == before + 2
    assert stages.names[-2:] == ["publish", "audit what came late"]
    assert len(stages.names) == AUDIT_STAGES - 1  # the engine runs


@pytest.mark.drill
def test_what_came_late_takes_no_more_time_than_the_window(lake: Lake) -> None:
    sound_days(lake, 8)
    days = (0, 1, 3, 4, 6)  # a minute of each: five spans for four windows, or one of days
    lake.log("offline.jsonl", [buffered(n * DAY_S + 600, 8.5) for n in days])
    of_day(lake, 8, *range(0, DAY_S, 3600))
    minutes = [Window(T0 + n * DAY + 10 * MINUTE, T0 + n * DAY + 11 * MINUTE) for n in days]
    first = audited(lake, 8)
    assert told(first) == [(minute, Verdict.LOSS, 1) for minute in minutes[:4]]
    assert first.watermark == minutes[0].start
    of_day(lake, 9, *range(0, DAY_S, 3600))
    assert told(audited(lake, 9)) == [(minutes[4], Verdict.LOSS, 1)]


@pytest.mark.drill
def test_audits_by_hand_as_of_one_time_are_each_for_themselves(lake: Lake) -> None:
    for day in range(2):
        of_day(lake, day, *range(0, DAY_S, 3600))
    lake.log("lost.jsonl", [trace_line(30)])
    now = T0 + 2 * DAY + HOUR
    lake.ingest(now=now)
    reports = [
        audit_with_late(
            lake.warehouse,
            AuditRequest(
                lake.name,
                lake.stream,
                Window(T0 + day * DAY, T0 + (day + 1) * DAY),
                now,
                Retention(7 * DAY),
            ),
            ungated(),
            now=now,
        )
        for day in range(2)
    ]
    assert [(report.verdict, report.late) for report in reports] == [
        (Verdict.LOSS, ()),
        (Verdict.OK, ()),
    ]


@pytest.mark.drill
def test_a_late_audit_that_is_rejected_is_told_and_the_report_stands(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_days(lake, 2)
    lake.log("offline.jsonl", [buffered(600, 2.5)])
    of_day(lake, 2, *range(0, DAY_S, 3600))

    def broken(*given: Any) -> list[str]:
        return ["of a test"] if given[2].late_of else broken_rules(*given)

    monkeypatch.setattr("shardaudit.audit.job.broken_rules", broken)
    report = audited(lake, 2)
    assert report.verdict is Verdict.OK
    assert [(one.status, one.verdict, one.is_red) for one in report.late] == [
        ("rejected", Verdict.INCONCLUSIVE, True)
    ]
    assert not report.is_good
    assert published(lake, report).late == report.late


@pytest.mark.drill
def test_a_lost_trace_of_a_minute_that_came_late_turns_no_night_red(lake: Lake) -> None:
    of_day(lake, 0, *range(0, DAY_S, 60))
    lake.land([sink_row(1)])  # its trace was lost: little of a day, much of a minute
    assert audited(lake, 0).verdict is Verdict.UNTRACED
    of_day(lake, 1, *range(0, DAY_S, 3600))
    audited(lake, 1)
    lake.log("offline.jsonl", [buffered(3, 2.5)])
    lake.land([landed(3, 2.5)])
    of_day(lake, 2, *range(0, DAY_S, 3600))
    report = audited(lake, 2)
    assert [one.is_red for one in report.late] == [False]
    assert report.is_good


def test_what_a_file_hid_is_found_when_it_leaves_the_sink_though_its_time_was_accepted(
    lake: Lake,
) -> None:
    of_day(lake, 0, *range(0, DAY_S, 3600))
    lake.log("hidden.jsonl", [trace_line(600)])
    before = set(lake.sink.glob("*.parquet"))
    lake.land([sink_row(600)])
    [file] = set(lake.sink.glob("*.parquet")) - before
    cut_off(file)
    kept = timedelta(days=7)
    assert audited(lake, 0, kept=kept).verdict is Verdict.INCONCLUSIVE
    said = Said(lake.name, Window(T0, T0 + DAY), (), "the disk broke", is_inconclusive=True)
    accept_time(lake.warehouse, said, by="ann", now=T0 + DAY + HOUR)
    of_day(lake, 1, *range(0, DAY_S, 3600))
    assert audited(lake, 1, kept=kept).watermark == T0 + DAY
    lake.take_out(file)
    of_day(lake, 2, *range(0, DAY_S, 3600))
    report = audited(lake, 2, kept=kept)
    assert sum(late.missing for late in report.late) == 1
    assert report.watermark == T0 + 10 * MINUTE
