"""What the statistics add up is what the audit counted, as a whole and at each place of a route."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.window import Window
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.store.read_deliveries import Deliveries, read_deliveries
from shardaudit.store.read_places import read_places
from tests.builders import NOW, T0, Line, sink_row, trace_line
from tests.spark.audit.nights import settings_of
from tests.spark.audit.on_routes import audited, audited_with_late, passed
from tests.spark.lake import Lake

ROUTE = {"router": {"after": ["producer"]}, "writer": {"after": ["router"]}}
SENT, FAULTS = 300, 40  # the faults are in the first minutes


def test_statistics_add_up_to_what_the_audit_said(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows: list[Line] = []
    for number in range(SENT):
        fault = number % 4 if number < FAULTS else 3
        traced = ("writer",) if number % 10 == 9 else ("router", "writer")
        lines.append(trace_line(number))
        lines += passed(number, {0: (), 1: ("router",)}.get(fault, traced))
        rows += [sink_row(number)] * {0: 0, 1: 0, 2: 2}.get(fault, 1)
    lake.log("all.jsonl", lines)
    lake.land([*rows, sink_row(SENT)])
    lake.ingest()
    report = audited(lake)
    window = Window(report.window_start, report.window_end)
    found = read_deliveries(settings_of(lake), lake.name, window)
    line = found.whole.line(lake.name, sample_rate=1)
    assert line.counts is not None
    assert line.latency is not None
    assert {n: line.counts[n] for n in report.counts if n in line.counts} == {
        n: count for n, count in report.counts.items() if n in line.counts
    }
    assert (line.counts["missing"], line.counts["duplicated"]) == (FAULTS // 2, FAULTS // 4)
    [row] = lake.rows(AUDITS)
    assert (line.latency.p50, line.latency.p99) == (row.latency_p50, row.latency_p99)
    places, unplaced = read_places(settings_of(lake), lake.name, found)
    told = {one.location: one for one in places}
    assert [(one.received, one.sent, one.lost, one.doubtful) for one in places[1:-1]] == [
        (hop.received, hop.sent, hop.lost, hop.doubtful) for hop in report.hops
    ]
    assert [told[hop.location].trace_loss for hop in report.hops] == pytest.approx(
        [hop.trace_loss for hop in report.hops], abs=0.02
    )
    doubled = sum(one.doubled or 0 for one in places)
    ends = (told["producer"].sent, told["sink"].received)
    assert (doubled, ends, unplaced) == (FAULTS // 4, (SENT, SENT - FAULTS // 2 + 1), 0)
    _check_times_and_hours(lake, found, places[1:-1])


def _check_times_and_hours(lake: Lake, found: Deliveries, places: Sequence[PlaceLine]) -> None:
    hours, _ = read_places(settings_of(lake), lake.name, found, by_hour=True)
    for one in places:
        lines = [(one.received_latency, one.received), (one.sent_latency, one.sent)]
        assert [line and line.rows for line, _ in lines] == [messages for _, messages in lines]
        assert (one.received_early, one.sent_early) == (0, 0)
        mine = [hour for hour in hours if hour.location == one.location and hour.audited_s]
        assert sum(hour.received or 0 for hour in mine) == one.received


def test_nothing_is_said_of_a_place_without_traces_nor_of_time_that_no_audit_saw(
    lake: Lake,
) -> None:
    lake.settings = {"locations": {**ROUTE, "archive": {"after": ["writer"]}}}
    lake.log("all.jsonl", [trace_line(0), trace_line(1), *passed(0, ("router", "writer"))])
    lake.land([sink_row(0)])
    lake.ingest()
    report = audited(lake)
    window = Window(report.window_start, report.window_end)
    settings = settings_of(lake)
    places, _ = read_places(settings, lake.name, read_deliveries(settings, lake.name, window))
    [silent] = [one for one in places if one.location == "archive"]
    assert (silent.received, silent.lost, silent.doubtful, silent.doubled) == (0, None, None, None)
    before = Window(window.start - (window.end - window.start), window.start)
    unknown = read_deliveries(settings, lake.name, before)
    places, unplaced = read_places(settings, lake.name, unknown)
    assert [(one.audited_s, one.received, one.lost) for one in places] == [(0, None, None)] * 5
    assert unplaced is None


def test_of_a_place_that_is_called_otherwise_now_the_time_before_is_on_no_hop_and_no_trace_loss(
    lake: Lake,
) -> None:
    lake.settings = {"locations": ROUTE}
    landed = range(20, SENT)
    lake.log("sent.jsonl", map(trace_line, range(SENT)))
    lake.log("seen.jsonl", [line for n in landed for line in passed(n, ("router", "writer"))])
    lake.land(map(sink_row, landed))
    lake.ingest()
    report = audited(lake)
    lake.settings = {"locations": {"gate": ROUTE["router"], "writer": {"after": ["gate"]}}}
    window, settings = Window(report.window_start, report.window_end), settings_of(lake)
    places, unplaced = read_places(
        settings, lake.name, read_deliveries(settings, lake.name, window)
    )
    assert ([one.lost for one in places[1:]], unplaced) == ([None, 0, 0], 20)
    later = range(SENT, SENT + 180)
    seen = [
        line for n in later for line in passed(n, ("gate", "writer") if n % 10 else ("writer",))
    ]
    lake.log("later.jsonl", [*map(trace_line, later), *seen])
    lake.land(map(sink_row, later))
    lake.ingest()
    report = audited_with_late(lake, window=window, as_of=NOW + timedelta(hours=1))
    places, _ = read_places(settings, lake.name, read_deliveries(settings, lake.name, window))
    assert (report.hops[0].traces_since, report.hops[1].traces_since) == (
        T0 + timedelta(seconds=SENT),
        None,
    )
    losses = [hop.trace_loss for hop in report.hops]
    assert [one.trace_loss for one in places[1:-1]] == losses == pytest.approx([0.1, 0])
