"""The figures for other tools, and the dashboard that reads them."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.verdict import Verdict
from shardaudit.report.figures import (
    Figures,
    audit_figures,
    budget_figures,
    unpublished_figures,
    watch_figures,
)
from tests.unit.report.reports import NOON, report

DOCS = Path(__file__).parents[3] / "docs"
BUDGET = LossBudget(
    allowed=0.01,
    month=month_of(NOON),
    as_of=NOON,
    sent=1000,
    lost=1,
    stuck=0,
    unaudited=timedelta(0),
    inconclusive=timedelta(0),
)


def shard(**fields: object) -> dict[str, object]:
    times = dict.fromkeys(("recoverable_until", "start_by", "hours_to_read"))
    return {"level": "none", "state": "ok", "observed_at": NOON, **times, **fields}


def test_an_audit_gives_its_counts_and_its_times() -> None:
    figures = audit_figures(report())
    assert (figures["published"], figures["verdict_good"], figures["verdict_rank"]) == (1, 0, 5)
    assert (figures["sent"], figures["missing"], figures["trace_coverage"]) == (1000, 3, 0.99987)
    assert figures["as_of_timestamp"] == NOON.timestamp()
    assert figures["deadline_timestamp"] == (NOON + timedelta(hours=26)).timestamp()


def test_what_is_not_there_is_no_number_of_before() -> None:
    nothing = report(verdict=Verdict.OK, trace_coverage=None, watermark=None, deadlines=())
    figures = audit_figures(nothing)
    assert (figures["deadline_timestamp"], figures["watermark_timestamp"]) == (0, 0)
    assert (figures["trace_coverage"], figures["verdict_rank"]) == (1.0, 0)
    assert unpublished_figures() == {"published": 0}
    assert set(watch_figures([]).values()) == {0}


def test_a_watch_counts_levels_and_states_and_gives_the_nearest_times() -> None:
    soon, late = NOON + timedelta(hours=1), NOON + timedelta(hours=9)
    figures = watch_figures(
        [
            shard(),
            shard(level="warn", state="stalled", start_by=late, recoverable_until=late),
            shard(level="lost", state="silent", start_by=soon, hours_to_read=4.5),
        ]
    )
    assert {name: value for name, value in figures.items() if value} == {
        "shards": 3,
        "shards_none": 1,
        "shards_warn": 1,
        "shards_lost": 1,
        "shards_stalled": 1,
        "shards_silent": 1,
        "hours_to_read": 4.5,
        "deadline_timestamp": late.timestamp(),
        "start_by_timestamp": soon.timestamp(),
        "observed_timestamp": NOON.timestamp(),
    }


def test_no_figure_is_below_zero_whatever_the_verdict() -> None:
    for verdict in Verdict:
        assert min(audit_figures(report(verdict=verdict)).values()) >= 0


def read_by_the_dashboard(group: str) -> set[str]:
    """The figures that the panels ask Prometheus for."""
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found = re.findall(
        rf'__name__=~"airflow_shardaudit_{group}_(\w+?)_\(\$stream\)"', "".join(asked)
    )
    assert "airflow_shardaudit_audit_published_(.+)" in json.dumps(dashboard["templating"])
    return set(found)


@pytest.mark.parametrize(
    ("group", "figures"),
    [
        ("audit", audit_figures(report())),
        ("watch", watch_figures([])),
        ("budget", budget_figures(BUDGET)),
    ],
)
def test_the_dashboard_reads_all_that_is_sent_and_nothing_else(
    group: str, figures: Figures
) -> None:
    counts = {"sent", "landed", "matched", "missing", "pending", "duplicated", "extra_rows"}
    sent = set(figures) | (counts | {"untraced", "moved"} if group == "audit" else set())
    assert read_by_the_dashboard(group) == sent


def test_every_figure_is_told_of_in_the_docs() -> None:
    text = (DOCS / "metrics.md").read_text()
    for name in (*audit_figures(report()), "filtered", "vanished"):
        assert f"`{name}`" in text
    for name in budget_figures(BUDGET):
        assert f"`{name}`" in text
    for name in watch_figures([]):
        assert f"`{name}`" in text or f"`…_{name.removeprefix('shards_')}`" in text
