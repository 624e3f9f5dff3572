"""Whether what the watch saw must be looked at by id before the nightly audit comes to it."""

from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.verdict import Level
from shardaudit.model.window import Window
from shardaudit.store.audits import read_rows, watch_since

# An audit that fails, or finds new holes each time, is not asked for again before.
AGAIN_AFTER = timedelta(hours=1)
RECENT = timedelta(days=1)  # a watch that is older says nothing about now


def audit_wanted(settings: Settings, name: str, *, now: datetime) -> Window | None:
    """The time of the stream that an audit must look at now; None when there is no hurry.

    Around the cells of which both sides differ, that the consumer is past and no audit has named,
    on the shards where they are near their deadline.
    """
    rows = [
        row
        for row in watch_since(settings, name, since=now - RECENT)
        if row["audit_level"] and Level(row["audit_level"]).is_alarm
    ]
    if not rows:
        return None
    window = Window(
        min(row["unnamed_since"] for row in rows), max(row["unnamed_until"] for row in rows)
    )
    audits = read_rows(settings, AUDITS, where=pc.field("stream") == name)
    tried = [
        row["started_at"] or row["as_of"]
        for row in audits
        if row["window_start"] <= window.start < row["window_end"]
    ]
    return None if tried and now - max(tried) < AGAIN_AFTER else window
