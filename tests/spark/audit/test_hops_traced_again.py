"""Traces that came again in a later ingest hide none that a place lost in the same minute."""

import pytest

from tests.builders import sink_row, trace_line
from tests.spark.audit.on_routes import audited, passed
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
