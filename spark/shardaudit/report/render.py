"""Reports as text for people; as JSON: `summary.py`. All from outside goes through `plain`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.model.rates import Rate
from shardaudit.model.verdict import Kind, Verdict
from shardaudit.model.words import counted, length
from shardaudit.report.held_back import complete_until
from shardaudit.report.next_steps import late_lines, next_steps
from shardaudit.report.plain import cell, harmless, instant
from shardaudit.report.rate_lines import rated, sampled_line
from shardaudit.report.route_lines import doubled_after, doubled_line, lost_told, place_told
from shardaudit.report.summary import (
    SHARD_COUNTS,
    AuditedPlace,
    AuditReport,
    DeadlineLine,
    FindingLine,
    IngestReport,
    ShardLine,
)

_SHOWN = 10  # shards and deadlines
_COUNTS = {
    "sent": "messages acknowledged",
    "landed": "rows in the sink",
    "matched": "messages acknowledged and landed",
    "missing": "messages acknowledged, not landed",
    "pending": "messages on their way",
    "filtered": "messages that a filter of the route left out",
    "duplicated": "messages that landed more than once",
    "extra_rows": "rows beyond the first of a message",
    "untraced": "messages landed without a trace",
    "moved": "messages landed on another shard than traced",
}


def audit_view(report: AuditReport) -> RenderableType:
    """The final page of an audit."""
    parts: list[RenderableType] = [_headline(report), _facts(report), "", _counts(report)]
    if report.worst_shards:
        shown = _shards(report.worst_shards[:_SHOWN])
        parts += [_title("Worst shards"), shown, *_more(len(report.worst_shards))]
    if report.deadlines:
        parts += [_title("Nearest deadlines"), _deadlines(report), *_more(len(report.deadlines))]
    if report.hops:
        parts += [_title("Route"), _route(report.hops, report.place_rates), *_ways(report.hops)]
    late = late_lines(report.late, report.waiting, report.given_up)
    parts += _sentences("Notes", [*late, *report.notes])
    parts += _sentences("Look at next", next_steps(report))
    return Group(*parts)


def findings_view(findings: Sequence[FindingLine], *, total: int) -> RenderableType:
    """The list of findings, in the order given; `total` counts also those that are not shown."""
    if not findings:
        return Text("no findings")
    table = _table("recoverable until", "what", "where", "state", "shard")
    table.add_column("message id", overflow="fold", min_width=20)
    for line in findings:
        table.add_row(
            instant(line.recoverable_until),
            _what(line),
            cell(_where(line)),
            line.state,
            cell(line.shard_id),
            cell(line.message_id),
        )
    shown = f"{len(findings):,} of {total:,} findings, the soonest deadline first"
    return Group(_title(shown), table)


# Any: a column's type is what model/tables/gap_tables.py says
def gaps_view(gaps: Sequence[Mapping[str, Any]], *, total: int) -> RenderableType:
    """Rows of GAPS, in the order given; `total` counts also those that are not shown."""
    table = _table("recoverable until", "state", "shard", "from", "to", "cause")
    table.add_column("messages", justify="right")
    for gap in gaps:
        table.add_row(
            instant(gap["recoverable_until"]),
            gap["state"],
            cell(gap["shard_id"]),
            instant(gap["bucket_start"]),
            instant(gap["bucket_end"]),
            gap["cause"],
            f"{gap['count']:,}",
        )
    return Group(_title(f"{len(gaps):,} of {total:,} gaps, the soonest deadline first"), table)


def ingest_view(reports: Sequence[IngestReport]) -> RenderableType:
    """What each stream's ingest read."""
    table = _table("stream", "sink version")
    for name in ("trace files", "traces", "sink files +", "sink files -", "sink rows", "set aside"):
        table.add_column(name, justify="right")
    for line in reports:
        numbers = (
            line.trace_files,
            line.trace_rows,
            line.sink_files_added,
            line.sink_files_removed,
            line.sink_rows,
            line.quarantined,
        )
        table.add_row(cell(line.stream), _versions(line), *(f"{number:,}" for number in numbers))
    return Group(
        table, *(Text(f"{line.stream}: {note}") for line in reports for note in line.notes)
    )


def upkeep_view(lines: Sequence[tuple[str, int, int, int, int]]) -> RenderableType:
    """What became of each table: rows deleted; files merged, made of them, deleted."""
    table = _table("table")
    for name in ("old rows deleted", "small files merged", "into", "old files deleted"):
        table.add_column(name, justify="right")
    for name, *numbers in lines:
        if any(numbers):
            table.add_row(cell(name), *(f"{number:,}" for number in numbers))
    return (
        table
        if table.row_count
        else Text("nothing to do: no table has old rows that go, many small files, or old ones")
    )


def _style(verdict: Verdict) -> str:
    """Red: messages are gone, or may be soon."""
    if verdict.is_good:
        return "bold green"
    return "bold yellow" if verdict.rank <= Verdict.DUPLICATION.rank else "bold red"


def _headline(report: AuditReport) -> Text:
    verdict = (report.verdict.upper(), _style(report.verdict))
    return Text.assemble(f"Audit of {harmless(report.stream)}: ", verdict)


