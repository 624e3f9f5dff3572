"""What the page of a stream and its report show; without Airflow.

`page_reading.py` reads the numbers, `page_lines.py` says what they mean.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.page.page_lines import ShardDue, due_shards, place_trends, trend
from shardaudit.page.page_places import marked_runs
from shardaudit.page.page_reading import Shown, read_line, read_map
from shardaudit.page.page_route import route_graph
from shardaudit.page.page_state import PageState
from shardaudit.page.page_svg import curves, drawing, place_curves, script_map
from shardaudit.page.page_words import METRICS, Metric
from shardaudit.report.gate_lines import gate_lines, why_rejected
from shardaudit.report.next_steps import too_short
from shardaudit.report.plain import instant
from shardaudit.store.audits import gate_results
from shardaudit.store.cell_grid import ALL_SHARDS, ShardRange
from shardaudit.store.read_budget import read_budget
from shardaudit.store.read_findings import open_counts

SHOWN_DUE = 25
_LAST_MONTH_TOLD = timedelta(days=7)
Values = dict[str, Any]  # Any: what a template is given


@dataclass(frozen=True, slots=True)
class DueLine:
    """A shard of the countdown, and where its page is."""

    shard: ShardDue
    link: str | None


def stream_values(
    settings: Settings, state: PageState, audits: Sequence[Row], *, now: datetime
) -> Values:
    """What the page of a stream shows, and its report, as these audits found it."""
    settings.stream(state.stream)
    line, watched = read_line(
        settings, state.stream, audits, findings=open_counts(settings), now=now
    )
    judged = gate_results(settings, line.judged_id) if line.judged_id else []
    shown = read_map(settings, state, audits, now=now)
    shape = settings.stream(state.stream).cell_shape
    due = due_shards((row for row in watched if _within(row["shard_id"], state)), now=now)
    return common_values(state, shown, now) | {
        "line": line,
        "gates": gate_lines(judged),
        "reasons": line.refused and why_rejected(judged, self_check=line.refused.self_check),
        "due": due_lines(state, due),
        "too_short": _too_short(settings.stream(state.stream), watched),
        "curves": curves(trend(audits, usual=shape)),
        "place_curves": place_curves(place_trends(audits, usual=shape)),
        "graph": route_graph(line.hops),
        "budgets": _budgets(settings, state.stream, now=now),
        "findings": None,
        "is_part": state.shards != ALL_SHARDS,
        "offer": None,
    }


def _budgets(settings: Settings, name: str, *, now: datetime) -> list[LossBudget]:
    """Of this month, and in its first week of the one before: its last hours are audited then."""
    began = month_of(now).start
    ends = [began - datetime.resolution] if now - began < _LAST_MONTH_TOLD else []
    found = (read_budget(settings, name, now=at) for at in [now, *ends])
    return [budget for budget in found if budget is not None]


def common_values(state: PageState, shown: Shown, now: datetime) -> Values:
    """What every page with a map shows."""
    drawn = drawing(shown.found)
    page_name = "shard" if _is_one(state) else "stream"
    return {
        "title": state.stream,
        "now": now,
        "state": state,
        "shown": shown,
        "is_report": False,
        "found": shown.found,
        "drawn": drawn,
        "script": script_map(shown.found, drawn),
        "places": shown.places and drawing(shown.places),
        "place_runs": marked_runs(shown.places, drawing(shown.places)) if shown.places else [],
        "note": shown.note,
        "span_from": instant(shown.window.start),
        "span_to": instant(shown.window.end),
        "metric_links": {m: state.link(page_name, metric=Metric(m)) for m in METRICS},
        "up": "./",
        "whole": replace(state, shards=ALL_SHARDS, window=None).link("stream"),
    }


def due_lines(state: PageState, due: Iterable[ShardDue]) -> list[DueLine]:
    """The first of the countdown, each with the address of its shard."""
    return [
        DueLine(
            shard,
            PageState(stream=state.stream, shards=ShardRange(shard.shard_id, shard.shard_id)).link(
                "shard"
            ),
        )
        for shard in list(due)[:SHOWN_DUE]
    ]


def _too_short(stream: Stream, watched: Sequence[Row]) -> str | None:
    """The sentence about a retention that is too short for a repair, where one knows it."""
    hours = [row["retention_hours"] for row in watched if row["retention_hours"] is not None]
    kept = timedelta(hours=max(hours)) if hours else stream.retention
    return None if kept is None else too_short(kept, read_share=stream.backfill.read_share)


def _is_one(state: PageState) -> bool:
    return state.shards.first is not None and state.shards.first == state.shards.last


def _within(shard_id: str, state: PageState) -> bool:
    first, last = state.shards.first, state.shards.last
    return (first is None or shard_id >= first) and (last is None or shard_id <= last)
