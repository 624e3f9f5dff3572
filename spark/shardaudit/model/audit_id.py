"""The name of an audit, which of two looked later, and which one speaks for its stream."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from shardaudit.model.config.eras import CellShape, eras_of_values
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.window import NEVER, Window

StoredAudit = Mapping[str, Any]  # a row of `audits`: types as model/tables/audit_tables.py says
AuditOrder = tuple[datetime, datetime, str]

_STAMP = "%Y%m%dT%H%M%SZ"


def audit_id(stream: str, window: Window, as_of: datetime, config_digest: str) -> str:
    """The id under which this audit is stored; `window` is already aligned to the stream's bucket.

    Running the same audit again finds the same id, so that its rows are replaced, not doubled.
    """
    identity = "\n".join(
        (stream, window.start.isoformat(), window.end.isoformat(), as_of.isoformat(), config_digest)
    )
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return f"{stream}-{window.start:{_STAMP}}-{window.end:{_STAMP}}-{digest}"


def audit_order(row: StoredAudit) -> AuditOrder:
    """The key by which audits sort as they looked: by their time, then by when they ran."""
    return row["as_of"], row["started_at"] or NEVER, row["audit_id"]


def ended_at(row: StoredAudit) -> datetime:
    """When an audit was over, whatever time it looked at: the last one moved the watermark.

    Not when it began: what came late is audited by the same run, which began once.
    """
    at: datetime = row["finished_at"] or row["started_at"] or row["as_of"]
    return at


def audit_reach(row: StoredAudit) -> tuple[datetime, AuditOrder]:
    """The key by which audits sort as they reach: by their window's end, then as they looked."""
    return row["window_end"], audit_order(row)


def late_of(row: StoredAudit) -> str | None:
    """The audit with whose window it went, as what came late before it; None: it is for itself."""
    inputs: dict[str, Any] = json.loads(row.get("inputs") or "{}")
    return inputs.get("late_of")


def shape_of(row: StoredAudit, usual: CellShape) -> CellShape:
    """How the ids of an audit were put into cells; as usual where one of before does not say it."""
    said = json.loads(row.get("inputs") or "{}").get("shape")
    return eras_of_values(said).first if said else usual


def published_audits(rows: Iterable[StoredAudit]) -> list[StoredAudit]:
    """Those that came through their gates."""
    return [row for row in rows if row["status"] == AuditStatus.PUBLISHED]


def newest_audit(rows: Iterable[StoredAudit]) -> StoredAudit | None:
    """The published audit that reaches furthest: one of a part, as after a backfill, is older."""
    return max(published_audits(rows), key=audit_reach, default=None)
