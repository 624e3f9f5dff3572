"""The name of an audit, and which of two looked later."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shardaudit.model.window import Window

AuditOrder = tuple[datetime, datetime, str]

_STAMP = "%Y%m%dT%H%M%SZ"
_NEVER = datetime.min.replace(tzinfo=UTC)


def audit_id(stream: str, window: Window, as_of: datetime, config_digest: str) -> str:
    """The id under which this audit is stored; `window` is already aligned to the stream's bucket.

    Running the same audit again finds the same id, so that its rows are replaced, not doubled.
    """
    identity = "\n".join(
        (stream, window.start.isoformat(), window.end.isoformat(), as_of.isoformat(), config_digest)
    )
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return f"{stream}-{window.start:{_STAMP}}-{window.end:{_STAMP}}-{digest}"


def audit_order(row: Mapping[str, Any]) -> AuditOrder:  # a row of `audits`, of any types
    """The key by which audits sort as they looked: by their time, then by when they ran."""
    return row["as_of"], row["started_at"] or _NEVER, row["audit_id"]
