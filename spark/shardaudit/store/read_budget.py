"""What a stream lost of what was sent in this month, as far as audits looked: without Spark."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import STANDING, Cause, Kind, State, Verdict
from shardaudit.model.window import Window
from shardaudit.store.audits import audits_of
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments
from shardaudit.store.cells import field_within, micros, of_segment


def read_budget(settings: Settings, name: str, *, now: datetime) -> LossBudget | None:
    """The budget of the stream's current month; None: it has none.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    stream = settings.stream(name)
    if stream.loss_budget is None:
        return None
    tables, month = DeltaRs(settings.warehouse, settings.aws), month_of(now)
    so_far = [Window(month.start, now)] if month.start < now else []
    spans = audit_spans(audits_of(settings, name)) if so_far else []
    segments = [one for window in so_far for one in newest_segments(spans, window)]
    sent, doubtful = _sent(tables, segments)
    lost, stuck = _missing(tables, name, month)
    audited = sum((one.end - one.start for one in segments), timedelta(0))
    return LossBudget(
        allowed=stream.loss_budget,
        month=month,
        as_of=now,
        sent=sent,
        lost=lost,
        stuck=stuck,
        unaudited=now - month.start - audited,
        inconclusive=doubtful * stream.bucket,
        is_sampled=stream.sample_rate < 1,
    )


def _sent(tables: DeltaRs, segments: Iterable[Segment]) -> tuple[int, int]:
    """Messages of the segments' cells, and in how many buckets some cell is inconclusive."""
    sent, doubtful = 0, 0
    for segment in segments:
        starts = [np.empty(0, np.int64)]
        for cells in tables.batches(
            CELLS,
            columns=["bucket_start", "sent", "verdict"],
            where=of_segment(segment),
            dictionaries=("verdict",),
        ):
            sent += pc.sum(cells.column("sent")).as_py() or 0
            is_doubtful = pc.equal(cells.column("verdict"), Verdict.INCONCLUSIVE.value)
            starts.append(np.unique(micros(cells.column("bucket_start").filter(is_doubtful))))
        doubtful += np.unique(np.concatenate(starts)).size
    return sent, doubtful


def _missing(tables: DeltaRs, name: str, month: Window) -> tuple[int, int]:
    """Messages that lack, by findings and in gaps: those that are lost, and those that wait."""
    standing = (pc.field("stream") == name) & pc.field("state").isin(STANDING)
    findings = tables.columns(
        FINDINGS,
        names=["stream", "kind", "cause", "state", "sent_at"],
        where=standing
        & (pc.field("kind") == Kind.MISSING.value)
        & field_within("sent_at", month.start, month.end),
    )
    gaps = tables.columns(
        GAPS,
        names=["stream", "cause", "state", "bucket_start", "count"],
        where=standing & field_within("bucket_start", month.start, month.end),
    )
    is_behind = pc.field("cause") == Cause.STUCK.value
    is_lost = ~is_behind | pc.field("state").isin([State.EXPIRED, State.ACCEPTED])

    def ids(where: pc.Expression) -> int:
        named = 0 if findings is None else findings.filter(where).num_rows
        unnamed = 0 if gaps is None else pc.sum(gaps.filter(where)["count"]).as_py()
        return named + (unnamed or 0)

    return ids(is_lost), ids(~is_lost)
