"""A message on its way beside them makes no hop sure on which messages were lost."""

from datetime import timedelta

import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from tests.builders import NOW, T0, Line, shard, sink_row, trace_line
from tests.spark.audit.on_routes import audited, passed
from tests.spark.lake import Lake

ROUTE = {"router": {"after": ["producer"]}, "writer": {"after": ["router"]}}
SENT, DARK_FROM = 480, 240  # the router's later traces are lost


@pytest.mark.parametrize("pending_from", [0, DARK_FROM])
def test_hop_is_inconclusive_where_all_traces_of_a_place_got_lost_and_a_message_is_pending(
    lake: Lake, pending_from: int
) -> None:
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows: list[Line] = []
    for number in range(SENT):
        lines.append(trace_line(number))
        traced = ("router",) if number < DARK_FROM else ()
        if number % 60 == 5:  # lost on the way to the writer
            lines += passed(number, traced)
        else:
            lines += passed(number, (*traced, "writer"))
            rows.append(sink_row(number))
    # Another shard whose consumer moves, and is behind in each minute.
    behind = {"shard_id": shard(1)}
    starts = [T0 + timedelta(seconds=at) for at in range(pending_from, SENT, 60)]
    lines.append(trace_line(1000, **behind, sent_at=T0.isoformat()))
    lines += [
        trace_line(1001 + at, **behind, sent_at=start.isoformat())
        for at, start in enumerate(starts)
    ]
    rows.append(sink_row(1000, **behind, sent_at=T0, landed_at=NOW - timedelta(minutes=1)))
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()
    report = audited(lake)
    assert report.counts["pending"] == len(starts)
    found = {int(row.message_id[1:]): row.location for row in lake.rows(FINDINGS)}
    assert found == {
        number: "writer" if number < DARK_FROM else None for number in range(5, SENT, 60)
    }
    router, writer = report.hops
    assert (router.lost, writer.lost, router.doubtful) == (0, 4, 4)
