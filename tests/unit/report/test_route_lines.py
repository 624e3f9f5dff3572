"""What is said of a route, and how the tables keep it."""

from dataclasses import replace

from shardaudit.model.lost_hops import WayLine
from shardaudit.report.route_lines import hops_as_json, hops_from_json, route_notes
from shardaudit.report.summary import HopLine


def test_missing_messages_that_are_on_no_hop_are_told() -> None:
    ways = (WayLine("producer", "router", lost=2), WayLine("router", "sink", doubtful=1))
    hops = [HopLine("router", ("producer",), 1.0, 90, 90, 1.0, ways=ways)]
    [note] = route_notes(hops, sent=100, missing=10)
    assert "7 missing messages or more are on no hop" in note
    assert route_notes(hops, sent=100, missing=3) == ()
    assert route_notes([replace(hops[0], ways=())], sent=100, missing=10) == ()
    assert hops_from_json(hops_as_json(hops)) == tuple(hops)
