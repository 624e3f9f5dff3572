"""A watch as text for people. Everything from outside goes through `plain`."""

from collections.abc import Sequence
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.model.verdict import Level
from shardaudit.report.plain import cell, harmless, instant, length
from shardaudit.watch.watch_summary import SkewLine, WatchLine, WatchReport

SHOWN_SHARDS = 20
_STYLES = {
    Level.NONE: "bold green",
    Level.NOTICE: "bold yellow",
    Level.WARN: "bold yellow",
    Level.URGENT: "bold red",
    Level.LOST: "bold red",
}


def watch_view(report: WatchReport) -> RenderableType:
    """The page of a watch: levels, deadlines, what to do."""
    parts: list[RenderableType] = [_headline(report), _facts(report)]
    shown = report.shards[:SHOWN_SHARDS]
    if shown:
        parts += ["", _shards(shown)]
    if len(report.shards) > len(shown):
        parts.append(Text(f"… and {len(report.shards) - len(shown):,} shards more (--json)"))
    for line in shown:
        words = "; ".join(filter(None, (line.advice, *line.evidence)))
        if words:
            parts.append(_sentence(f"{line.shard_id}: {words}"))
    parts += [_sentence(note) for note in report.notes]
    return Group(*parts)


def _headline(report: WatchReport) -> Text:
    worst = "ok" if report.worst is Level.NONE else report.worst.value
    return Text.assemble(
        f"Watch of {harmless(report.stream)}: ", (worst.upper(), _STYLES[report.worst])
    )


def _facts(report: WatchReport) -> Table:
    read, listed = _when(report.read_at, report), _when(report.listed_at, report)
    facts = {
        "as of": instant(report.as_of),
        "ledger": f"read {read}",
        "shards": _counts(report.states),
        "levels": _counts(report.levels),
        "Kinesis": f"asked {listed}; retention {length(report.retention)}",
        "producers": _skew(report.produced_skew),
        "sink": _skew(report.landed_skew),
    }
    table = Table(box=None, show_header=False, padding=(0, 1))
    for name, text in facts.items():
        table.add_row(Text(name, style="dim"), Text(harmless(text)))
    return table


def _when(at: datetime | None, report: WatchReport) -> str:
    return "never" if at is None else f"{instant(at)} ({length(report.as_of - at)} ago)"


def _shards(lines: Sequence[WatchLine]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("shard", "state", "level", "waiting since", "start by", "recoverable until"):
        table.add_column(name, no_wrap=True)
    for name in ("messages", "hours to read", "in holes"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            cell(line.shard_id),
            line.state,
            Text(line.level, style=_STYLES[line.level]),
            instant(_first(line.oldest_ahead, line.hole_since)),
            instant(_first(line.start_by, line.hole_start_by)),
            instant(_first(line.recoverable_until, line.hole_recoverable_until)),
            f"{line.messages_ahead:,}",
            "–" if line.hours_to_read is None else f"≤ {line.hours_to_read:.1f}",
            f"≥ {line.hole_messages:,}" if line.holes else "–",
        )
    return table


def _first(ahead: datetime | None, hole: datetime | None) -> datetime | None:
    """The earlier of the two."""
    return min(filter(None, (ahead, hole)), default=None)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"


def _skew(skew: SkewLine | None) -> str:
    if skew is None:
        return "no shard is at work"
    return (
        f"shards are {length(skew.spread)} apart, up to {instant(skew.latest)}; "
        f"{skew.shard_id} is the furthest behind"
    )


def _sentence(text: str) -> Text:
    # Not wrapped by us: a window in a sentence must survive being copied.
    return Text(f"• {harmless(text)}", no_wrap=True, overflow="ignore")
