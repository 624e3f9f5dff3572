"""What landed after the audits' window had left it behind."""

from datetime import timedelta

import pyarrow.compute as pc

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.window import Window
from tests.builders import T0, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def audited(lake: Lake, day: int) -> None:
    """The night after so many days looks at the day before it, the clock an hour on."""
    start = T0 + day * DAY
    as_of = start + DAY + timedelta(hours=1)
    lake.ingest(now=as_of)
    request = AuditRequest(
        lake.name, lake.stream, Window(start, start + DAY), as_of, Retention(7 * DAY)
    )
    audit(lake.warehouse, request, ungated(), now=as_of)


def states(lake: Lake) -> dict[str, str]:
    rows = lake.warehouse.rows(FINDINGS, where=pc.field("kind") == "missing")
    return {row["message_id"]: row["state"] for row in rows}


def test_a_message_that_landed_late_is_no_loss_though_no_window_looks_at_it(lake: Lake) -> None:
    lake.log("a.jsonl", [*map(trace_line, range(6)), *map(trace_line, range(60, 66))])
    lake.land([sink_row(number) for number in (0, 1, 2, 3, 60, 61, 62, 63)])
    audited(lake, 0)
    assert states(lake) == dict.fromkeys(("m4", "m5", "m64", "m65"), "open")

    lake.log("b.jsonl", [trace_line(90_000)])
    lake.land([sink_row(90_000), sink_row(4), sink_row(5), sink_row(64)])
    audited(lake, 1)
    # Of the second minute one is missing still: which one no sum tells.
    assert states(lake) == {
        **dict.fromkeys(("m4", "m5"), "false_alarm"),
        **dict.fromkeys(("m64", "m65"), "open"),
    }
    last = [row for row in lake.rows(TRANSITIONS) if row.to_state == "false_alarm"]
    assert [row.reason for row in last] == ["it arrived later"] * 2

    audited(lake, 1)
    assert len(lake.rows(TRANSITIONS)) == 6


def test_a_loss_beside_a_double_is_not_closed(lake: Lake) -> None:
    lake.log("a.jsonl", map(trace_line, range(6)))
    lake.land([sink_row(number) for number in range(5)])
    audited(lake, 0)
    assert states(lake) == {"m5": "open"}
    lake.land([sink_row(4)])
    lake.log("b.jsonl", [trace_line(90_000)])
    lake.land([sink_row(90_000)])
    audited(lake, 1)
    assert states(lake) == {"m5": "open"}
