"""Where nothing landed that tells how many traces places lose, no hop is sure by it."""

from collections import Counter
from datetime import timedelta

import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.route.trace_loss import FEW_TRACED
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.report.route_lines import lost_told
from shardaudit.report.summary import AuditReport
from tests.builders import NOW, T0, Line, sink_row, trace_line
from tests.spark.audit.on_routes import passed
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

ROUTE = {"router": {"after": ["producer"]}, "writer": {"after": ["router"]}}
HALF = 480  # messages, one a second; of the second half the writer lost all but so many


def lost_all(lake: Lake, *, untraced_every: int, landed: int = 0) -> None:
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows = [sink_row(2 * HALF + 120)]
    for number in range(2 * HALF):
        lines.append(trace_line(number))
        every = untraced_every if number >= HALF + landed else 100
        lines += passed(number, () if number % every == 7 % every else ("router",))
        if number < HALF + landed:
            lines += passed(number, ("writer",))
            rows.append(sink_row(number))
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()


def audited_half(lake: Lake, half: int) -> AuditReport:
    start = T0 + half * timedelta(seconds=HALF)
    window = Window(start, start + timedelta(seconds=HALF))
    as_of = NOW - (1 - half) * timedelta(minutes=1)
    request = AuditRequest(lake.name, lake.stream, window, as_of, Retention(timedelta(days=2)))
    return audit(lake.warehouse, request, ungated(), now=as_of)


def told(lake: Lake) -> Counter[str | None]:
    return Counter(lost_told(row.hops) for row in lake.rows(FINDINGS) if row.kind == "missing")


def test_no_hop_is_sure_where_the_traces_of_a_place_lack_as_its_messages_do(lake: Lake) -> None:
    """Of one minute the writer landed nothing, and the file of the router's traces never came."""
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows: list[Line] = []
    for number in range(HALF):
        is_lost = 180 <= number < 240
        at = {"acked_at": (T0 + timedelta(seconds=number + 1)).isoformat()}
        who = {"location": "router", "event": "received", "session": "s", **at}
        lines += [trace_line(number), trace_line(number, **who, session_seq=number)]
        lines = lines[:-1] if is_lost else [*lines, *passed(number, ("writer",))]
        rows += [] if is_lost else [sink_row(number)]
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()
    audited_half(lake, 0)
    where = "producer → router 50%, router → writer 50%"
    assert told(lake) == {f"inconclusive: {where}": 60}


def test_no_hop_is_sure_where_a_place_traces_nothing_any_more(lake: Lake) -> None:
    """The traces of the router end after four minutes; of a later one it loses some."""
    lake.settings = {"locations": ROUTE}
    early, late = range(10, 20), range(310, 350)  # lost before it, and behind it
    lines: list[Line] = []
    for number in range(HALF):
        places = () if number in {*early, *late} else ("writer",)
        lines += [trace_line(number), *passed(number, places)]
        lines += passed(number, ("router",)) if number < 240 and number not in early else ()
    lake.log("all.jsonl", lines)
    lake.land([sink_row(number) for number in range(HALF) if number not in {*early, *late}])
    lake.ingest()
    router, writer = audited_half(lake, 0).hops
    assert (router.lost, writer.lost) == (len(early), 0)
    assert router.doubtful == writer.doubtful == len(late)


@pytest.mark.parametrize("landed", [0, 5])
def test_no_hop_is_sure_by_traces_where_no_audit_knows_how_many_get_lost(
    lake: Lake, landed: int
) -> None:
    lost_all(lake, untraced_every=100, landed=landed)
    report = audited_half(lake, 1)
    behind = "router → writer {0}, writer → sink {0}"
    assert told(lake) == {
        f"inconclusive: producer → router 33%, {behind.format('33%')}": 5,
        f"inconclusive: {behind.format('50%')}": HALF - landed - 5,
    }
    assert [(hop.lost, hop.doubtful) for hop in report.hops] == [(0, 5), (0, HALF - landed)]


