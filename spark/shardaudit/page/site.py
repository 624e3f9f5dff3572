"""The page in Airflow's UI: streams → one stream → one shard, findings as CSV, a repair's offer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from shardaudit.adapters.lake.delta_schema import one_look
from shardaudit.backfill.rules.approval import policy_limit
from shardaudit.backfill.rules.plan import price
from shardaudit.backfill.rules.planned import Price
from shardaudit.backfill.rules.ranges import ASKED_FOR, Range
from shardaudit.model.config.choices import BackfillMode, SinkFormat
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Kind, State
from shardaudit.model.window import Window
from shardaudit.page.airflow_door import HiddenStreamError, PageAnswer, Pages, Rights
from shardaudit.page.page_findings import csv_lines
from shardaudit.page.page_html import asset, html_page
from shardaudit.page.page_lines import due_shards
from shardaudit.page.page_of_stream import common_values, due_lines, stream_values
from shardaudit.page.page_reading import (
    Shown,
    read_finding_rows,
    read_gaps,
    read_line,
    read_map,
    wanted_findings,
)
from shardaudit.page.page_state import PageState
from shardaudit.store.audits import audits_of, newest_watch
from shardaudit.store.cell_grid import ALL_SHARDS
from shardaudit.store.cells import bad_cells
from shardaudit.store.read_findings import each_finding, open_counts, open_missing

SHOWN_CELLS = 50
MOST_READ = 5_000_000  # findings for one page, and as many changes of them: some seconds of a core
Parameters = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """A backfill that can be asked for. `shard_ids`: none means all of the stream.

    `price`: of reading the window of one shard whole, at most; `open_ids`: missing messages of the
    selection that are open, the first of which is gone at `deadline`.
    """

    stream: str
    window: Window
    shard_ids: tuple[str, ...]
    shards: int
    open_ids: int
    deadline: datetime | None
    mode: str
    price: Price
    approval: str


def offer_of(settings: Settings, state: PageState, shown: Shown) -> Offer | None:
    """The offer for what is shown; None where nothing is."""
    names = [name for row in shown.found.rows for name in row.group.names]
    if not names:
        return None
    stream = settings.stream(state.stream)
    missing = open_missing(settings, state.stream, shards=state.shards)
    by_hand = Range(names[0], ASKED_FOR, shown.window, shown.window, ())
    default = BackfillMode.MERGE if stream.sink.format is SinkFormat.DELTA else BackfillMode.APPEND
    limit = policy_limit(stream.backfill)
    return Offer(
        stream=state.stream,
        window=shown.window,
        shard_ids=() if state.shards == ALL_SHARDS else tuple(names),
        shards=len(names),
        open_ids=missing.ids,
        deadline=missing.deadline,
        mode=(stream.backfill.mode or default).value,
        price=price(by_hand, read_share=stream.backfill.read_share),
        approval="a person" if limit is None else "by policy, below its limit",
    )


def _is_shown(stream: Stream, rights: Rights) -> bool:
    return stream.page_resource is None or rights.may_see(stream.page_resource)


def _check_shown(settings: Settings, name: str, rights: Rights) -> None:
    """Returns when the user may see the stream of that name.

    Raises:
        HiddenStreamError: not, or there is none, and some are hidden: both are told alike.
        ConfigError: there is none, and none is hidden; says which there are.
    """
    asked = settings.streams.get(name)
    if asked is not None and _is_shown(asked, rights):
        return
    if all(_is_shown(stream, rights) for stream in settings.streams.values()):
        settings.stream(name)
    raise HiddenStreamError(name)


@dataclass(frozen=True, slots=True)
class Site:
    """The pages over a configuration, that is read anew for each, and a clock."""

    settings: Callable[[], Settings]
    clock: Callable[[], datetime]

    def pages(self) -> Pages:
        """All of them by their paths."""
        return Pages(
            by_path={
                "/": self.streams,
                "/stream": self.stream,
                "/shard": self.shard,
                "/findings.csv": self.download,
                "/page.css": lambda *_: PageAnswer(asset("page.css"), "text/css"),
                "/page.js": lambda *_: PageAnswer(asset("page.js"), "text/javascript"),
            },
            problem=self.problem,
        )

    def problem(self, title: str, words: str) -> PageAnswer:
        """Why something cannot be shown."""
        values = {"title": title, "problem": words, "now": self.clock()}
        return PageAnswer(html_page("problem.html", values))

    def streams(self, _given: Parameters, rights: Rights) -> PageAnswer:
        """Every stream of the configuration that the user may see."""
        settings, now = self.settings(), self.clock()
        with one_look():
            found = open_counts(settings)
            lines = [
                read_line(
                    settings,
                    name,
                    audits_of(settings, name, now=now),
                    findings=found,
                    now=now,
                )[0]
                for name, stream in settings.streams.items()
                if _is_shown(stream, rights)
            ]
        links = {line.name: PageState(stream=line.name).link("stream") for line in lines}
        values = {"title": "Streams", "now": now, "lines": lines, "links": links}
        return PageAnswer(html_page("streams.html", values))

    def stream(self, given: Parameters, rights: Rights) -> PageAnswer:
        """One stream, or some of its shards."""
        settings, now, state = self.settings(), self.clock(), PageState.parse(given)
        _check_shown(settings, state.stream, rights)
        values = stream_values(settings, state, audits_of(settings, state.stream, now=now), now=now)
        if rights.may_backfill:
            values["offer"] = offer_of(settings, state, values["shown"])
        return PageAnswer(html_page("stream.html", values))

    def shard(self, given: Parameters, rights: Rights) -> PageAnswer:
        """One shard in one time."""
        settings, now, state = self.settings(), self.clock(), PageState.parse(given)
        _check_shown(settings, state.stream, rights)
        if state.shards.first is None or state.shards.first != state.shards.last:
            raise ConfigError("first, last", "other than one shard", "one shard's id in both")
        audits = audits_of(settings, state.stream, now=now)
        shown = read_map(settings, state, audits, now=now)
        watched = newest_watch(settings, state.stream, now=now)
        mine = [row for row in watched if row["shard_id"] == state.shards.first]
        findings = read_finding_rows(settings, state, state.window, most_read=MOST_READ)
        gaps, gaps_total = read_gaps(settings, state, state.window)
        cells, cells_total = bad_cells(
            settings, shown.segments, shards=state.shards, limit=SHOWN_CELLS
        )
        values = common_values(state, shown, now) | {
            "due": due_lines(state, due_shards(mine, now=now)),
            "watched_at": max((row["observed_at"] for row in mine), default=None),
            "cells": cells,
            "cells_total": cells_total,
            "findings": findings,
            "gaps": gaps,
            "gaps_total": gaps_total,
            "csv": state.link("findings.csv"),
            "kinds": [kind.value for kind in Kind],
            "states": [one.value for one in State],
            "is_cell": state.window is not None,
            "wider": state.link("shard", window=None),
            "offer": offer_of(settings, state, shown) if rights.may_backfill else None,
        }
        return PageAnswer(html_page("shard.html", values))

    def download(self, given: Parameters, rights: Rights) -> PageAnswer:
        """All findings of a state, as CSV."""
        settings, state = self.settings(), PageState.parse(given)
        _check_shown(settings, state.stream, rights)
        wanted = wanted_findings(state, state.window)
        lines = csv_lines(each_finding(settings, wanted))
        return PageAnswer(lines, "text/csv; charset=utf-8", "findings.csv")
