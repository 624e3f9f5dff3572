"""What a map says of places: the hop's faults by time, and nothing well of what nobody knows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.model.verdict import Verdict
from shardaudit.page.page_places import marked_runs, place_map
from shardaudit.page.page_svg import LEFT, drawing
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.store.cell_grid import COUNTED, Bins, CellGrid, ShardGroup
from shardaudit.store.read_places import PlaceGrid

WELL = PlaceLine("router", (), received=90, sent=89, lost=0, doubtful=0, doubled=0)
# by bin: what is known of the place, missing messages, those that findings name, what is shown
TABLE = (
    (WELL, 0, 0, "ok", None),
    (replace(WELL, lost=2), 2, 2, "loss", "2 lost before it"),
    (replace(WELL, doubled=3), 0, 0, "duplication", "3 doubled after it"),
    (replace(WELL, lost=2, doubled=3), 2, 2, "mixed", "2 lost before it, 3 doubled after it"),
    (replace(WELL, doubtful=4), 4, 4, "inconclusive", "4 may be lost before it"),
    # A gap's messages are looked up at no place.
    (WELL, 1200, 200, "inconclusive", "1,000 missing of no known hop"),
    (replace(WELL, lost=1), 1200, 200, "loss", "1 lost before it, 1,000 missing of no known hop"),
    (replace(WELL, received=0, sent=0), 0, 0, "unknown", "it traced nothing of this time"),
    # They came back since, and nothing audited this time again.
    (WELL, 2, 5, "ok", None),
    (WELL, 0, 0, "unknown", "no published audit looked at all of this time"),
    (replace(WELL, lost=2), 0, 2, "loss", "2 lost before it"),
    (replace(WELL, received=0, sent=0, left_out=3), 0, 0, "ok", None),
)
UNSEEN = frozenset({9, 10})
BINS = Bins(datetime(2026, 11, 1, tzinfo=UTC), timedelta(hours=1), len(TABLE))


def test_a_place_is_as_bad_as_what_is_known_of_its_hops() -> None:
    counts: dict[str, Sequence[Sequence[int]]] = {n: [[100] * BINS.count] for n in COUNTED}
    counts["missing"] = [[row[1] for row in TABLE]]
    worst = [[Verdict.OK] * BINS.count]
    cells = CellGrid((ShardGroup(("s0",)),), worst, counts, [[None] * BINS.count])
    grid = PlaceGrid({"router": [row[0] for row in TABLE]}, [row[2] for row in TABLE])
    found = place_map(grid, cells, BINS, unseen=UNSEEN)
    [row] = found.rows
    assert row.label == "router"
    assert list(row.verdicts) == list(row.marks) == [shown for *_, shown, _ in TABLE]
    for hour, (reason, (*_, shown, words)) in enumerate(zip(row.reasons, TABLE, strict=True)):
        traced = "" if shown == "unknown" else "; 90 received, 89 sent on"
        assert reason == (words and f"router, 2026-11-01 {hour:02}:00 UTC: {words}{traced}")
    runs = marked_runs(found, drawing(found))
    assert [words for *_, words in runs] == [one for one in row.reasons if one]
    assert runs[0][0] == LEFT + drawing(found).cell_width


def test_where_nothing_was_sent_a_place_without_traces_is_well() -> None:
    silent = replace(WELL, received=0, sent=0)
    bins = Bins(BINS.start, BINS.width, 1)
    cells = CellGrid((), [], {name: [[0]] for name in COUNTED}, [])
    found = place_map(PlaceGrid({"router": [silent]}, [0]), cells, bins, unseen=frozenset())
    assert found.rows[0].verdicts == ("ok",)
