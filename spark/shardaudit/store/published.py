"""What a report says of an audit: the same whether it has just run or is read from the tables."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any  # of a row

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.audit_id import ended_at, shape_of
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import FinalError
from shardaudit.model.gate import Severity, sentences
from shardaudit.model.rates import audit_rates
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.verdict import LIVE, AuditStatus, Kind, MissingIds, State, Verdict, by_rank
from shardaudit.model.window import Window
from shardaudit.model.words import messages
from shardaudit.report.gate_lines import why_rejected
from shardaudit.report.held_back import quiet_notes
from shardaudit.report.next_steps import (
    left_from,
    retention_note,
    stamping_note,
    unnamed_notes,
    vanished_note,
)
from shardaudit.report.producer_lines import producer_notes, producers_from_json
from shardaudit.report.route_lines import hop_rates, hops_from_json, route_notes
from shardaudit.report.summary import SHARD_COUNTS, AuditReport, DeadlineLine, ShardLine
from shardaudit.store.audits import (
    CELL_SUMS,
    ShardSums,
    audit_row,
    gate_results,
    given_up_spans,
    late_audits,
    quarantined_so_far,
    read_rows,
    shard_holds,
    shard_sums,
    waiting_time,
)
from shardaudit.store.read_findings import missing_of_audit


def worst_shards(
    shards: Iterable[tuple[str, Verdict, Mapping[str, int]]],
) -> tuple[ShardLine, ...]:
    """The shards that are not well, the worst verdict and the most messages first.

    Input:
        shards: of each its name, its verdict, and what its cells add up to.
    """
    lines = [
        ShardLine(shard_id, verdict, **{name: sums[name] for name in SHARD_COUNTS})
        for shard_id, verdict, sums in shards
    ]
    lines.sort(key=lambda line: line.shard_id)
    lines.sort(key=lambda line: (-line.verdict.rank, -line.missing, -line.duplicated))
    return tuple(line for line in lines if not line.verdict.is_good)


def deadline_lines(missing: Iterable[MissingIds]) -> tuple[DeadlineLine, ...]:
    """Until when what somebody still has to see to can be read again, the nearest first."""
    return tuple(
        DeadlineLine(
            ids.shard_id, Kind.MISSING, ids.cause, ids.ids, ids.recoverable_until, ids.gaps
        )
        for ids in sorted(missing, key=lambda ids: ids.order)
        if ids.state in LIVE
    )


def audit_notes(
    row: Mapping[str, Any], missing: Iterable[MissingIds], *, stream: Stream
) -> tuple[str, ...]:
    """What has left the stream or the sink, how deadlines are counted, what producers and hops do.

    Input:
        row: of AUDITS; NULL is what an older audit did not note.
    """
    expired = (
        f"{messages(ids.ids)} of {ids.shard_id} {left_from(ids.recoverable_until)}"
        for ids in sorted(missing, key=lambda ids: ids.order)
        if ids.state is State.EXPIRED
    )
    habits = (
        vanished_note(row["vanished"], row["vanished_until"]),
        retention_note(row["retention_s"], stream.retention),
        stamping_note(row["stamped_anew"]),
    )
    return (
        *expired,
        *(note for note in habits if note),
        *unnamed_notes(row["unnamed"]),
        *route_notes(
            hops_from_json(row["hops"]),
            sent=row["sent"],
            missing=row["missing"],
            landed=row["matched"],
        ),
        *producer_notes(producers_from_json(row["producers"])),
    )


class NotPublishedError(FinalError, LookupError):
    """The audit has no published result."""

    def __init__(self, stream: str, audit_id: str, status: str) -> None:
        super().__init__(
            f"the audit {audit_id} of {stream} {status}: nothing is known about its window. "
            "The log of its audit says why"
        )


def published_audit(settings: Settings, stream: str, audit_id: str) -> AuditReport:
    """What the audit said, from the tables. Deadlines are those that no later audit looked at.

    Raises:
        NotPublishedError: there is no such audit, or it was rejected, failed, or still runs.
        WarehouseUnreadableError: the warehouse does not answer.
    """
    row = _published_row(settings, stream, audit_id)
    configured = settings.stream(stream)
    window = Window(row["window_start"], row["window_end"])
    missing, hops = missing_of_audit(settings, row), hops_from_json(row["hops"])
    sample_rate = shape_of(row, configured.cell_shape).sample_rate
    report = AuditReport(
        audit_id=audit_id,
        stream=stream,
        window_start=window.start,
        window_end=window.end,
        as_of=row["as_of"],
        ran_at=row["started_at"],
        status=row["status"],
        engine=row["engine"],
        verdict=Verdict(row["verdict"]),
        counts={name: row[name] or 0 for name in (*CELL_SUMS, "filtered", "vanished")},
        trace_coverage=row["trace_coverage"],
        self_check=row["self_check"],
        watermark=row["watermark"],
        watermark_reason=row["watermark_reason"],
        cells_total=row["cells_total"],
        cells_compared_by_id=row["cells_compared_by_id"],
        worst_shards=worst_shards(
            (shard.shard_id, verdict, shard.sums)
            for shard, verdict in _judged(row, shard_sums(settings, audit_id))
        ),
        deadlines=deadline_lines(missing),
        quarantined=quarantined_so_far(settings, stream),
        notes=(
            *sentences(gate_results(settings, audit_id), severity=Severity.WARN),
            *quiet_notes(stream, window, shard_holds(settings, stream)),
            *audit_notes(row, missing, stream=configured),
        ),
        hops=hops,
        producers=producers_from_json(row["producers"]),
        rates=audit_rates(row, sample_rate=sample_rate),
        place_rates=hop_rates(hops, sample_rate=sample_rate),
    )
    return with_late(report, read_rows(settings, AUDITS, where=audits_beside(report)))


def _judged(row: Row, shards: Iterable[ShardSums]) -> list[tuple[ShardSums, Verdict]]:
    """Each shard with its verdict: that of its worst cell, if the audit's row has no other."""
    worst = {shard.shard_id: max(shard.verdicts, key=by_rank) for shard in shards}
    if row["shard_verdicts"] is None:
        # What was tolerated is not known: none is worse than all of them.
        said = {name: min(of, Verdict(row["verdict"]), key=by_rank) for name, of in worst.items()}
    else:
        said = {name: Verdict(of) for name, of in json.loads(row["shard_verdicts"]).items()}
    return [(shard, said.get(shard.shard_id, worst[shard.shard_id])) for shard in shards]


