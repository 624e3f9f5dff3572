"""Which cells of old audits nothing reads any more: newer audits looked at their minutes.

Of each minute the two newest audits keep their cells, as an audit that is done again looks at the
one before it; and where the newest saw messages on their way, all do, as the newest counts that saw
none. An audit keeps all from the first to the last such minute of its window.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_schema import has_values, is_before
from shardaudit.model.audit_id import (
    AuditOrder,
    StoredAudit,
    audit_order,
    ended_at,
    published_audits,
)
from shardaudit.model.tables.audit_tables import CELLS
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

_NEWEST = 2


class AuditsInTime:
    """A stream's published audits, to be asked which of them looked at a time."""

    def __init__(self, audits: Sequence[StoredAudit]) -> None:
        self.all = sorted(published_audits(audits), key=lambda row: row["window_start"])
        self._starts = [row["window_start"] for row in self.all]
        lengths = [row["window_end"] - row["window_start"] for row in self.all]
        self._longest = max(lengths, default=timedelta(0))

    def of(self, window: Window) -> list[StoredAudit]:
        """Those that looked at some of it."""
        first = bisect_left(self._starts, window.start - self._longest)
        last = bisect_left(self._starts, window.end)
        return [row for row in self.all[first:last] if row["window_end"] > window.start]

    def is_newest(self, audit_id: str, instant: datetime) -> bool:
        """Whether it looked at an instant after all others that did."""
        looked = self.of(Window(instant, instant + datetime.resolution))
        return bool(max(looked, key=audit_order)["audit_id"] == audit_id)

    def lasting(self, audit: StoredAudit) -> Window | None:
        """From the first to the last minute at which no two newer audits looked; None: no minute.

        Newer by what they looked at, or by when they ran: readers go by either.
        """
        own = Window(audit["window_start"], audit["window_end"])
        found = [
            part
            for order in (audit_order, _run_order)
            for part in _less_looked_at(own, self._newer(audit, own, order))
        ]
        return _widened(None, found)

    def _newer(
        self, audit: StoredAudit, own: Window, order: Callable[[StoredAudit], AuditOrder]
    ) -> list[Window]:
        newer = (row for row in self.of(own) if order(row) > order(audit))
        spans = (own.common(Window(row["window_start"], row["window_end"])) for row in newer)
        return [span for span in spans if span is not None]


def _run_order(audit: StoredAudit) -> AuditOrder:
    return ended_at(audit), audit["as_of"], audit["audit_id"]


def _less_looked_at(own: Window, newer: Sequence[Window]) -> list[Window]:
    """The parts of a time that fewer than two of these cover."""
    edges = {own.start, own.end} | {edge for span in newer for edge in (span.start, span.end)}
    parts = [Window(start, end) for start, end in pairwise(sorted(edges))]
    return [part for part in parts if sum(new.covers(part.start) for new in newer) < _NEWEST]


def delete_superseded_cells(
    warehouse: Warehouse, audits: Sequence[StoredAudit], *, over_by: datetime
) -> int:
    """Deletes such cells of a stream's audits that were over before a time; says how many.

    By the table's log it knows which audits have some left, and reads no others.
    """
    known = AuditsInTime(audits)
    old = [row for row in known.all if ended_at(row) < over_by]
    lasting = {row["audit_id"]: known.lasting(row) for row in old}
    spans = _spans_of_cells(warehouse, old)
    going = {name: span for name, span in spans.items() if not _is_within(span, lasting[name])}
    minutes = _unsettled(warehouse, known, list(going.values()))
    gone = 0
    for name, span in going.items():
        kept = _widened(lasting[name], [minute for minute in minutes if span.covers(minute.start)])
        if not _is_within(span, kept):
            gone += warehouse.delete(CELLS, where=_outside(name, kept))
    return gone


def _spans_of_cells(warehouse: Warehouse, audits: Sequence[StoredAudit]) -> dict[str, Window]:
    """From which minute to which those of the audits have cells that have any."""
    windows = {row["audit_id"]: Window(row["window_start"], row["window_end"]) for row in audits}
    found: dict[str, Window] = {}
    for file in warehouse.files(CELLS, bounds=["bucket_start"]):
        name = file["partition.audit_id"]
        if name in windows:
            first, last = file.get("min.bucket_start"), file.get("max.bucket_start")
            span = windows[name]
            if first is not None and last is not None:
                span = Window(first, last + datetime.resolution)
            found[name] = _widened(found.get(name), [span]) or span
    return found


def _unsettled(warehouse: Warehouse, known: AuditsInTime, spans: Sequence[Window]) -> list[Window]:
    """The minutes in some times of which the newest audit saw messages on their way."""
    near = _widened(None, spans)
    looked = [row["audit_id"] for row in known.of(near) if row["pending"] != 0] if near else []
    if near is None or not looked:
        return []
    cells = warehouse.columns(
        CELLS,
        names=["audit_id", "bucket_start", "bucket_end", "pending"],
        where=pc.field("audit_id").isin(looked)
        & (pc.field("pending") > 0)
        & (pc.field("bucket_start") >= pc.scalar(near.start))
        & (pc.field("bucket_start") < pc.scalar(near.end)),
    )
    if cells is None:
        return []
    minutes = cells.group_by(["audit_id", "bucket_start", "bucket_end"]).aggregate([]).to_pylist()
    return [
        Window(one["bucket_start"], one["bucket_end"])
        for one in minutes
        if known.is_newest(one["audit_id"], one["bucket_start"])
    ]


def _widened(span: Window | None, more: Sequence[Window]) -> Window | None:
    """From the first start to the last end of them all; None: there is none."""
    spans = [*more, *([] if span is None else [span])]
    if not spans:
        return None
    return Window(min(one.start for one in spans), max(one.end for one in spans))


def _is_within(span: Window, kept: Window | None) -> bool:
    return kept is not None and kept.start <= span.start and span.end <= kept.end


def _outside(audit_id: str, kept: Window | None) -> str:
    of_audit = has_values({"audit_id": [audit_id]})
    if kept is None:
        return of_audit
    early, inside = (is_before("bucket_start", edge) for edge in (kept.start, kept.end))
    return f"{of_audit} AND ({early} OR NOT {inside})"
