"""Where the places of a route are drawn."""

from shardaudit.page.page_route import route_graph
from shardaudit.report.summary import HopLine

BRANCHES = {"router": "producer", "eu": "router", "us": "router", "writer": "eu us"}


def test_places_stand_behind_all_that_leads_to_them() -> None:
    hops = [HopLine(n, tuple(a.split()), 1.0, 0, 0, None) for n, a in BRANCHES.items()]
    graph = route_graph(hops)
    assert graph is not None
    assert {box.name: (box.x, box.y) for box in graph.boxes} == {
        "producer": (8, 8),
        "router": (218, 8),
        "eu": (428, 8),
        "us": (428, 66),
        "writer": (638, 8),
        "sink": (848, 8),
    }
    assert (graph.width, graph.height, len(graph.ways)) == (1006, 116, 6)
    assert graph.ways[0] == (158, 29, 218, 29)
    assert route_graph([]) is None
