"""What each place of a stream's route had, lost, doubled and did not trace: without Spark."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.lost_hops import LostHop, lost_before, lost_hops_from_json
from shardaudit.model.route.route import SINK, Route
from shardaudit.model.route.trace_loss import Traced, trace_losses
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.verdict import STANDING, Kind
from shardaudit.model.window import unix_micros
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.store.cells import field_within, micros
from shardaudit.store.read_deliveries import Deliveries

_FINDING = ["kind", "location", "hops"]
_Sighted = Mapping[str, Mapping[datetime, tuple[int, int]]]  # by place and bucket: received, sent


def read_places(
    settings: Settings, name: str, deliveries: Deliveries
) -> tuple[list[PlaceLine], int | None]:
    """The producer, the route's places in its order, the sink; missing messages of no known hop.

    None of them, and None: no audit looked. What was lost before a place of which there is no
    trace, or doubled after it, nobody knows.

    Of the time that audits looked at; what was lost and doubled as findings stand now.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables, route = DeltaRs(settings.warehouse, settings.aws), settings.stream(name).route
    traced = _traced(tables, name, deliveries)
    lost, doubtful, doubled, placed = _found(tables, name, deliveries)
    whole, seconds = deliveries.whole, deliveries.whole.audited.total_seconds()
    if not seconds:
        return [], None
    had: dict[str, tuple[int | None, int | None]]
    had = {place: _summed(traced.get(place, {})) for place in route.places}
    silent = {place for place, counts in had.items() if not any(counts)}
    had = {PRODUCER: (None, whole.counts["sent"]), **had, SINK: (whole.landed_ids, None)}
    losses = _trace_losses(route, deliveries, traced)
    if whole.landed_ids:
        losses[PRODUCER] = whole.counts["untraced"] / whole.landed_ids
    after = {name: place.after for name, place in route.places.items()} | {SINK: route.last}
    lines = [
        PlaceLine(
            place,
            after.get(place, ()),
            received,
            sent,
            received_per_s=None if received is None else received / seconds,
            sent_per_s=None if sent is None else sent / seconds,
            lost=None if place in {PRODUCER, *silent} else lost[place],
            doubtful=None if place in {PRODUCER, *silent} else doubtful[place],
            doubled=None if place in {SINK, *silent} else doubled[place],
            trace_loss=losses.get(place),
        )
        for place, (received, sent) in had.items()
    ]
    return lines, max(0, whole.counts["missing"] - placed)


def _summed(buckets: Mapping[datetime, tuple[int, int]]) -> tuple[int, int]:
    return sum(n for n, _ in buckets.values()), sum(n for _, n in buckets.values())


def _traced(tables: DeltaRs, name: str, deliveries: Deliveries) -> _Sighted:
    """What the places traced in the buckets that audits looked at."""
    window = deliveries.window
    where = (
        (pc.field("stream") == name)
        & (pc.field("sent_day") >= pc.scalar(window.start.date()))
        & (pc.field("sent_day") <= pc.scalar(window.end.date()))
        & field_within("bucket_start", window.start, window.end)
    )
    found: dict[str, dict[datetime, tuple[int, int]]] = defaultdict(dict)
    columns = ["location", "bucket_start", "received", "sent"]
    for batch in tables.batches(SIGHTING_COUNTS, columns=columns, where=where):
        rows = pa.Table.from_batches([batch]).group_by(["location", "bucket_start"])
        for row in rows.aggregate([("received", "sum"), ("sent", "sum")]).to_pylist():
            at = in_utc(row)["bucket_start"]
            if at in deliveries.buckets:
                received, sent = found[row["location"]].get(at, (0, 0))
                added = (received + row["received_sum"], sent + row["sent_sum"])
                found[row["location"]][at] = added
    return found


def _trace_losses(route: Route, deliveries: Deliveries, traced: _Sighted) -> dict[str, float]:
    """By place, in the buckets in which all that was sent has landed: there all passed by it."""
    # Not so where a filter left some out: how many of these each place traced is not kept.
    buckets = deliveries.buckets
    whole = [at for at, of in buckets.items() if of.counts["matched"] == of.counts["sent"]]
    landed = sum(deliveries.buckets[at].landed_ids for at in whole)
    by_place = {
        place: sum(max(each.get(at, (0, 0))) for at in whole) for place, each in traced.items()
    }
    return trace_losses(route, Traced(landed, by_place))


def _found(
    tables: DeltaRs, name: str, deliveries: Deliveries
) -> tuple[Counter[str], Counter[str], Counter[str], int]:
    """Messages by place: that never reached it, that may not have, that were doubled after it.

    And how many missing ones are in the first two.
    """
    doubled = Counter[str]()
    missing: list[tuple[int, tuple[LostHop, ...]]] = []
    for kind, location, hops, count in _findings(tables, name, deliveries):
        if kind == Kind.DUPLICATED.value:
            doubled[location] += count
        else:
            missing.append((count, lost_hops_from_json(hops)))
    lost, doubtful = lost_before(missing)
    placed = sum(count for count, hops in missing if any(hop.before for hop in hops))
    return lost, doubtful, doubled, placed


def _findings(
    tables: DeltaRs, name: str, deliveries: Deliveries
) -> list[tuple[str, str, str | None, int]]:
    """How many messages have which kind, location and hops, in the time that audits looked at."""
    window, spans = deliveries.window, deliveries.audited
    where = (
        (pc.field("stream") == name)
        & pc.field("state").isin(STANDING)
        & pc.field("kind").isin([Kind.MISSING.value, Kind.DUPLICATED.value])
        & field_within("sent_at", window.start, window.end)
    )
    found = tables.columns(FINDINGS, names=["stream", "state", "sent_at", *_FINDING], where=where)
    if found is None or not spans:
        return []
    starts = np.array([unix_micros(span.start) for span in spans])
    ends = np.array([unix_micros(span.end) for span in spans])
    sent = micros(found["sent_at"])
    span = np.searchsorted(starts, sent, side="right") - 1
    is_audited = (span >= 0) & (sent < ends[span])
    counts = found.filter(pa.array(is_audited)).group_by(_FINDING).aggregate([([], "count_all")])
    return [(*(row[name] for name in _FINDING), row["count_all"]) for row in counts.to_pylist()]
