"""A drawing is as big as a screen, whatever is in the map, and covers each place once."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.rates import audit_rates
from shardaudit.model.verdict import Verdict
from shardaudit.page.page_lines import TrendPoint
from shardaudit.page.page_map import HeatMap, MapRow, letter
from shardaudit.page.page_svg import LEFT, WIDTH, curves, drawing, script_map
from shardaudit.page.page_words import NO_SHARD, UNKNOWN, Metric
from shardaudit.store.cell_grid import COUNTED, Bins, ShardGroup

START = datetime(2026, 11, 1, tzinfo=UTC)
NAMES = [*(verdict.value for verdict in Verdict), UNKNOWN, NO_SHARD]
RUN = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z")


def heat(rows: list[list[str]]) -> HeatMap:
    bins = Bins(START, timedelta(hours=1), len(rows[0]))
    zeros = {name: (0,) * len(rows[0]) for name in COUNTED}
    made = [
        MapRow(ShardGroup((f"s{i:03d}",)), tuple(row), tuple(row), zeros, (), (None,) * len(row))
        for i, row in enumerate(rows)
    ]
    return HeatMap(Metric.VERDICT, bins, tuple(made))


maps = st.integers(1, 30).flatmap(
    lambda bins: st.lists(
        st.lists(st.sampled_from(NAMES), min_size=bins, max_size=bins), min_size=1, max_size=40
    )
)


@given(maps)
def test_each_place_is_painted_once_with_its_mark(rows: list[list[str]]) -> None:
    drawn = drawing(heat(rows))
    painted: dict[tuple[int, int], str] = {}
    for mark, path in drawn.paths:
        for x, y, width, _ in RUN.findall(path):
            first = round((float(x) - LEFT) / drawn.cell_width)
            row = round((float(y) - 22) / drawn.cell_height)
            for column in range(first, first + round(float(width) / drawn.cell_width)):
                assert (row, column) not in painted
                painted[row, column] = mark
    wanted = {
        (r, c): mark for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != NO_SHARD
    }
    assert painted == wanted


def test_a_full_screen_of_noise_stays_small() -> None:
    rows = [[NAMES[(7 * r + 3 * c) % 9] for c in range(200)] for r in range(150)]
    drawn = drawing(heat(rows))
    assert sum(len(path) for _, path in drawn.paths) < 1_500_000
    assert len(drawn.labels) < 100


def test_the_rows_in_trouble_are_labelled_when_not_all_can_be() -> None:
    rows = [["ok"] * 10 for _ in range(150)]
    rows[71][3] = "stalled"
    labelled = [label.row.worst for label in drawing(heat(rows)).labels]
    assert "stalled" in labelled
    assert len(labelled) < 150


def test_times_are_written_inside_the_map() -> None:
    for bins in (1, 5, 24, 168, 200):
        ticks = drawing(heat([["ok"] * bins])).ticks
        assert ticks
        assert all(LEFT <= x <= WIDTH for x, _ in ticks)
        assert len(ticks) <= 20


def test_the_script_gets_a_letter_for_each_place() -> None:
    found = heat([["ok", UNKNOWN, NO_SHARD], ["loss", "ok", "ok"]])
    script = script_map(found, drawing(found))
    rows = script["rows"]
    assert isinstance(rows, list)
    assert [row["letters"] for row in rows] == ["·? ", "L··"]
    assert letter(UNKNOWN) in str(script["verdicts"])


def test_the_script_says_why_where_no_message_tells() -> None:
    found = heat([["inconclusive", "ok"]])
    why = "no traces where there used to be some"
    found = replace(found, rows=(replace(found.rows[0], reasons=(why, None)),))
    assert script_map(found, drawing(found))["rows"][0]["reasons"] == {0: why}  # type: ignore[index]


def test_a_single_audit_is_no_trend_and_an_audit_without_coverage_no_error() -> None:
    point = TrendPoint("a", START, "ok", 0.0, 0.0, None, {Metric.P50: None, Metric.P99: None})
    assert curves([point]) == ()
    assert {curve.last for curve in curves([point, point])} == {"0.0 per million"}


def test_the_rates_of_a_sample_are_drawn_with_their_intervals() -> None:
    counts = {"sent": 1000, "matched": 990, "missing": 3, "duplicated": 2, "untraced": 10}
    rates = audit_rates(counts, sample_rate=0.01)
    none = dict.fromkeys((Metric.P50, Metric.P99))
    point = TrendPoint("a", START, "loss", 3000.0, 2000.0, 0.99, none, rates)
    found = {curve.title: curve for curve in curves([point, point])}
    assert found["Lost"].last == "3,000.0 per million, 1,020.8 to 8,783.0"
    assert found["Lost"].points[0][2].endswith(f"{found['Lost'].last} (loss)")
    assert "to" not in found["Doubled"].last  # of rows, of which there is no sample


def test_a_change_is_marked_and_told_at_its_curve() -> None:
    none = dict.fromkeys((Metric.P50, Metric.P99))
    before = TrendPoint("a", START, "ok", 10.0, 0.0, 1.0, none)
    since = TrendPoint("b", START, "loss", 100.0, 0.0, 1.0, none, usual={"missing": 1e-5})
    found = {curve.title: curve for curve in curves([before, since])}
    assert found["Lost"].changed == (found["Lost"].points[1][2],)
    assert found["Lost"].changed[0].endswith("10.0 per million were usual before")
    assert found["Doubled"].changed == ()


def test_latency_is_drawn_of_the_audits_that_know_it() -> None:
    known, unknown = {Metric.P50: 2.0, Metric.P99: 90.0}, {Metric.P50: 4.0, Metric.P99: None}
    points = [TrendPoint("a", START, "ok", 0.0, 0.0, 1.0, both) for both in (known, unknown)]
    found = {curve.title: curve for curve in curves([*points, points[1]])}
    assert found["Latency p50"].last == "≤ 4 s"
    assert found["Latency p50"].points[0][2].endswith("UTC: ≤ 2 s")
    assert len(found["Latency p50"].points) == 3
    assert "Latency p99" not in found  # one audit is no trend
