"""When a stream was last read, audited and watched; read by delta-rs, without Spark."""

from datetime import datetime

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.audit_id import newest_audit
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, BATCHES
from shardaudit.report.health import Health
from shardaudit.store.audits import done_batches, newest_watch, published_of

_SIDES = ("traces", "sink")


def read_health(settings: Settings, stream: str, *, now: datetime) -> Health:
    """The stream's health.

    Raises:
        WarehouseUnreadableError: the place does not answer.
    """
    watched = newest_watch(settings, stream, now=now)
    return Health(
        read_at=last_read(settings, stream),
        audited_at=_audited_at(settings, stream),
        watched_at=max((row["observed_at"] for row in watched), default=None),
    )


def last_read(settings: Settings, stream: str) -> datetime | None:
    """When something new was last read, of the side for which that is longer ago; None: never."""
    names = ["stream", "side", "state", "done_at"]
    found = DeltaRs(settings.warehouse, settings.aws).columns(
        BATCHES, names=names, where=done_batches(stream)
    )
    if found is None:
        return None
    by_side = found.group_by("side").aggregate([("done_at", "max")]).to_pylist()
    newest = {row["side"]: row["done_at_max"] for row in by_side}
    times = [newest[side] for side in _SIDES if newest.get(side) is not None]
    return min(times) if len(times) == len(_SIDES) else None


def _audited_at(settings: Settings, stream: str) -> datetime | None:
    """The "now" of the published audit that reaches furthest."""
    names = ["audit_id", "stream", "status", "window_end", "as_of", "started_at"]
    found = DeltaRs(settings.warehouse, settings.aws).columns(
        AUDITS, names=names, where=published_of(stream)
    )
    newest = newest_audit([] if found is None else found.to_pylist())
    return newest["as_of"] if newest else None
