"""A backfill's plan and its run as text for people."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.backfill.proposal import PlanReport, RunReport, WindowLine
from shardaudit.backfill.rules.planned import WindowState, window_order
from shardaudit.model.words import counted, length, messages
from shardaudit.report.plain import cell, harmless, instant

SHOWN_WINDOWS = 30
_MIB = 2**20
_STYLES = {
    WindowState.VERIFIED: "bold green",
    WindowState.EXPIRED: "bold yellow",
    WindowState.INCOMPLETE: "bold red",
}


def plan_view(report: PlanReport) -> RenderableType:
    """The plan: windows, price, deadlines, and what running it does."""
    left_out = []
    if report.stuck_left_out:
        left_out.append(
            f"{messages(report.stuck_left_out)} behind a stopped shard left out: its consumer may "
            "still deliver them; --include-stuck plans them too"
        )
    left_out += [
        f"what {plan_id} has to bring is left to it: shardaudit backfill verify --plan {plan_id} "
        "says what became of it, and opens again what was not handed over"
        for plan_id in report.handed_over
    ]
    if not report.windows:
        said = f"Nothing of {report.stream} to bring back."
        return _lines(said, [*left_out, *report.notes])
    ids = sum(line.expected_ids for line in report.windows)
    size = sum(line.estimated_bytes for line in report.windows)
    calls = sum(line.estimated_calls for line in report.windows)
    facts = [
        f"{messages(ids)} in {counted(len(report.windows), 'window')}; to be read at most "
        f"{size // _MIB:,} MiB in {counted(calls, 'call')}, about {report.minutes:,.1f} minutes",
        *left_out,
        *_too_late(report),
        *filter(None, (report.lands_filtered, report.beyond_sample, report.on_its_way)),
    ]
    title = f"Backfill plan {report.plan_id}"
    run = f"shardaudit backfill run --plan {report.plan_id} --approve-as NAME"
    return Group(
        _lines(title, facts),
        _plan_table(report),
        _lines("\nWhat it does", report.stages),
        *([_lines("\nBefore it can run", [report.before_run])] if report.before_run else []),
        _lines("\nApprove and run it", [run]),
    )


def run_view(report: RunReport) -> RenderableType:
    """What came of each window."""
    facts = [f"approved by {report.approved_by}", f"done by {report.engine}"]
    if report.audit_id is None and report.is_over:
        facts.append("it was over before: nothing was done")
    elif report.audit_id is None:
        facts.append(f"not proven yet: shardaudit backfill verify --plan {report.plan_id}")
    else:
        facts += [
            f"brought back: {messages(report.recovered)}; expired: {report.expired:,}; "
            f"still missing: {report.left:,}",
            f"proven by audit {report.audit_id}",
        ]
    facts += filter(None, (report.beyond_sample,))
    return Group(_lines(f"Backfill {report.plan_id}", facts), _run_table(report.windows))


def _too_late(report: PlanReport) -> list[str]:
    late = sum(not line.feasible for line in report.windows)
    if not late:
        return []
    words = f"{counted(late, 'window')} cannot be read before their deadline"
    if report.extension is None:
        return [f"{words}: what of them the stream no longer has is gone"]
    hours = report.extension // timedelta(hours=1)
    return [f"{words}: extend the stream's retention to {hours:,} h now, it is not retroactive"]


def _plan_table(report: PlanReport) -> Table:
    table = _table("deadline", "left", "shard", "from", "to", "why")
    for name in ("messages", "at most MiB", "at most s"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in report.windows[:SHOWN_WINDOWS]:
        left = line.deadline - report.as_of
        table.add_row(
            instant(line.deadline),
            length(left) if left > timedelta(0) else "gone",
            cell(line.shard_id),
            instant(line.window_start),
            instant(line.window_end),
            line.because,
            f"{line.expected_ids:,}",
            f"{line.estimated_bytes // _MIB:,}",
            f"{line.estimated_seconds:,.1f}",
        )
    return _with_rest(table, report.windows)


def _run_table(lines: Sequence[WindowLine]) -> Table:
    """The windows that did not come to a good end first."""
    order = {WindowState.INCOMPLETE: 0, WindowState.EXPIRED: 1}
    ordered = sorted(
        lines, key=lambda line: (order.get(line.state, 2), window_order(line.window_id))
    )
    table = _table("window", "shard", "state")
    for name in ("messages", "records read", "rows merged"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("remarks", overflow="fold")
    for line in ordered[:SHOWN_WINDOWS]:
        table.add_row(
            line.window_id,
            cell(line.shard_id),
            Text(line.state, style=_STYLES.get(line.state, "")),
            f"{line.expected_ids:,}",
            _number(line.read_records),
            _number(line.merged_rows),
            _remark(line),
        )
    return _with_rest(table, ordered)


def _remark(line: WindowLine) -> Text:
    parts = [] if line.error is None else [harmless(line.error)]
    if line.expired_from is not None:
        parts.append(f"expired from {instant(line.expired_from)} to {instant(line.expired_to)}")
    return Text("; ".join(parts))


def _number(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _with_rest(table: Table, lines: Sequence[WindowLine]) -> Table:
    if len(lines) > SHOWN_WINDOWS:
        table.add_row(f"… {len(lines) - SHOWN_WINDOWS:,} more")
    return table


def _lines(title: str, sentences: Iterable[str]) -> Group:
    # Not wrapped by us: a command in a sentence must survive being copied.
    texts = [Text(f"• {harmless(s)}", no_wrap=True, overflow="ignore") for s in sentences]
    return Group(Text(title, style="bold"), *texts)


def _table(*texts: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in texts:
        # Folded where there is no room: the numbers are read as a whole.
        table.add_column(name, overflow="fold")
    return table