def audits_beside(report: AuditReport) -> pc.Expression:
    """Which rows of AUDITS `with_late` wants: those of the same stream and time."""
    return (pc.field("stream") == report.stream) & (pc.field("as_of") == pc.scalar(report.as_of))


def with_late(report: AuditReport, rows: Iterable[Row]) -> AuditReport:
    """The report with what came late, and the watermark where the last of these audits left it."""
    rows = list(rows)
    late = late_audits(rows, report.audit_id)
    [own] = (row for row in rows if row["audit_id"] == report.audit_id)
    moved = {
        report.audit_id,
        *(one.audit_id for one in late if one.status == AuditStatus.PUBLISHED),
    }
    last = max(
        (row for row in rows if row["audit_id"] in moved),
        key=ended_at,
    )
    return replace(
        report,
        watermark=last["watermark"],
        watermark_reason=last["watermark_reason"],
        late=late,
        waiting=waiting_time(own),
        given_up=given_up_spans(own),
    )


def _published_row(settings: Settings, stream: str, audit_id: str) -> Row:
    row = audit_row(settings, audit_id)
    if row is None:
        raise NotPublishedError(stream, audit_id, "did not happen")
    if row["status"] != AuditStatus.PUBLISHED:
        raise NotPublishedError(stream, audit_id, _why_not(settings, row))
    return row


def _why_not(settings: Settings, row: Row) -> str:
    results = gate_results(settings, row["audit_id"])
    shut = why_rejected(results, self_check=row["self_check"])
    return f"has the status {row['status']!r}" + (f" ({' | '.join(shut)})" if shut else "")
