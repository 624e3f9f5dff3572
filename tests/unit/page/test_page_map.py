"""The map: the worst verdict wins, and what nobody saw never looks well."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.verdict import Verdict
from shardaudit.page.page_html import asset
from shardaudit.page.page_map import (
    HeatMap,
    empty_bins,
    heat_map,
    latency_seconds,
    worst_of,
)
from shardaudit.page.page_words import (
    LETTERS,
    LEVEL_NAMES,
    LEVELS,
    MEANINGS,
    NO_SHARD,
    UNKNOWN,
    Metric,
)
from shardaudit.store.cell_grid import COUNTED, Bins, CellGrid, ShardGroup, quantile

BINS = Bins(datetime(2026, 11, 1, tzinfo=UTC), timedelta(hours=1), 3)


def grid(*rows: Sequence[Verdict | None], **counts: list[list[int]]) -> CellGrid:
    zeros = [[0, 0, 0] for _ in rows]
    groups = tuple(ShardGroup((f"s{i}",)) for i in range(len(rows)))
    none: list[list[str | None]] = [[None] * 3 for _ in rows]
    return CellGrid(groups, rows, {name: counts.get(name, zeros) for name in COUNTED}, none)


def shown(
    *rows: Sequence[Verdict | None], unseen: frozenset[int] = frozenset(), **more: object
) -> HeatMap:
    metric = more.pop("metric", Metric.VERDICT)
    assert isinstance(metric, Metric)
    return heat_map(grid(*rows, **more), BINS, unseen=unseen, metric=metric)  # type: ignore[arg-type]  # counts


def test_a_place_without_a_cell_is_no_shard_where_others_lived() -> None:
    found = shown([Verdict.OK, Verdict.OK, Verdict.OK], [None, None, Verdict.OK])
    assert found.rows[1].verdicts == (NO_SHARD, NO_SHARD, "ok")


def test_a_bin_without_any_cell_is_unknown_though_an_audit_claims_it() -> None:
    cells = grid([Verdict.OK, None, None], [Verdict.OK, None, Verdict.OK])
    assert empty_bins(cells, BINS) == {1}
    found = heat_map(cells, BINS, unseen=empty_bins(cells, BINS), metric=Metric.VERDICT)
    assert [row.verdicts[1] for row in found.rows] == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_bin_seen_in_part_is_unknown_unless_what_was_seen_is_bad(verdict: Verdict) -> None:
    found = shown([verdict, Verdict.OK, Verdict.OK], unseen=frozenset({0})).rows[0].verdicts[0]
    is_known_to_be_bad = verdict.value in {"silent", "stalled", "mixed", "loss", "duplication"}
    assert found == (verdict.value if is_known_to_be_bad else UNKNOWN)


def test_no_rate_and_no_latency_makes_an_unseen_bin_look_well() -> None:
    for metric in Metric:
        row = shown([Verdict.OK, Verdict.OK, Verdict.OK], unseen=frozenset({1}), metric=metric)
        assert row.rows[0].marks[1] == UNKNOWN


def test_the_loss_level_grows_with_the_share() -> None:
    row = shown(
        [Verdict.OK, Verdict.LOSS, Verdict.LOSS],
        metric=Metric.LOSS,
        sent=[[100, 10_000, 100]],
        missing=[[0, 1, 100]],
    ).rows[0]
    assert row.marks == ("level-0", "level-1", "level-5")


def test_latency_is_unknown_where_a_shard_sent_and_nothing_landed() -> None:
    found = heat_map(
        grid([Verdict.OK, Verdict.SILENT, Verdict.OK]),
        BINS,
        unseen=frozenset(),
        metric=Metric.P99,
        seconds=latency_seconds([[[0, 98, 2], None, None]], Metric.P99),
    )
    assert found.rows[0].marks == ("level-0", UNKNOWN, NO_SHARD)
    assert found.rows[0].seconds == (4.0, None, None)


def test_skew_is_what_a_watch_saw_and_unknown_only_where_none_looked() -> None:
    found = heat_map(
        grid([Verdict.OK, Verdict.OK, Verdict.OK], [None, None, Verdict.OK]),
        BINS,
        unseen=frozenset({0}),
        metric=Metric.SKEW,
        seconds=[[0.0, 61.0, None], [None, 90_000.0, None]],
    )
    assert [row.marks for row in found.rows] == [
        ("level-0", "level-1", UNKNOWN),
        (NO_SHARD, "level-5", UNKNOWN),
    ]
    assert found.rows[0].seconds == (0.0, 61.0, None)


def test_every_metric_but_the_verdict_has_levels_with_names() -> None:
    assert set(LEVELS) == set(LEVEL_NAMES) == set(Metric) - {Metric.VERDICT}
    for metric, ends in LEVELS.items():
        assert len(LEVEL_NAMES[metric]) == len(ends) + 1
        assert list(ends) == sorted(ends)


def test_a_map_without_rows_is_unknown() -> None:
    assert shown().worst == UNKNOWN


@pytest.mark.parametrize(
    ("names", "worst"),
    [
        ([], NO_SHARD),
        (["ok", "pending"], "pending"),
        (["ok", UNKNOWN], UNKNOWN),
        ([UNKNOWN, "untraced"], UNKNOWN),
        ([UNKNOWN, "loss", "stalled"], "stalled"),
    ],
)
def test_the_worst_of_names(names: list[str], worst: str) -> None:
    assert worst_of(names) == worst


def test_quantiles_are_upper_ends_of_the_ledgers_bins() -> None:
    assert quantile([0, 98, 0, 2], 0.5) == 2.0
    assert quantile([0, 98, 0, 2], 0.99) == 8.0
    assert quantile([0, 0], 0.5) is None


def test_every_verdict_has_a_letter_of_its_own_and_a_meaning() -> None:
    assert set(LETTERS) == set(Verdict)
    assert len(set(LETTERS.values())) == len(Verdict)
    assert set(MEANINGS) == {verdict.value for verdict in Verdict} | {UNKNOWN}


@pytest.mark.parametrize("name", MEANINGS)
def test_what_has_a_meaning_has_a_colour_wherever_it_is_shown(name: str) -> None:
    css = asset("page.css")
    assert f".mark-{name} {{" in css
    assert f".fill-{name} {{" in css
