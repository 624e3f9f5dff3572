"""Lands the sink's rows in commits, as a consumer that flushes every hour does."""

import logging

import duckdb

from shardaudit.simulate.folder import SinkTable

COLUMNS = "message_id, shard_id, sequence_number, sent_at, landed_at, arrived_at, day, payload"

log = logging.getLogger(__name__)


def land_by_hour(engine: duckdb.DuckDBPyConnection, sink: SinkTable) -> None:
    """Appends `sink_rows` in the order of landing, a commit for each hour."""
    hours = engine.execute("""
        select distinct epoch_ms(landed_at) // 3600000 as hour from sink_rows order by hour
    """).fetchall()
    for (hour,) in hours:
        land(engine, sink, where=f"epoch_ms(landed_at) // 3600000 = {hour}")
    log.info("landed in %s commits", len(hours))


def land(engine: duckdb.DuckDBPyConnection, sink: SinkTable, *, where: str) -> None:
    """Appends the sink's rows of a condition in one commit."""
    query = f"select {COLUMNS} from sink_rows where {where} order by landed_at, message_id"  # noqa: S608 - our own conditions
    sink.append(engine.cursor().sql(query).to_arrow_reader(100_000))
