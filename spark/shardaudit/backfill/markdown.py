"""A plan as Markdown, for the person who is to approve it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from shardaudit.backfill.backfill_summary import WindowLine
from shardaudit.report.plain import counted, harmless, instant, length, messages

SHOWN_WINDOWS = 50
_MIB = 2**20


def plan_markdown(
    stream: str, windows: Sequence[WindowLine], *, as_of: datetime, minutes: float
) -> str:
    """What the plan reads and costs, until when it can work, and its windows."""
    ids = sum(line.expected_ids for line in windows)
    size = sum(line.estimated_bytes for line in windows) // _MIB
    calls = sum(line.estimated_calls for line in windows)
    first = min(line.deadline for line in windows)
    late = sum(not line.feasible for line in windows)
    shards = len({line.shard_id for line in windows})
    lines = [
        f"**{messages(ids)}** of `{stream}` are to be read again from "
        f"{counted(shards, 'shard')}, and those that the sink does not have are inserted.",
        "",
        f"- at most {size:,} MiB in {counted(calls, 'call')}, about {minutes:,.1f} minutes",
        f"- the first leave the stream at {instant(first)} ({_left(first - as_of)})",
        *(
            [f"- **{counted(late, 'window')} cannot be read before their deadline**"]
            if late
            else []
        ),
        "",
        "| deadline | shard | from | to | why | messages | at most MiB |",
        "|---|---|---|---|---|--:|--:|",
        *(_row(line) for line in windows[:SHOWN_WINDOWS]),
    ]
    if len(windows) > SHOWN_WINDOWS:
        more = counted(len(windows) - SHOWN_WINDOWS, "window")
        lines.append(f"\n… and {more} more")
    return "\n".join(lines)


def dedupe_markdown(stream: str, *, ids: int, extra_rows: int) -> str:
    """What a dedupe removes."""
    return (
        f"**{messages(ids)}** of `{stream}` stand more than once in the sink. The first row of "
        f"each stays; **{counted(extra_rows, 'row')}** will be removed, and kept in the table "
        "`removed_rows`."
    )


def _row(line: WindowLine) -> str:
    shard = harmless(line.shard_id).replace("|", "\\|")
    parts = (
        instant(line.deadline),
        shard,
        instant(line.window_start),
        instant(line.window_end),
        line.because,
        f"{line.expected_ids:,}",
        f"{line.estimated_bytes // _MIB:,}",
    )
    return f"| {' | '.join(parts)} |"


def _left(left: timedelta) -> str:
    return f"{length(left)} left" if left > timedelta(0) else "gone"
