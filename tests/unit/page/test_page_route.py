"""Where the places of a route are drawn, and what is said on the ways between them."""

from dataclasses import replace

from shardaudit.model.route.lost_hops import HopLine
from shardaudit.page.page_route import RouteGraph, RouteWay, route_graph, way_words
from shardaudit.report.summary import AuditedPlace

BRANCHES = {"router": "producer", "eu": "router", "us": "router", "writer": "eu us"}
HOPS = [AuditedPlace(n, tuple(a.split()), 1.0, 0, 0) for n, a in BRANCHES.items()]


def graph_of(hops: list[AuditedPlace]) -> RouteGraph:
    graph = route_graph(hops)
    assert graph is not None
    return graph


def by_ends(graph: RouteGraph) -> dict[str, RouteWay]:
    return {f"{way.line.after} {way.line.before}": way for way in graph.ways if way.line}


def test_places_stand_behind_all_that_leads_to_them() -> None:
    graph = graph_of(HOPS)
    assert {box.name: (box.x, box.y) for box in graph.boxes} == {
        "producer": (8, 8),
        "router": (308, 8),
        "eu": (608, 8),
        "us": (608, 112),
        "writer": (908, 8),
        "sink": (1208, 8),
    }
    assert (graph.width, graph.height, len(graph.ways)) == (1366, 162, 6)
    assert graph.ways[0].ends == (158, 29, 308, 29)
    assert graph.ways[0].label == (233, 29)
    assert route_graph([]) is None


def test_numbers_of_a_long_way_stand_in_its_last_gap() -> None:
    round_it = replace(HOPS[3], after=("router", "eu", "us"))
    graph = graph_of([*HOPS[:3], round_it])
    [long] = [way for way in graph.ways if way.ends[2] - way.ends[0] > 300]
    assert long.label == (833, 29)


def test_way_has_the_look_and_the_numbers_of_what_happened_on_it() -> None:
    writer = replace(
        HOPS[3],
        trace_loss=0.0015,
        ways=(
            HopLine("eu", "writer", lost=1200, doubtful=3, doubled=2),
            HopLine("us", "writer", doubtful=3),
            HopLine("writer", "sink"),
        ),
    )
    graph = graph_of([*HOPS[:3], writer])
    ways = by_ends(graph)
    assert {name: way.mark for name, way in ways.items()} == {
        "eu writer": "mixed",
        "us writer": "inconclusive",
        "writer sink": "ok",
    }
    assert way_words(ways["eu writer"]) == (
        "M 1,200 lost, 3 perhaps",
        "2 doubled",
        "0.15% of traces lost",
    )
    assert way_words(ways["writer sink"]) == ("· 0 lost", "0 doubled")


def test_way_is_unknown_when_its_audit_is_from_before_ways_were_counted() -> None:
    [first, *_] = graph_of(HOPS).ways
    assert (first.mark, way_words(first)) == ("unknown", ())
