"""Which audit knows best of which time: the one that looked there last."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shardaudit.model.audit_id import AuditOrder, audit_order
from shardaudit.model.window import Window
from shardaudit.store.cell_grid import Segment

Row = Mapping[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says


@dataclass(frozen=True, slots=True)
class AuditSpan:
    """The window of a published audit, and when it looked (the later sorts behind)."""

    audit_id: str
    window: Window
    looked: AuditOrder


def audit_spans(audits: Iterable[Row]) -> list[AuditSpan]:
    """The published audits, to be laid over each other."""
    return [
        AuditSpan(row["audit_id"], Window(row["window_start"], row["window_end"]), audit_order(row))
        for row in audits
        if row["status"] == "published"
    ]


def newest_segments(audits: Iterable[AuditSpan], window: Window) -> tuple[Segment, ...]:
    """The window cut so that each part belongs to the audit that looked at it last.

    A part that no audit looked at is in no segment.
    """
    free = [window]
    found: list[Segment] = []
    for audit in sorted(audits, key=lambda audit: audit.looked, reverse=True):
        left: list[Window] = []
        for part in free:
            start, end = max(part.start, audit.window.start), min(part.end, audit.window.end)
            if start >= end:
                left.append(part)
                continue
            found.append(Segment(audit.audit_id, start, end))
            left += [Window(part.start, start)] if part.start < start else []
            left += [Window(end, part.end)] if end < part.end else []
        free = left
    return tuple(sorted(found, key=lambda segment: segment.start))
