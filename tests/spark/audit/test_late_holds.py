"""Minutes before the window that hold the watermark, and that an audit can settle by now."""

import os
from dataclasses import replace

import pyarrow.compute as pc
import pytest

from shardaudit.model.errors import InvariantError
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.report.summary import GivenUp
from shardaudit.store.published import published_audit
from tests.builders import T0, cut_off, sequence, sink_row, trace_line
from tests.spark.audit.nights import (
    DAY,
    DAY_S,
    HOUR,
    MINUTE,
    audited,
    buffered,
    of_day,
    published,
    settings_of,
    sound_days,
    told,
)
from tests.spark.audit.on_routes import sighting
from tests.spark.lake import Lake

HOURLY = range(0, DAY_S, 3600)
PASSED = ("received", "sent")


def test_a_night_that_was_left_out_is_made_up_for(lake: Lake) -> None:
    sound_days(lake, 1)
    for day in (1, 2):
        of_day(lake, day, *HOURLY)
    lake.log("lost.jsonl", [trace_line(DAY_S + 600)])
    report = audited(lake, 2, kept=7 * DAY)
    assert told(report) == [(Window(T0 + DAY, T0 + 2 * DAY), Verdict.LOSS, 1)]
    assert report.watermark == T0 + DAY + 10 * MINUTE
    assert "missing" in str(report.watermark_reason)


@pytest.mark.parametrize("mistyped", [[], pytest.param([-400], marks=pytest.mark.drill)])
def test_a_first_night_that_was_rejected_is_made_up_for(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, mistyped: list[int]
) -> None:
    for day in (0, 1):
        of_day(lake, day, *HOURLY)
    lake.log("lost.jsonl", [trace_line(600)])
    lake.ingest(now=T0 + 2 * DAY)
    with monkeypatch.context() as night:
        night.setattr("shardaudit.audit.job.broken_rules", lambda *_: ["of a test"])
        for day in (*mistyped, 0):
            with pytest.raises(InvariantError):
                audited(lake, day, kept=7 * DAY)
    report = audited(lake, 1, kept=7 * DAY)
    # Nobody comes to the mistyped one: before the day of the first message there is nothing.
    first = T0 - 12 * HOUR if mistyped else T0
    assert told(report) == [(Window(first, first + DAY), Verdict.LOSS, 1)]
    assert report.given_up == ()
    assert report.watermark == T0 + 10 * MINUTE


