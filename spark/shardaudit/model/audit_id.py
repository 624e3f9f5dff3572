"""The name of an audit: the same window, time and configuration give the same name."""

import hashlib
from datetime import datetime

from shardaudit.model.window import Window

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