@pytest.mark.parametrize("landed", [0, 5])
@pytest.mark.parametrize("untraced_every", [2, 100])
def test_trace_losses_are_those_of_the_audit_before_where_nothing_landed(
    lake: Lake, untraced_every: int, landed: int
) -> None:
    lost_all(lake, untraced_every=untraced_every, landed=landed)
    audited_half(lake, 0)
    router, writer = audited_half(lake, 1).hops
    if untraced_every == 2:
        assert (router.lost, router.doubtful, writer.doubtful) == (HALF // 2 - landed // 2, 0, 0)
    else:
        assert (router.lost, router.doubtful, writer.doubtful) == (0, 5, 5)
    assert router.lost + writer.lost + router.doubtful == HALF - landed


@pytest.mark.parametrize("is_known", [False, True])
def test_place_says_nothing_of_what_was_sent_before_its_traces_begin(
    lake: Lake, is_known: bool
) -> None:
    lake.settings = {"locations": ROUTE}
    lake.land()
    # Of the first minutes of the later day the sink lost all.
    days, minutes = (timedelta(days=0), timedelta(days=2)), timedelta(seconds=HALF)
    for day in days:
        numbers = range(int(day.total_seconds()), int((day + minutes).total_seconds()), 5)
        begin = numbers[0] + HALF // 2 if day or not is_known else 0
        traced = [(n, ("router", "writer") if n >= begin else ("router",)) for n in numbers]
        lines = [line for n, places in traced for line in (trace_line(n), *passed(n, places))]
        lake.log(f"{day}.jsonl", lines if day or is_known else map(trace_line, numbers))
        lake.land(sink_row(n) for n in numbers if n >= begin or not day)
        now = T0 + day + timedelta(hours=2)
        lake.ingest(now=now)
        window = Window(T0 + day, T0 + day + minutes)
        kept = Retention(timedelta(days=2))
        audit(
            lake.warehouse,
            AuditRequest(lake.name, lake.stream, window, now, kept),
            ungated(),
            now=now,
        )
    assert told(lake) == {f"router → {'writer' if is_known else 'sink'}": HALF // 10}


def test_what_landed_before_a_place_traced_anything_is_no_trace_loss_of_it(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lost = {HALF + 100, HALF + 300}
    early = HALF - 1  # by its writer, which rounds times up, sent when the traces begin; lost, too
    begin = (T0 + timedelta(seconds=HALF)).isoformat()
    lines: list[Line] = [{**line, "sent_at": begin} for line in passed(early, ("writer",))]
    for number in range(2 * HALF):
        has_writer = number >= HALF and number not in lost
        places = ("router", "writer") if has_writer else ("router",)
        lines += [trace_line(number), *passed(number, places)]
    lake.log("all.jsonl", lines)
    lake.land(sink_row(number) for number in range(2 * HALF) if number not in {early, *lost})
    lake.ingest()
    window = Window(T0, T0 + timedelta(seconds=2 * HALF))
    request = AuditRequest(lake.name, lake.stream, window, NOW, Retention(timedelta(days=2)))
    report = audit(lake.warehouse, request, ungated(), now=NOW)
    router, writer = report.hops
    assert told(lake) == {"router → writer": len(lost), "writer → sink": 1}
    assert (router.doubtful, writer.lost, writer.trace_loss) == (0, len(lost), 0)
    assert (router.traces_since, writer.traces_since) == (None, T0 + timedelta(seconds=HALF))
    assert "traces of writer begin at 2026-11-20T12:08:00Z: of what" in " ".join(report.notes)


def test_trace_loss_of_a_place_that_traces_since_a_few_messages_is_unknown(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    numbers = [*range(120), *range(180, 180 + FEW_TRACED - 1)]
    lines: list[Line] = [trace_line(n) for n in numbers]
    for n in numbers:
        lines += passed(n, ("router", "writer") if n >= 180 else ("router",))
    lake.log("all.jsonl", lines)
    lake.land(map(sink_row, numbers))
    lake.ingest()
    window = Window(T0, T0 + timedelta(minutes=4))
    request = AuditRequest(lake.name, lake.stream, window, NOW, Retention(timedelta(days=2)))
    report = audit(lake.warehouse, request, ungated(), now=NOW)
    assert [hop.trace_loss for hop in report.hops] == [0, None]


def test_messages_of_a_gap_are_inconclusive_on_each_hop(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    numbers = [n for n in range(0, HALF, 10) if not 120 <= n < 180]
    times = (T0 + timedelta(seconds=120 + n / 26) for n in range(1500))
    gap = [trace_line(HALF + n, sent_at=at.isoformat()) for n, at in enumerate(times)]
    traced = [line for n in numbers for line in (trace_line(n), *passed(n, tuple(ROUTE)))]
    lake.log("all.jsonl", [*gap, *traced])
    lake.land(sink_row(n) for n in numbers)
    lake.ingest()
    report = audited_half(lake, 0)
    ways = [way for hop in report.hops for way in hop.ways]
    assert [(way.verdict, way.doubtful) for way in ways] == [(Verdict.INCONCLUSIVE, 1500)] * 3
    assert [(hop.doubtful, hop.on_hops) for hop in report.hops] == [(1500, 0)] * 2
    assert "1,500 missing messages are on no hop" in " ".join(report.notes)
