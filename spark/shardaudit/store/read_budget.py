"""What a stream lost of what was sent in this month, as far as audits looked: without Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.audit_id import shape_of
from shardaudit.model.config.eras import CellShape
from shardaudit.model.config.settings import Settings
from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.rates import DUE
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import STANDING, Cause, Kind, State, Verdict
from shardaudit.model.window import Window
from shardaudit.store.audits import published_of, read_rows
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments
from shardaudit.store.cells import field_within, micros, newest_batches
from shardaudit.store.found.finding_counts import counted_findings

Sums = tuple[int, int]  # messages, and buckets in which some cell is inconclusive


@dataclass(frozen=True, slots=True)
class _Newest:
    """The time of which an audit's cells are the newest, and the files in which they lie."""

    audit_id: str
    files: frozenset[str]
    segments: tuple[Segment, ...]


# Files of Delta never change, nor do what is read of them: the page reads only what is new.
_KNOWN: dict[_Newest, Sums] = {}
_MOST_KNOWN = 10_000


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
    # All of them: those of a month may have been later than its end.
    audits = read_rows(settings, AUDITS, where=published_of(name)) if so_far else []
    spans = audit_spans(audits)
    segments = [one for window in so_far for one in newest_segments(spans, window)]
    shapes = {row["audit_id"]: shape_of(row, stream.cell_shape) for row in audits}
    sent, inconclusive = _sent(tables, segments, shapes)
    rates = {shapes[one.audit_id].sample_rate for one in segments}
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
        inconclusive=inconclusive,
        is_sampled=min(rates, default=1) < 1,
        is_mixed=len(rates) > 1,
    )


def newest_budget(settings: Settings, name: str, *, now: datetime) -> LossBudget | None:
    """That of the newest month of which something is known, for who is told of one alone.

    Before a new month's first audit that is the month before, whose last hours were audited since.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    current = read_budget(settings, name, now=now)
    if current is None or current.sent:
        return current
    before = read_budget(settings, name, now=current.month.start - datetime.resolution)
    return before if before is not None and before.sent else current


def _sent(
    tables: DeltaRs, segments: Sequence[Segment], shapes: Mapping[str, CellShape]
) -> tuple[int, timedelta]:
    """How many messages were to land, and for how long some cell is inconclusive."""
    newest = _newest(tables, segments)
    known = {one: sums for one in newest if (sums := _KNOWN.get(one)) is not None}
    unknown = [one for one in newest if one not in known]
    known |= _read(tables, unknown)
    if len(_KNOWN) > _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN.update(known)
    lengths = (n * shapes[one.audit_id].bucket for one, (_, n) in known.items())
    return sum(sent for sent, _ in known.values()), sum(lengths, timedelta())


def _newest(tables: DeltaRs, segments: Sequence[Segment]) -> list[_Newest]:
    """The segments by their audits."""
    files: dict[str, set[str]] = {}
    for file in tables.files(CELLS):
        files.setdefault(file["partition.audit_id"], set()).add(file["path"])
    by_audit: dict[str, list[Segment]] = {}
    for segment in segments:
        by_audit.setdefault(segment.audit_id, []).append(segment)
    return [
        _Newest(name, frozenset(files[name]), tuple(parts))
        for name, parts in by_audit.items()
        if name in files
    ]


def _read(tables: DeltaRs, newest: Sequence[_Newest]) -> dict[_Newest, Sums]:
    """The same of each, in one reading."""
    sent = dict.fromkeys((one.audit_id for one in newest), 0)
    doubtful = {one.audit_id: np.empty(0, np.int64) for one in newest}
    segments = [part for one in newest for part in one.segments]
    columns = ["audit_id", "bucket_start", *DUE, "verdict"]
    for cells in newest_batches(tables, segments, columns=columns, dictionaries=("verdict",)):
        if cells.num_rows:
            name = cells.column("audit_id")[0].as_py()  # of one file, so of one audit
            sent[name] += sum(pc.sum(cells.column(of)).as_py() or 0 for of in DUE)
            is_doubtful = pc.equal(cells.column("verdict"), Verdict.INCONCLUSIVE.value)
            starts = micros(cells.column("bucket_start").filter(is_doubtful))
            doubtful[name] = np.union1d(doubtful[name], starts)
    return {one: (sent[one.audit_id], doubtful[one.audit_id].size) for one in newest}


def _missing(tables: DeltaRs, name: str, month: Window) -> tuple[int, int]:
    """Messages that lack, by findings and in gaps: those that are lost, and those that wait."""
    standing = (pc.field("stream") == name) & pc.field("state").isin(STANDING)
    findings, of_month = counted_findings(tables), pc.scalar(month.start.date())
    missing = (pc.field("kind") == Kind.MISSING.value) & (pc.field("sent_month") == of_month)
    gaps = tables.columns(
        GAPS,
        names=["stream", "cause", "state", "bucket_start", "count"],
        where=standing & field_within("bucket_start", month.start, month.end),
    )
    is_behind = pc.field("cause") == Cause.STUCK.value
    is_lost = ~is_behind | pc.field("state").isin([State.EXPIRED, State.ACCEPTED])

    def ids(where: pc.Expression) -> int:
        named = sum(file.within(standing & missing & where)[0] for file in findings)
        unnamed = 0 if gaps is None else pc.sum(gaps.filter(where)["count"]).as_py()
        return named + (unnamed or 0)

    return ids(is_lost), ids(~is_lost)