def _facts(report: AuditReport) -> Group:
    facts = {
        "window": f"{instant(report.window_start)} to {instant(report.window_end)}: "
        f"{report.verdict}",
        "as of": instant(report.as_of),
        "audit": f"{report.audit_id} ({report.status})",
        "complete": complete_until(report.watermark, report.watermark_reason),
        "traced": _share(report.trace_coverage),
        "compared": f"{report.cells_total:,} cells, {report.cells_compared_by_id:,} of them "
        f"id by id; self-check {report.self_check}",
        "engine": report.engine or "not kept",
    }
    sampled = sampled_line(report.rates)
    if sampled is not None:
        facts["rates"] = sampled
    lines = (((f" {name:<8}  ", "dim"), harmless(text)) for name, text in facts.items())
    # As of `_sentences`: why the stream is complete no further says what to type.
    return Group(*(Text.assemble(*line, no_wrap=True, overflow="ignore") for line in lines))


def _counts(report: AuditReport) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right")
    for name, meaning in _COUNTS.items():
        count = report.counts.get(name, 0)
        table.add_row(f"{count:,}", name, meaning, style=None if count else "dim")
    return table


def _shards(lines: Sequence[ShardLine]) -> Table:
    """A row per shard; a count that is zero in all of them has no column."""
    names = [name for name in SHARD_COUNTS if any(getattr(line, name) for line in lines)]
    table = _table("shard", "verdict")
    for name in names:
        table.add_column(name, justify="right")
    for line in lines:
        verdict = Text(line.verdict, style=_style(line.verdict))
        counts = (f"{getattr(line, name):,}" for name in names)
        table.add_row(cell(line.shard_id), verdict, *counts)
    return table


def _deadlines(report: AuditReport) -> Table:
    table = _table("recoverable until", "left", "shard", "what")
    table.add_column("messages", justify="right")
    for line in report.deadlines[:_SHOWN]:
        table.add_row(
            instant(line.recoverable_until),
            _left(line, report),
            cell(line.shard_id),
            f"{line.kind}, {line.cause}" + (f" ({counted(line.gaps, 'gap')})" if line.gaps else ""),
            f"{line.ids:,}",
        )
    return table


def _route(hops: Sequence[AuditedPlace], place_rates: Mapping[str, Mapping[str, Rate]]) -> Table:
    table = _table("place", "after")
    has_filter = any(hop.filtered for hop in hops)
    names = ["received", "sent on", "trace loss", "lost before it", "doubled after it"]
    tells = any(hop.end_loss is not None for hop in hops)
    if tells:
        names.insert(3, "end lost")
    if has_filter:
        names.insert(2, "left out")
    for name in names:
        table.add_column(name, justify="right")
    doubled = doubled_after(hops)
    for hop in hops:
        rates = place_rates.get(hop.location, {})
        counts = (
            *(f"{hop.received:,}", f"{hop.sent:,}"),
            *([f"{hop.filtered:,}"] if has_filter else []),
            rated(_percent(hop.trace_loss), "trace_loss", rates),
            *([_percent(hop.end_loss)] if tells else []),
            _lost_before(hop, rates),
            rated(doubled_line(doubled.get(hop.location)), "doubled", rates),
        )
        table.add_row(cell(hop.location), cell(", ".join(hop.after)), *counts)
    return table


def _ways(hops: Sequence[AuditedPlace]) -> list[Table]:
    """A row per hop; none in audits from before they were kept."""
    ways = [way for hop in hops for way in hop.ways]
    table = _table("hop", "verdict")
    for name in ("lost", "inconclusive", "doubled"):
        table.add_column(name, justify="right")
    for way in ways:
        verdict = Text(way.verdict, style=_style(way.verdict))
        counts = (f"{count:,}" for count in (way.lost, way.doubtful, way.doubled))
        table.add_row(cell(f"{way.after} → {way.before}"), verdict, *counts)
    return [table] if ways else []


def _lost_before(hop: AuditedPlace, rates: Mapping[str, Rate]) -> str:
    lost = rated(f"{hop.lost:,}", "lost", rates)
    doubtful = rated(f"{hop.doubtful:,} inconclusive", "doubtful", rates)
    return f"{lost}, {doubtful}" if hop.doubtful else lost


def _more(count: int) -> list[Text]:
    return [Text(f"… and {count - _SHOWN:,} more (--json)")] if count > _SHOWN else []


def _where(line: FindingLine) -> str:
    """Where a message was lost or doubled, as far as that is known."""
    words = {Kind.MISSING.value: "before", Kind.DUPLICATED.value: "after"}
    word = place_told(line.kind, line.location, words)
    return lost_told(line.hops) or (f"{word} {line.location}" if word else "–")


def _what(line: FindingLine) -> str:
    rows = f" ({counted(line.landed_count, 'row')})" if line.kind is Kind.DUPLICATED else ""
    return f"{line.kind}{rows}, {line.cause}"


def _left(line: DeadlineLine, report: AuditReport) -> Text:
    left = line.recoverable_until - report.left_by
    return Text(length(left)) if left.total_seconds() > 0 else Text("gone", style="bold red")


def _sentences(title: str, sentences: Iterable[str]) -> list[RenderableType]:
    # Not wrapped by us: a command in a sentence must survive being copied.
    lines = [
        Text(f"• {harmless(sentence)}", no_wrap=True, overflow="ignore") for sentence in sentences
    ]
    return [_title(title), *lines] if lines else []


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _table(*texts: str) -> Table:
    """A table whose first columns are texts that are not folded."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in texts:
        table.add_column(name, no_wrap=True)
    return table


def _share(coverage: float | None) -> str:
    return "nothing landed" if coverage is None else f"{coverage:.4%} of the landed messages"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.3%}"


def _versions(line: IngestReport) -> str:
    if line.sink_to_version is None:
        return "–"
    if line.sink_from_version is None:
        return f"{line.sink_to_version} (first)"
    return f"{line.sink_from_version} → {line.sink_to_version}"
