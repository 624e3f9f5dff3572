"""When a stream was last read, audited and watched; read by delta-rs, without Spark."""

from datetime import datetime

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, BATCHES
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.report.health import Health
from shardaudit.report.plain import instant
from shardaudit.store.audits import (
    done_batches,
    is_ahead,
    newest_watch,
    of_stream,
    published_of,
)

_SIDES = ("traces", "sink")
# What is done, in which table, by its name, when; and which rows of a stream say so.
_DONE = (
    ("the audit", AUDITS, "audit_id", "started_at", published_of),
    ("the batch", BATCHES, "batch_id", "done_at", done_batches),
    ("a watch of", SHARDS, "stream", "observed_at", of_stream),
)
_SHOWN = 3


def read_health(settings: Settings, stream: str, *, now: datetime) -> Health:
    """The stream's health.

    Raises:
        WarehouseUnreadableError: the place does not answer.
    """
    watched = newest_watch(settings, stream, now=now)
    return Health(
        read_at=last_read(settings, stream, now=now),
        audited_at=_audited_at(settings, stream, now=now),
        watched_at=max((row["observed_at"] for row in watched), default=None),
        to_come=read_to_come(settings, stream, now=now),
    )


def read_to_come(settings: Settings, stream: str, *, now: datetime) -> tuple[str, ...]:
    """What was done at a time that has not come yet, as by a clock that was wrong: the last ones.

    Each in a phrase; it counts neither as the newest nor as recent.
    """
    tables, found = DeltaRs(settings.warehouse, settings.aws), set[tuple[datetime, str]]()
    for what, table, name, at, rows_of in _DONE:
        mine = rows_of(stream) & is_ahead(at, now)
        names = {"stream", name, at, *({"status", "state"} & {*table.names})}
        rows = tables.columns(table, names=sorted(names), where=mine)
        found |= {(row[at], f"{what} {row[name]}") for row in (rows.to_pylist() if rows else ())}
    last = sorted(found, reverse=True)[:_SHOWN]
    return tuple(f"{name} is of {instant(at)}, which is still to come" for at, name in last)


def last_read(settings: Settings, stream: str, *, now: datetime) -> datetime | None:
    """When something new was last read, of the side for which that is longer ago; None: never."""
    names = ["stream", "side", "state", "done_at"]
    found = DeltaRs(settings.warehouse, settings.aws).columns(
        BATCHES, names=names, where=done_batches(stream) & ~is_ahead("done_at", now)
    )
    if found is None:
        return None
    by_side = found.group_by("side").aggregate([("done_at", "max")]).to_pylist()
    newest = {row["side"]: row["done_at_max"] for row in by_side}
    times = [newest[side] for side in _SIDES if newest.get(side) is not None]
    return min(times) if len(times) == len(_SIDES) else None


def _audited_at(settings: Settings, stream: str, *, now: datetime) -> datetime | None:
    """The "now" of the published audit that reaches furthest."""
    names = ["audit_id", "stream", "status", "window_end", "as_of", "started_at"]
    found = DeltaRs(settings.warehouse, settings.aws).columns(
        AUDITS, names=names, where=published_of(stream) & ~is_ahead("as_of", now)
    )
    newest = newest_audit([] if found is None else found.to_pylist())
    return newest["as_of"] if newest else None
