"""Which places of a route are new in a time: what landed before they traced says nothing of them.

New is what traces later than something had landed, and of which neither the day before nor an audit
of that time has a trace. What stopped and traces again is not.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.audit_id import StoredAudit
from shardaudit.model.config.settings import DAY
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.window import Window
from shardaudit.report.route_lines import hops_from_json
from shardaudit.store.audits import published_of
from shardaudit.store.places.place_sightings import Sighted, counted_at_places
from shardaudit.store.read_deliveries import Deliveries


def new_places_in(
    tables: DeltaRs, name: str, deliveries: Deliveries, sighted: Sighted
) -> dict[str, datetime]:
    """When the traces of places begin that are new in the time that audits looked at.

    As an audit of that time would say it, and the audits that looked at what is before it say.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    landed = sorted(at for at, of in deliveries.buckets.items() if of.landed_ids)
    begins = {of: at for of, at in sighted.begins().items() if landed and landed[0] < at}
    if not begins:
        return {}
    start = min(deliveries.buckets)
    for batch in counted_at_places(tables, name, Window(start - DAY, start)):
        for place in pc.unique(batch.column("location")).to_pylist():
            begins.pop(place, None)
        if not begins:
            return {}
    audits = tables.rows(AUDITS, where=published_of(name) & (pc.field("window_start") < start))
    return untold_before(start, begins, audits)


def untold_before(
    start: datetime, begins: Mapping[str, datetime], audits: Iterable[StoredAudit]
) -> dict[str, datetime]:
    """Those places of which no audit knows that they traced anything before a time."""
    told = {
        hop.location
        for row in audits
        for hop in hops_from_json(row["hops"])
        if not hop.is_silent and (hop.traces_since is None or hop.traces_since < start)
    }
    return {name: at for name, at in begins.items() if name not in told}
