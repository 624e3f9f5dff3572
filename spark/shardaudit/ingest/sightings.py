"""What the places between producer and sink traced: kept apart from the producer's traces.

No comparison of what was sent with what landed reads it: it says where a message was, not that it
was acknowledged.
"""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.batches import Batch, stored_rows
from shardaudit.ingest.rules.sighted import counted_sightings, handings_over, new_sightings
from shardaudit.ingest.stream_traces import StreamTraces, in_days
from shardaudit.ingest.trace_tally import TraceTally
from shardaudit.model.route.filters import filters
from shardaudit.model.route.route import Route
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS, SIGHTINGS, handed_over
from shardaudit.model.tables.table import Table
from shardaudit.model.window import SCAN_WINDOWS, Window, coalesced, joined
from shardaudit.store.warehouse import Warehouse


def append_sightings(
    warehouse: Warehouse, judged: DataFrame, batch: Batch, tally: TraceTally
) -> None:
    """Writes the traces of places that are new, and how many messages more there are by cell.

    Input:
        judged: `judged_traces`, good ones of places alone, read; tally: theirs.
    """
    if tally.buckets is None:
        return
    starts = [row.bucket_start for row in collected(judged.select("bucket_start").distinct())]
    near = coalesced(starts, width=timedelta(microseconds=1))
    known = sightings_within(warehouse, batch.stream, near)
    known = known.where(F.col("batch_id") != batch.batch_id)
    new = new_sightings(judged, known).localCheckpoint()
    _append(warehouse, new, SIGHTINGS, batch, most=tally.good)
    _append(warehouse, counted_sightings(new, known), SIGHTING_COUNTS, batch, most=tally.good)


def append_handed_over(warehouse: Warehouse, batch: Batch, place: str, tally: TraceTally) -> None:
    """Writes what the place handed over by a batch, from what is stored of its traces of places.

    Input:
        tally: of these.
    """
    if not tally.days:
        return
    table = handed_over(batch.stream, place)
    stored = stored_sightings(warehouse, batch)
    near = stored.where(F.col("sent_day").isin(sorted(tally.days)))
    warehouse.append(_handed_over(near, place), table, most=tally.good, retried=batch.retried)


def append_all_handed_over(warehouse: Warehouse, stream: str, place: str) -> None:
    """The same by all batches, where the place was not said to be the end of the stream yet."""
    table = handed_over(stream, place)
    if warehouse.files(table):
        return
    of_stream = warehouse.read(SIGHTINGS).where(F.col("stream") == stream)
    rows = _handed_over(of_stream, place).localCheckpoint()
    warehouse.append(rows, table, most=rows.count())


def _handed_over(sightings: DataFrame, place: str) -> DataFrame:
    rows = handings_over(sightings.where(F.col("location") == place))
    return rows.withColumn("sent_day", F.to_date("sent_at"))


def stored_sightings(warehouse: Warehouse, batch: Batch) -> DataFrame:
    """What is stored of a batch's traces of places: SIGHTINGS."""
    return stored_rows(warehouse, SIGHTINGS, batch)


def sightings_within(warehouse: Warehouse, stream: str, windows: Sequence[Window]) -> DataFrame:
    """The traces of a stream's places of messages that were sent in some windows: SIGHTINGS."""
    return _within(warehouse, SIGHTINGS, stream, windows)


def sightings_near(
    warehouse: Warehouse, stream: str, windows: Sequence[Window], *, bucket: timedelta
) -> DataFrame:
    """The same, also where a place cut the message's time into the bucket before or after."""
    return sightings_within(warehouse, stream, _widened(windows, bucket))


def sightings_for_filters(
    traces: StreamTraces, windows: Sequence[Window], route: Route, *, bucket: timedelta
) -> DataFrame:
    """`sightings_near` of the route's places; of a retry that was stamped anew, of its time, too.

    A filter may leave out what comes again, as it had passed on the attempt of the day before. The
    messages are those that count in the windows; nothing is looked up for a route without filters.
    """
    warehouse, stream, wide = traces.warehouse, traces.name, _widened(windows, bucket)
    is_of_route = F.col("location").isin(*route.places)
    own = sightings_within(warehouse, stream, wide).where(is_of_route)
    if not filters(route):
        return own
    is_beyond = ~in_windows(F.col("bucket_start"), wide)
    anew = traces.apart(windows).where(in_windows(F.col("counted_in"), windows) & is_beyond)
    ids = anew.select("message_id", "bucket_start").localCheckpoint()
    starts = [row.bucket_start for row in collected(ids.select("bucket_start").distinct())]
    if not starts:
        return own
    near = coalesced(starts, width=bucket)
    beyond = sightings_near(warehouse, stream, near, bucket=bucket).where(is_of_route & is_beyond)
    # Presence only.
    return own.unionByName(beyond.join(ids, ["message_id"], how="left_semi"))


def _widened(windows: Sequence[Window], bucket: timedelta) -> list[Window]:
    wide = (Window(window.start - bucket, window.end + bucket) for window in windows)
    return joined(wide, most=SCAN_WINDOWS)


def sighting_counts(warehouse: Warehouse, stream: str, window: Window) -> DataFrame:
    """How many traces of places there are of a window: SIGHTING_COUNTS."""
    return _within(warehouse, SIGHTING_COUNTS, stream, [window])


def _within(
    warehouse: Warehouse, table: Table, stream: str, windows: Sequence[Window]
) -> DataFrame:
    is_near = in_days(windows) & in_windows(F.col("bucket_start"), windows)
    return warehouse.read(table).where((F.col("stream") == stream) & is_near)


def _append(
    warehouse: Warehouse, rows: DataFrame, table: Table, batch: Batch, *, most: int
) -> None:
    whose = {"batch_id": F.lit(batch.batch_id), "stream": F.lit(batch.stream)}
    days = rows.withColumns(whose).withColumn("sent_day", F.to_date("bucket_start"))
    warehouse.append(days, table, most=most, retried=batch.retried)