def test_what_a_place_alone_saw_before_the_first_message_is_looked_at(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its producer's traces are lost, and nothing of it landed."""
    lake.settings = {"locations": {"router": {"after": ["producer"]}}}
    of_day(lake, 1, *HOURLY)
    lines = [sighting(n, "router", event) for n in range(600, 630) for event in PASSED]
    lake.log("seen.jsonl", [{**line, "acked_at": line["sent_at"]} for line in lines])
    with monkeypatch.context() as night:
        night.setattr("shardaudit.audit.job.broken_rules", lambda *_: ["of a test"])
        with pytest.raises(InvariantError):
            audited(lake, 0, kept=7 * DAY)
    report = audited(lake, 1, kept=7 * DAY)
    assert told(report) == [(Window(T0, T0 + DAY), Verdict.INCONCLUSIVE, 0)]
    assert report.watermark == T0 + 10 * MINUTE


def test_what_a_consumer_was_set_past_is_lost_and_no_longer_stuck(lake: Lake) -> None:
    """It stood for half a day, and goes on with what is sent by then; nothing comes of the rest."""
    stood = range(DAY_S // 2, DAY_S, 3600)
    lake.log("day-0.jsonl", map(trace_line, HOURLY))
    at = {"sent_at": (T0 + 13 * HOUR).isoformat(), "sequence_number": sequence(stood[1])}
    lake.log("gap.jsonl", [trace_line(n, **at) for n in range(DAY_S, DAY_S + 1_000)])
    lake.land(map(sink_row, HOURLY[:12]))
    assert audited(lake, 0, kept=14 * DAY).verdict is Verdict.STALLED
    rows = lake.warehouse.rows(FINDINGS, where=pc.field("stream") == lake.name)
    assert {row["cause"] for row in rows} == {"stuck"}
    said = [row | {"state": "accepted"} for row in rows if row["message_id"] == f"m{stood[0]}"]
    lake.warehouse.upsert(said, FINDINGS)

    of_day(lake, 1, *range(3600, DAY_S, 3600))
    report = audited(lake, 1, kept=14 * DAY)
    assert {verdict for _, verdict, _ in told(report)} == {Verdict.LOSS}
    assert sum(missing for *_, missing in told(report)) == len(stood) + 1_000
    for table in (FINDINGS, GAPS):
        found = lake.warehouse.rows(table, where=pc.field("stream") == lake.name)
        assert {(row["cause"], row["state"]) for row in found} == {("lost", "open")}
    again = audited(lake, 1, kept=14 * DAY)
    assert (again.late, report.watermark) == (report.late, T0 + DAY // 2)


@pytest.mark.drill
def test_of_what_was_never_audited_no_more_is_made_up_for_than_an_audit_looks_at(
    lake: Lake,
) -> None:
    sound_days(lake, 1)  # by hand, long ago
    for day in (1, 3, 5):
        of_day(lake, day, *HOURLY)
    report = audited(lake, 5)  # the stream keeps a day, an audit looks at two
    assert told(report) == [(Window(T0 + 3 * DAY, T0 + 4 * DAY), Verdict.OK, 0)]
    assert report.watermark == T0 + DAY
    lost = GivenUp(T0 + DAY, T0 + 2 * DAY, report.as_of, is_red=True)
    assert (published(lake, report).given_up, report.is_good) == ((lost,), False)
    of_day(lake, 6, *HOURLY)
    [still, more] = audited(lake, 6).given_up
    assert (still, more.is_red) == (replace(lost, is_red=False), True)
    assert (more.window_start, more.window_end) == (T0 + 2 * DAY, T0 + 3 * DAY)


@pytest.mark.drill
def test_minutes_of_a_broken_file_are_looked_at_once_it_is_whole(lake: Lake) -> None:
    minutes = range(0, 1200, 60)
    of_day(lake, 0, *HOURLY[1:])
    traces = [trace_line(n) for n in minutes]
    lake.land([sink_row(n) for n in minutes])
    path = cut_off(lake.log("broken.jsonl.gz", traces))
    written = (T0 + 20 * MINUTE).timestamp()
    os.utime(path, (written, written))
    assert audited(lake, 0).verdict is Verdict.INCONCLUSIVE
    of_day(lake, 1, *HOURLY)
    broken = audited(lake, 1)
    assert (broken.late, broken.verdict, broken.watermark) == ((), Verdict.OK, T0)

    lake.log("broken.jsonl.gz", traces)
    of_day(lake, 2, *HOURLY)
    report = audited(lake, 2)
    [(window, verdict, missing)] = told(report)
    assert (verdict, missing) == (Verdict.OK, 0)
    assert window.covers(T0)
    assert report.watermark == T0 + 3 * DAY


@pytest.mark.drill
def test_losses_that_came_late_are_tolerated_as_those_of_their_day(lake: Lake) -> None:
    lake.settings["tolerance"] = 0.02
    for day in range(2):
        of_day(lake, day, *range(0, DAY_S, 1200))  # 72: one is tolerated, with those that come
        audited(lake, day)
    for day, verdict in ((2, Verdict.OK), (3, Verdict.LOSS)):
        lost = 60 * day
        lake.log(f"late-{day}.jsonl", [buffered(lost, day + 0.5)])
        of_day(lake, day, *HOURLY)
        report = audited(lake, day)
        minute = Window(T0 + day * MINUTE, T0 + (day + 1) * MINUTE)
        assert told(report) == [(minute, verdict, 1)]
        stored = published_audit(settings_of(lake), lake.name, report.late[0].audit_id)
        assert [line.verdict for line in stored.worst_shards] == [Verdict.LOSS] * (day - 2)
        assert report.is_good is (verdict is Verdict.OK)


def test_minutes_whose_traces_came_are_looked_at_again(lake: Lake) -> None:
    minutes = range(0, 1200, 60)
    of_day(lake, 0, *HOURLY[1:])
    lake.land([sink_row(n) for n in minutes])
    thin = audited(lake, 0)
    assert (thin.verdict, thin.watermark) == (Verdict.INCONCLUSIVE, T0)
    of_day(lake, 1, *HOURLY)
    assert audited(lake, 1).late == ()

    lake.log("came.jsonl", [trace_line(n) for n in minutes])
    of_day(lake, 2, *HOURLY)
    report = audited(lake, 2)
    assert told(report) == [(Window(T0, T0 + 20 * MINUTE), Verdict.OK, 0)]
    assert (report.watermark, report.watermark_reason) == (T0 + 3 * DAY, None)


@pytest.mark.drill
def test_a_silence_that_was_told_is_looked_at_again_when_its_messages_come(lake: Lake) -> None:
    lost, night = range(10 * 3600, 20 * 3600, 3600), 8 * DAY_S
    for day in range(8):
        of_day(lake, day, *HOURLY)
    of_day(lake, 8, *(n for n in HOURLY if n not in lost))
    silent = audited(lake, 8, since=0)
    begin = T0 + 8 * DAY + 10 * HOUR
    assert (silent.verdict, silent.watermark) == (Verdict.INCONCLUSIVE, begin)
    lake.log("came.jsonl", [trace_line(night + n) for n in lost])
    lake.land([sink_row(night + n) for n in lost])
    of_day(lake, 9, *HOURLY)
    report = audited(lake, 9)
    assert told(report) == [(Window(begin, begin + 10 * HOUR), Verdict.OK, 0)]
    assert (report.watermark, report.watermark_reason) == (T0 + 10 * DAY, None)


def test_late_loss_is_tolerated_as_a_share_of_what_filters_left_of_its_day(lake: Lake) -> None:
    lake.settings["tolerance"] = 0.02
    lake.settings["locations"] = {"valid": {"after": ["producer"], "share": "traced"}}
    left_out = [n for n in range(0, DAY_S, 1200) if n % 3600]  # 48 of 72
    lake.log("sent.jsonl", map(trace_line, left_out))
    lake.log("left_out.jsonl", [sighting(n, "valid", "left_out") for n in left_out])
    of_day(lake, 0, *HOURLY)
    assert audited(lake, 0).verdict is Verdict.OK
    lake.log("late.jsonl", [buffered(60, 1.5)])
    of_day(lake, 1, *HOURLY)
    # One of 25, not of 73.
    assert told(audited(lake, 1)) == [(Window(T0 + MINUTE, T0 + 2 * MINUTE), Verdict.LOSS, 1)]
