"""Messages that a place traced, and whose producer's traces are lost, do not get lost unseen."""

from datetime import datetime, timedelta

import pytest

from shardaudit.model.tables.audit_tables import CELLS
from shardaudit.model.verdict import Verdict
from shardaudit.model.watermark import WHY, Held
from shardaudit.model.window import Window
from shardaudit.store.published import published_audit
from tests.builders import T0, Line, sink_row, trace_line
from tests.spark.audit.nights import settings_of
from tests.spark.audit.on_routes import audited, passed
from tests.spark.lake import Lake

ROUTE = {"router": {"after": ["producer"]}, "writer": {"after": ["router"]}}
SENT, KILLED = 480, range(240, 270)


def sent_at_of(number: int) -> datetime:
    """Of those that were sent again, the second time."""
    return T0 + timedelta(seconds=number + 120 * (number in KILLED))


@pytest.mark.parametrize("is_lost", [True, False])
def test_messages_of_a_killed_producer_that_a_place_saw_and_that_did_not_land_are_told(
    lake: Lake, *, is_lost: bool
) -> None:
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows: list[Line] = []
    for number in range(SENT):
        is_untraced = number in KILLED
        lines += [] if is_untraced else [trace_line(number)]
        if is_untraced and is_lost:
            lines += passed(number, ("router",))
            continue
        lines += passed(number, ("router", "writer") if number != 419 else ("router",))
        rows.append(sink_row(number))
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()
    # A place that rounds a time puts it into the next minute.
    late = {"sent_at": (T0 + timedelta(seconds=420)).isoformat(), "sequence_number": "1"}
    lake.log("rounded.jsonl", [trace_line(419, location="writer", event="sent", **late)])
    again = [line for number in range(60) for line in passed(number, ("router",), copies=2)]
    lake.log("again.jsonl", again)  # a batch that came again
    lake.ingest()
    report = audited(lake)
    assert report.verdict is Verdict.INCONCLUSIVE
    cells = [row for row in lake.rows(CELLS) if row.verdict == report.verdict]
    assert {row.reason for row in cells} == {WHY[Held.UNSENT if is_lost else Held.THIN]}
    minute = T0 + timedelta(seconds=KILLED[0])
    assert {row.bucket_start for row in cells} == {minute.replace(tzinfo=None)}
    assert report.watermark == minute
    assert [hop.unsent for hop in report.hops] == [len(KILLED) if is_lost else 0, 0]
    published = published_audit(settings_of(lake), lake.name, report.audit_id)
    told = f"{len(KILLED)} messages or more that router traced did not land"
    for notes in (report.notes, published.notes):
        assert [told in note for note in notes if "no producer traced" in note] == [True] * is_lost


def test_an_audit_without_a_minute_beside_does_not_let_the_hold_go(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lake.log("lost.jsonl", [line for n in KILLED for line in passed(n, ("router",))])
    sound = [number for number in range(SENT) if number not in KILLED]
    lines = [line for n in sound for line in (trace_line(n), *passed(n, ("router", "writer")))]
    lake.log("all.jsonl", lines)
    lake.land([sink_row(number) for number in sound])
    lake.ingest()
    minute = T0 + timedelta(seconds=KILLED[0])
    assert audited(lake).watermark == minute
    assert audited(lake, window=Window(minute, minute + lake.stream.bucket)).watermark == minute


def test_a_retry_that_is_stamped_anew_is_no_message_that_nobody_traced(lake: Lake) -> None:
    """Its first attempt timed out, and came: the place has both, the producer traced the second."""
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    for number in range(SENT):
        anew: Line = {"sent_at": sent_at_of(number).isoformat()}
        lines += [trace_line(number, **anew), *passed(number, ("router", "writer"))]
        lines += [{**line, **anew} for line in passed(number, ("router",)) if number in KILLED]
    lake.log("all.jsonl", lines)
    landed = [sink_row(number) for number in range(SENT)]
    lake.land([row | {"sent_at": sent_at_of(n)} for n, row in enumerate(landed)])
    lake.ingest()
    assert [hop.unsent for hop in audited(lake).hops] == [0, 0]
