from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

from rich.console import Console

from shardaudit.model.verdict import Level, ShardState
from shardaudit.report.summary import plain_value
from shardaudit.watch.rules.judgement import Skew
from shardaudit.watch.watch_report import WatchLine, WatchReport, watch_view
from tests.unit.report.reports import NOON

HOUR = timedelta(hours=1)


def line(**fields: Any) -> WatchLine:  # Any: the fields of WatchLine
    """A shard that stands still."""
    stuck = WatchLine(
        shard_id="shard-3",
        state=ShardState.STALLED,
        level=Level.URGENT,
        produced_until=NOON,
        landed_until=NOON - 90 * HOUR,
        frontier_at=NOON - 90 * HOUR,
        position="4965",
        messages_ahead=12_345,
        oldest_ahead=NOON - 90 * HOUR,
        recoverable_until=NOON + 78 * HOUR,
        start_by=NOON + 4 * HOUR,
        crosses_at=None,
        hours_to_read=74.0,
        holes=0,
        hole_messages=0,
        hole_since=None,
        hole_until=None,
        hole_recoverable_until=None,
        hole_start_by=None,
        advice="stands still; start by noon",
        evidence=("its processor hangs",),
    )
    return replace(stuck, **fields)


def report(*lines: WatchLine, **fields: Any) -> WatchReport:  # Any: the fields of WatchReport
    """A watch that saw them."""
    watch = WatchReport(
        stream="events",
        as_of=NOON,
        retention=timedelta(days=7),
        read_at=NOON - timedelta(minutes=40),
        listed_at=NOON - 2 * HOUR,
        told=1,
        states={"stalled": 1, "ok": 1799},
        levels={"urgent": 1, "none": 1799},
        worst=Level.URGENT if lines else Level.NONE,
        shards=lines,
        produced_skew=Skew(timedelta(minutes=2), NOON - timedelta(minutes=2), NOON, "shard-9"),
        landed_skew=None,
        notes=(),
    )
    return replace(watch, **fields)


def shown(watch: WatchReport) -> str:
    out = StringIO()
    Console(file=out, width=200, color_system=None).print(watch_view(watch))
    return out.getvalue()


def test_the_page_says_level_deadline_and_what_to_do() -> None:
    page = shown(report(line()))
    assert "Watch of events: URGENT" in page
    assert "1 stalled, 1,799 ok" in page
    assert "read 2026-11-20T11:20:00Z (40 min ago)" in page
    assert "asked 2026-11-20T10:00:00Z (2 h 0 min ago); retention 7 d 0 h" in page
    assert "shards are 2 min apart" in page
    assert "2026-11-20T16:00:00Z" in page
    assert "≤ 74.0" in page
    assert "• shard-3: stands still; start by noon; its processor hangs" in page


def test_a_watch_without_findings_is_ok() -> None:
    assert shown(report()).splitlines()[0].rstrip() == "Watch of events: OK"


def test_a_watch_that_could_not_ask_all_is_not_simply_ok() -> None:
    page = shown(report(listed_at=None, notes=("throttled; a later try may work",)))
    assert "Watch of events: OK BY WHAT IS KNOWN" in page
    assert "asked never" in page
    assert "• throttled; a later try may work" in page


def test_a_first_watch_that_could_not_read_says_so_and_nothing_else() -> None:
    shards: dict[str, object] = {"states": {}, "levels": {}, "produced_skew": None}
    page = shown(report(read_at=None, worst=None, notes=("the ledger is held",), **shards))
    assert page.splitlines()[0].rstrip() == "Watch of events: NOTHING IS KNOWN YET"
    assert page.count("not known yet") == 4
    assert "read never" in page
    for words in ("OK", "none", "no shard"):
        assert words not in page


def test_many_shards_are_cut_and_counted() -> None:
    page = shown(report(*(line(shard_id=f"s{i}", advice=None, evidence=()) for i in range(25))))
    assert "… and 5 shards more (--json)" in page


def test_names_from_outside_do_not_reach_the_terminal_raw() -> None:
    assert "\x1b[2J" not in shown(report(line(shard_id="s\x1b[2J", advice="a\nb")))


def test_the_document_has_plain_values() -> None:
    document = plain_value(report(line()))
    assert isinstance(document, dict)
    assert (document["worst"], document["retention"]) == ("urgent", 604800.0)
    assert document["shards"][0]["start_by"] == "2026-11-20T16:00:00Z"
