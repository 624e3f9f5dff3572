"""Where traces and rows of the same id stand that its producer stamped with several times."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.rules.apart import other_places
from shardaudit.audit.rules.drill_down import with_hash
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import DAY
from shardaudit.model.tables.audit_tables import EVIDENCE
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse


def sent_edges(
    warehouse: Warehouse,
    name: str,
    ids: DataFrame,
    *,
    sent: tuple[datetime, datetime],
    shape: Eras,
) -> tuple[datetime, datetime]:
    """The first and the last instant (inclusive) of the buckets in which anything of the ids is.

    As far as it is known: a row without a trace is, once an audit saw it.

    Input:
        ids: `message_id`; sent: the least and the greatest `sent_at` that are known of them.
    """
    seen = warehouse.read(EVIDENCE).where(F.col("stream") == name)
    seen = seen.join(ids.select("message_id").distinct(), ["message_id"], how="left_semi")
    places = other_places(with_hash(ids), traced_apart(warehouse, name, sent))
    places = places.select("bucket_start").unionByName(seen.select("bucket_start"))
    ends = F.min("bucket_start").alias("first"), F.max("bucket_start").alias("last")
    [found] = collected(places.agg(*ends))
    known = [at for at in (*sent, found.first, found.last) if at is not None]
    covering = shape.aligned(Window(min(known), max(known) + datetime.resolution))
    return covering.start, covering.end - datetime.resolution


def edges_of_apart(
    warehouse: Warehouse, name: str, rows: DataFrame, *, shape: Eras
) -> tuple[datetime, datetime] | None:
    """As `sent_edges`, where an id of the rows has traces in several buckets; else None.

    Input:
        rows: `message_id`, `sent_at` (may be NULL), computed.
    """
    ends = F.min("sent_at").alias("first"), F.max("sent_at").alias("last")
    [found] = collected(rows.agg(*ends))
    if found.first is None:
        return None
    sent = (found.first, found.last)
    if other_places(with_hash(rows), traced_apart(warehouse, name, sent)).isEmpty():
        return None
    return sent_edges(warehouse, name, rows, sent=sent, shape=shape)


def traced_apart(warehouse: Warehouse, name: str, sent: tuple[datetime, datetime]) -> DataFrame:
    """The traces near these times that count in another bucket than their own: mostly few, or none.

    Output:
        `message_id`, `bucket_start`, `counted_in`.
    """
    first, last = sent
    days = Window(first, last + datetime.resolution).aligned(DAY)
    return StreamTraces(warehouse, name, ()).apart([days])
