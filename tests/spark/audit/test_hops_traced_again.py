"""Traces of a place that come in a later ingest: again, or late."""

from datetime import timedelta

import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.window import Window
from shardaudit.report.route_lines import lost_told
from tests.builders import T0, Line, sequence, sink_row, trace_line
from tests.spark.audit.on_routes import EACH, audited, audited_with_late, passed, told
from tests.spark.lake import Lake

ROUTE = {"router": {"after": ["producer"]}, "writer": {"after": ["router"]}}
SENT, DARK, LOST = 480, range(240, 270), 245  # the router's traces of half a minute are lost


def test_hop_is_inconclusive_where_as_many_traces_as_a_place_lost_came_twice(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lake.log("sent.jsonl", map(trace_line, range(SENT)))
    traced = [number for number in range(SENT) if number not in DARK]
    lake.log("router.jsonl", [line for number in traced for line in passed(number, ("router",))])
    landed = [number for number in range(SENT) if number not in {LOST, 10}]
    lake.log("writer.jsonl", [line for number in landed for line in passed(number, ("writer",))])
    lake.land(map(sink_row, landed))
    lake.ingest()
    again = [line for number in range(270, 300) for line in passed(number, ("router",), copies=2)]
    lake.log("again.jsonl", again)
    lake.ingest()
    router, writer = audited(lake).hops
    assert (router.lost, router.doubtful, writer.lost) == (0, 1, 1)
    assert router.trace_loss == pytest.approx((len(DARK) - 1) / len(landed))


def test_hop_is_told_anew_where_traces_of_a_place_come_after_the_audit(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lake.log("sent.jsonl", map(trace_line, range(SENT)))
    by_time = {n: list(passed(n, ("router",))) for n in range(SENT)}
    lake.log("router.jsonl", [line for n in {*by_time} - {*DARK} for line in by_time[n]])
    landed = [number for number in range(SENT) if number != LOST]
    lake.log("writer.jsonl", [line for number in landed for line in passed(number, ("writer",))])
    lake.land(map(sink_row, landed))
    lake.ingest()
    audited_with_late(lake)
    [before] = lake.rows(FINDINGS)
    lake.log("late.jsonl", [line for n in DARK for line in by_time[n]])
    end = T0 + timedelta(days=1)
    lake.ingest(now=end)
    # Behind the window that is looked at each night.
    window = Window(T0 + timedelta(hours=4), end)
    later = audited_with_late(lake, window=window, as_of=end + timedelta(hours=1))
    [after] = lake.rows(FINDINGS)
    assert (before.location, lost_told(after.hops)) == (None, "router → writer")
    assert [one.missing for one in later.late] == [1]


def test_retry_that_is_stamped_anew_is_looked_for_at_each_of_its_times(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    way, hour, anew = ("router", "writer"), timedelta(hours=1), range(10_000, 10_000 + 2 * EACH)
    lines: list[Line] = []
    rows = [sink_row(number) for number in range(0, 7200, 20)]
    for number in range(0, 7200, 20):
        lines += [trace_line(number), *passed(number, way)]
    for number in anew:
        is_lost = number % 2 == 0  # before the router, then before the writer
        for attempt in range(2):
            sent_at = T0 + timedelta(seconds=number - anew[0]) + attempt * hour
            number_on_shard = {"sequence_number": sequence(int((sent_at - T0).total_seconds()))}
            stamp = {"sent_at": sent_at.isoformat(), **number_on_shard}
            lines += [trace_line(number, **stamp)]
            for line in passed(number, way[:attempt] if is_lost else way):
                lines.append({**line, **stamp, "session": f"{line['session']} {attempt}"})
            if not is_lost:
                rows.append(sink_row(number, sent_at=sent_at, landed_at=sent_at, **number_on_shard))
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest(now=T0 + 4 * hour)
    audited(lake, window=Window(T0, T0 + 2 * hour))
    assert told(lake) == {("missing", "writer"): EACH, ("duplicated", "producer"): EACH}
