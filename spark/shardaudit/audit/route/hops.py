"""What the places between producer and sink say of an audit's window, and of what it found.

They say where a message was seen, and so how far it came; and what they alone saw.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.comparison import Comparison
from shardaudit.audit.looked_into import FEW_IDS
from shardaudit.audit.route.beyond_window import losses_before, silent_places, traces_begin
from shardaudit.audit.route.filtered import Filtered
from shardaudit.audit.route.lost_on_hops import lost_on_hops
from shardaudit.audit.route.place_counts import SeenAlike, place_counts, with_unread
from shardaudit.audit.rules.canary.canary_answers import is_canary
from shardaudit.audit.rules.drill_down import with_hash
from shardaudit.audit.rules.findings import KEY
from shardaudit.audit.rules.hours import slot
from shardaudit.ingest.producer_numbers import producer_lines
from shardaudit.ingest.rules.sighted import seen_at
from shardaudit.ingest.sightings import sightings_near
from shardaudit.model.route.dark_places import LandedMinutes
from shardaudit.model.route.lost_hops import (
    HopLine,
    LostHops,
    TracedAlike,
    hop_lines,
    lost_before,
    lost_hops_as_json,
    place_of,
)
from shardaudit.model.route.route import SINK, Route, Sighting
from shardaudit.model.route.trace_loss import (
    FEW_TRACED,
    Traced,
    as_if_always,
    end_losses,
    is_thin,
    too_new,
    trace_losses,
    usual_losses,
    with_minutes,
)
from shardaudit.model.verdict import FILTERED, Kind
from shardaudit.model.window import Window, coalesced
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.warehouse import Warehouse

_LOCATED = (Kind.MISSING.value, Kind.DUPLICATED.value)
_PLACED = ("location", "hops")
_ALIKE = ("bucket_start", "kind", "seen")
_HOP_DDL = (
    "bucket_start timestamp, kind string, seen string, placed_location string, placed_hops string"
)


def with_hops(
    warehouse: Warehouse,
    request: AuditRequest,
    found: DataFrame,
    cells: DataFrame,
    *,
    comparison: Comparison,
) -> tuple[DataFrame, tuple[AuditedPlace, ...], Set[tuple[str, datetime]]]:
    """What was found, with where each lost or doubled message was; and the route's places.

    And the places and buckets with messages that no producer traced, and that did not land.

    Input:
        found: of `kinds`; cells: of `judged_cells`.
    """
    route = request.stream.route
    if not route.places:
        return found, (), set()
    counts = place_counts(warehouse, request, cells, comparison.filtered)
    of_window = counts.of_window()
    begins = traces_begin(warehouse, request, of_window.later, counts.cells)
    window, unknown = _with_new(route, of_window.traced, counts.landed_since(begins))
    out = {hop.location: hop.told_left_out for hop in of_window.places}
    unsent = counts.unsent()
    hops = _with_unsent(_with_filtered(of_window.places, comparison), unsent, begins)
    is_told = F.col("kind").isin(*_LOCATED) & ~is_canary("message_id")
    sought = found.where(is_told).select(*KEY, "bucket_start").localCheckpoint()
    told = _seen(warehouse, request, sought, comparison.apart)
    silent = silent_places(warehouse, request, hops)
    lost = LostHops(route, silent, left_out=out, lacking=_lacking(warehouse, request))
    if told is None:
        hops = _with_lost(hops, (), lost, of_window.missing)
        return found, _with_losses(hops, window, route, unknown), unsent.keys()
    groups = _groups(told, request, comparison.filtered)
    landed, exact = counts.landed([group for group in groups if group.is_missing], told)
    window, usual = with_minutes(window, landed, exact, begins)
    lost = _with_usual(warehouse, request, lost, usual)
    known = counts.whole() | {start: landed[start] for start in exact}
    dark, losses = LandedMinutes(route, known, begins).dark(landed, lost.trace_losses)
    lost = replace(lost, trace_losses=losses)
    minutes = with_unread(warehouse, request, landed, groups, dark)
    alike = lost_on_hops(groups, minutes, lost, begins)
    answers = own_rows(warehouse.spark, _answers(groups, alike, route), _HOP_DDL)
    # Unique on these columns on the right, by the grouping.
    placed = told.join(F.broadcast(answers), list(_ALIKE), how="inner")
    hops = _with_lost(hops, alike, lost, of_window.missing)
    return _placed(found, placed), _with_losses(hops, window, route, unknown), unsent.keys()


def _lacking(warehouse: Warehouse, request: AuditRequest) -> Mapping[str, int]:
    """By place that tells what it leaves out, how many traces its log numbered and nobody read.

    Of the audit's sample, where the log numbers all; where it numbers the sample alone, too few.
    """
    telling = request.stream.route.telling
    if not telling:
        return {}
    span, as_of = request.aligned, request.as_of
    lacking = Counter[str]()
    for line in producer_lines(warehouse, request.name, span, as_of=as_of, among=telling):
        lacking[line.location] += line.dropped + line.lost
    return {name: int(n * request.stream.sample_rate) for name, n in lacking.items()}


def _with_usual(
    warehouse: Warehouse, request: AuditRequest, lost: LostHops, window: Traced
) -> LostHops:
    """With the usual losses, without any where they are not known."""
    route = lost.route
    before, ends_before = losses_before(warehouse, request) if is_thin(window) else ({}, {})
    losses = usual_losses(route, window, before)
    ends = end_losses(route, window, ends_before, least=FEW_TRACED)
    return replace(lost, trace_losses=losses, end_losses=ends)


def _answers(
    groups: Sequence[SeenAlike], alike: Sequence[TracedAlike], route: Route
) -> list[tuple[datetime, str, str, str | None, str | None]]:
    """Of each group its place and its hops: `_HOP_DDL`."""
    return [
        (
            *(group.bucket_start, group.kind, group.text),
            route.doubled_after(each.seen) if each.lost is None else place_of(each.lost),
            lost_hops_as_json(each.lost or ()),
        )
        for group, each in zip(groups, alike, strict=True)
    ]


def _with_filtered(
    hops: Sequence[AuditedPlace], comparison: Comparison
) -> tuple[AuditedPlace, ...]:
    """The places, with what each filter left out, and when that is not explained by its share."""
    filtered = comparison.filtered
    if filtered is None:
        return tuple(hops)
    by_itself = with_hash(comparison.classified.where(F.col("not_landed") == FILTERED))
    # Presence only.
    recent = filtered.recent.join(by_itself.select("id_hash"), ["id_hash"], how="left_semi")
    known = filtered.settled.select("filter").union(recent.select("filter"))
    ids = {row["filter"]: row["count"] for row in collected(known.groupBy("filter").count())}
    told = {
        each.places[0]: {"filtered": ids.get(n, 0), "unexplained": filtered.times[n]}
        for n, each in enumerate(filtered.of)
    }
    names = {name for each in filtered.of for name in each.places}
    return tuple(
        replace(hop, **told.get(hop.location, {}), is_filter=hop.location in names) for hop in hops
    )


def _with_unsent(
    hops: Sequence[AuditedPlace],
    unsent: Mapping[tuple[str, datetime], int],
    begins: Mapping[str, datetime],
) -> tuple[AuditedPlace, ...]:
    """The places, with what they traced beyond all that was sent, or landed; and since when."""
    ids = Counter[str]()
    for (name, _), more in unsent.items():
        ids[name] += more
    return tuple(
        replace(hop, unsent=ids[hop.location], traces_since=begins.get(hop.location))
        for hop in hops
    )


def _groups(told: DataFrame, request: AuditRequest, filtered: Filtered | None) -> list[SeenAlike]:
    """What was found, those alike as one."""
    route, bucket = request.stream.route, request.stream.bucket
    rows = collected(told.groupBy(*_ALIKE).count())
    return [_group(row, route, filtered, bucket=bucket) for row in rows]


def _group(row: Row, route: Route, filtered: Filtered | None, *, bucket: timedelta) -> SeenAlike:
    """What a row tells; what a filter lost, though it may leave some out, it was to pass on."""
    hour = Window(row.bucket_start, row.bucket_start + bucket).aligned(slot(bucket)).start
    lost_at = filtered.lost_at(hour) if filtered and row.kind == Kind.MISSING.value else ()
    sightings = {}
    for told in filter(None, row.seen.split(",")):
        name, received, sent, left_out = told.split(":")
        if name in route.places:  # an earlier configuration may have had another
            sent_on = max(int(sent), int(name in lost_at))
            sightings[name] = Sighting(int(received), sent_on, int(left_out))
    return SeenAlike(row.bucket_start, row.kind, row.seen, row["count"], sightings)


def _with_new(route: Route, window: Traced, since: Mapping[str, int]) -> tuple[Traced, Set[str]]:
    """`as_if_always`, and the places of which that says nothing."""
    return as_if_always(route, window, since), too_new(route, since, landed=window.landed)


def _with_losses(
    hops: Sequence[AuditedPlace], window: Traced, route: Route, unknown: Set[str]
) -> tuple[AuditedPlace, ...]:
    losses = {n: loss for n, loss in trace_losses(route, window).items() if n not in unknown}
    ends = end_losses(route, window, {}, least=FEW_TRACED)
    return tuple(
        replace(hop, trace_loss=losses.get(hop.location), end_loss=ends.get(hop.location))
        for hop in hops
    )


def _with_lost(
    hops: Sequence[AuditedPlace], named: Sequence[TracedAlike], lost: LostHops, missing: int
) -> tuple[AuditedPlace, ...]:
    """The places, each with what was lost before it, the ways to it, and the one to the sink.

    Messages of gaps are not looked up: each may have been lost on any hop.

    Input:
        missing: messages, also those of gaps.
    """
    alike = list(named)
    in_gaps = missing - sum(each.ids for each in named if each.lost is not None)
    if in_gaps > 0:
        alike.append(TracedAlike(in_gaps, {}, lost.unknowing().of({}), lost.silent))
    surely, doubtful = lost_before((each.ids, each.lost) for each in alike if each.lost is not None)
    by_place = defaultdict[str, list[HopLine]](list)
    for way in hop_lines(lost.route, alike):
        by_place[way.after if way.before == SINK else way.before].append(way)
    on_hops = sum(each.ids for each in named if each.lost)
    return tuple(
        replace(
            hop,
            lost=surely[hop.location],
            doubtful=doubtful[hop.location],
            ways=tuple(by_place[hop.location]),
            on_hops=on_hops,
        )
        for hop in hops
    )


def _placed(found: DataFrame, told: DataFrame) -> DataFrame:
    """What was found, with the places that it is told of."""
    new = [f"placed_{name}" for name in _PLACED]
    placed = told.select(*KEY, *new, F.lit(True).alias("is_placed"))
    is_placed = F.col("is_placed")
    values = {n: F.when(is_placed, F.col(f"placed_{n}")).otherwise(F.col(n)) for n in _PLACED}
    # Unique on the key on the right, as what was found is.
    both = found.join(placed, KEY, how="left").withColumns(values)
    return both.drop(*new, "is_placed").localCheckpoint()


def _seen(
    warehouse: Warehouse, request: AuditRequest, sought: DataFrame, apart: DataFrame
) -> DataFrame | None:
    """What was found, with `seen` of `seen_at`, empty where nobody saw it; None: there is nothing.

    Input:
        sought: KEY, `bucket_start`; read; apart: of `Comparison`: places saw an attempt that its
            producer stamped anew at the time of its own.
    """
    buckets = collected(sought.groupBy("bucket_start").count())
    if not buckets:
        return None
    ids = sought.select("message_id").distinct()
    if sum(row["count"] for row in buckets) <= FEW_IDS:
        ids = F.broadcast(ids)
    # Presence only.
    anew = apart.join(ids, ["message_id"], how="left_semi")
    times = collected(anew.select("bucket_start", "counted_in").distinct())
    starts = {row.bucket_start for row in buckets}.union(*times)
    bucket = request.stream.bucket
    windows = coalesced(starts, width=bucket)
    sightings = sightings_near(warehouse, request.name, windows, bucket=bucket)
    # Presence only.
    seen = seen_at(sightings.join(ids, ["message_id"], how="left_semi"))
    # Unique on the id on the right, by its grouping.
    told = sought.join(seen, ["message_id"], how="left")
    return told.withColumn("seen", F.coalesce("seen", F.lit(""))).localCheckpoint()
