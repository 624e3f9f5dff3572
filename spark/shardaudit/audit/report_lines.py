"""What a report says of an audit: the same whether it has just run or is read from the tables."""

from collections.abc import Iterable
from datetime import datetime

from shardaudit.audit.rules.totals import ShardTotals
from shardaudit.model.config.settings import Stream
from shardaudit.model.verdict import LIVE, Kind, MissingIds, State, Verdict
from shardaudit.report.next_steps import retention_note, stamping_note, vanished_note
from shardaudit.report.plain import instant, messages
from shardaudit.report.summary import DeadlineLine, ShardLine

_COUNTS = ("sent", "landed", "missing", "pending", "duplicated", "untraced", "moved")


def worst_shards(totals: Iterable[ShardTotals], stream: Stream) -> tuple[ShardLine, ...]:
    """The shards that are not well, the worst verdict and the most messages first."""
    lines = [
        ShardLine(
            shard_id=shard.shard_id,
            verdict=shard.verdict(
                tolerance=stream.tolerance, coverage_floor=stream.trace_coverage_floor
            ),
            **{name: shard.sums[name] for name in _COUNTS},
        )
        for shard in totals
    ]
    order = list(Verdict)
    lines.sort(key=lambda line: line.shard_id)
    lines.sort(key=lambda line: (order.index(line.verdict), -line.missing, -line.duplicated))
    return tuple(line for line in lines if not line.verdict.is_good)


def deadline_lines(missing: Iterable[MissingIds]) -> tuple[DeadlineLine, ...]:
    """Until when what somebody still has to see to can be read again, the nearest first."""
    return tuple(
        DeadlineLine(ids.shard_id, Kind.MISSING, ids.cause, ids.ids, ids.recoverable_until)
        for ids in sorted(missing, key=lambda ids: ids.order)
        if ids.state in LIVE
    )


def audit_notes(
    missing: Iterable[MissingIds],
    *,
    kept_s: int | None,
    stream: Stream,
    stamped_anew: int | None,
    vanished: tuple[int | None, datetime | None],
) -> tuple[str, ...]:
    """What has left the stream or the sink, how deadlines are counted, what producers do.

    Input:
        kept_s: how long the stream keeps records; stamped_anew, vanished (with `vanished_until`):
        of AUDITS. None: an older audit did not note it.
    """
    expired = (
        f"{messages(ids.ids)} of {ids.shard_id} left the stream, the first at "
        f"{instant(ids.recoverable_until)}"
        for ids in sorted(missing, key=lambda ids: ids.order)
        if ids.state is State.EXPIRED
    )
    habits = (
        vanished_note(*vanished),
        retention_note(kept_s, stream.retention),
        stamping_note(stamped_anew),
    )
    return (*expired, *(note for note in habits if note))
