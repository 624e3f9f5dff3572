"""What the places between producer and sink say of an audit's window, and of what it found.

They change no verdict: they say where a message was seen, and so how far it came.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.looked_into import FEW_IDS
from shardaudit.audit.rules.canary_answers import is_canary, without_canary
from shardaudit.audit.rules.findings import KEY
from shardaudit.ingest.rules.sighted import seen_at
from shardaudit.ingest.sightings import sighting_counts, sightings_within
from shardaudit.model.config.settings import DAY
from shardaudit.model.lost_hops import LostHops, lost_hops_as_json, place_of
from shardaudit.model.route import Sighting
from shardaudit.model.verdict import Kind
from shardaudit.model.window import SCAN_WINDOWS, Window, joined
from shardaudit.report.summary import HopLine
from shardaudit.store.warehouse import Warehouse

_LOCATED = (Kind.MISSING.value, Kind.DUPLICATED.value)
_NOTHING = Row(received=0, sent=0, of_landed=0)
_PLACED = ("location", "hops")
_HOP_DDL = "kind string, seen string, placed_location string, placed_hops string"


def hop_lines(warehouse: Warehouse, request: AuditRequest, cells: DataFrame) -> tuple[HopLine, ...]:
    """What each place of the stream's route traced of the window, in the route's order.

    Input:
        cells: of `judged_cells`.
    """
    route = request.stream.route
    if not route.hops:
        return ()
    counts = ("received", "sent")
    traced = (
        sighting_counts(warehouse, request.name, request.aligned)
        .groupBy("location", "bucket_start")
        .agg(*(F.sum(name).alias(name) for name in counts))
    )
    matched = without_canary(cells).groupBy("bucket_start").agg(F.sum("matched").alias("matched"))
    # Unique on the bucket on the right, by its grouping.
    both = traced.join(matched, ["bucket_start"], how="left").withColumn(
        "of_landed", F.least(F.greatest(*counts), F.coalesce("matched", F.lit(0)))
    )
    sums = both.groupBy("location").agg(*(F.sum(n).alias(n) for n in (*counts, "of_landed")))
    found = {row.location: row for row in collected(sums)}
    landed = sum(row.matched for row in collected(matched.agg(F.sum("matched").alias("matched"))))
    return tuple(
        HopLine(
            location=name,
            after=hop.after,
            share=hop.share,
            received=row.received,
            sent=row.sent,
            coverage=row.of_landed / landed if landed else None,
        )
        for name, hop in route.hops.items()
        for row in [found.get(name, _NOTHING)]
    )


def with_hops(
    warehouse: Warehouse, request: AuditRequest, found: DataFrame, hops: Sequence[HopLine]
) -> DataFrame:
    """What was found, with the place of the route that each lost or doubled message is told of.

    Input:
        found: of `kinds`; hops: of `hop_lines`.
    """
    route = request.stream.route
    is_told = F.col("kind").isin(*_LOCATED) & ~is_canary("message_id")
    if not route.hops:
        return found
    sought = found.where(is_told).select(*KEY, "bucket_start").localCheckpoint()
    told = _seen(warehouse, request, sought)
    if told is None:
        return found
    lost = LostHops(route, _silent(warehouse, request, hops))
    pairs = collected(told.select("kind", "seen").distinct())
    answers = [(row.kind, row.seen, *_placed(lost, row.kind, row.seen)) for row in pairs]
    places = F.broadcast(own_rows(warehouse.spark, answers, _HOP_DDL))
    # Unique on both columns on the right.
    placed = told.join(places, ["kind", "seen"], how="inner")
    new = [f"placed_{name}" for name in _PLACED]
    placed = placed.select(*KEY, *new, F.lit(True).alias("is_placed"))
    is_placed = F.col("is_placed")
    # Unique on the key on the right, as what was found is.
    return (
        found.join(placed, KEY, how="left")
        .withColumns(
            {n: F.when(is_placed, F.col(f"placed_{n}")).otherwise(F.col(n)) for n in _PLACED}
        )
        .drop(*new, "is_placed")
        .localCheckpoint()
    )


def _silent(warehouse: Warehouse, request: AuditRequest, hops: Sequence[HopLine]) -> frozenset[str]:
    """The places of which nothing is known in a day or longer: not just of these minutes."""
    names = frozenset(line.location for line in hops if line.is_silent)
    if not names:
        return names
    window = request.judged_over or request.aligned
    wide = Window(min(window.start, request.aligned.end - DAY), request.aligned.end)
    counts = sighting_counts(warehouse, request.name, wide)
    return names - {row.location for row in collected(counts.select("location").distinct())}


def _seen(warehouse: Warehouse, request: AuditRequest, sought: DataFrame) -> DataFrame | None:
    """What was found, with `seen` of `seen_at`, empty where nobody saw it; None: there is nothing.

    Input:
        sought: KEY, `bucket_start`; read.
    """
    buckets = collected(sought.groupBy("bucket_start").count())
    if not buckets:
        return None
    ids = sought.select("message_id").distinct()
    if sum(row["count"] for row in buckets) <= FEW_IDS:
        ids = F.broadcast(ids)
    bucket = request.stream.bucket
    near = joined(
        # A place's time may be cut otherwise than the producer's.
        (Window(row.bucket_start - bucket, row.bucket_start + 2 * bucket) for row in buckets),
        most=SCAN_WINDOWS,
    )
    sightings = sightings_within(warehouse, request.name, near)
    # Presence only.
    seen = seen_at(sightings.join(ids, ["message_id"], how="left_semi"))
    # Unique on the id on the right, by its grouping.
    told = sought.join(seen, ["message_id"], how="left")
    return told.withColumn("seen", F.coalesce("seen", F.lit(""))).localCheckpoint()


def _placed(lost: LostHops, kind: str, seen: str) -> tuple[str | None, str | None]:
    """Its `location` and its `hops`."""
    sightings = {}
    for told in filter(None, seen.split(",")):
        name, received, sent = told.split(":")
        if name in lost.route.hops:  # an earlier configuration may have had another
            sightings[name] = Sighting(int(received), int(sent))
    if kind != Kind.MISSING.value:
        return lost.route.doubled_after(sightings), None
    hops = lost.of(sightings)
    return place_of(hops), lost_hops_as_json(hops)
