"""Writes traces and sink straight to files, without a stream: for millions of messages."""

import logging
from pathlib import Path

import duckdb

from shardaudit.simulate.folder import SinkTable
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.sink import land

TRACE_COLUMNS = (
    "message_id, stream, shard_id, sequence_number, sent_at, location, attempt, producer_id, "
    "acked_at"
)
# Messages a file: few enough to sort in memory, enough for files of a good size.
CHUNK = 500_000

log = logging.getLogger(__name__)


def write_files(
    engine: duckdb.DuckDBPyConnection, scenario: Scenario, *, traces: Path, sink: SinkTable
) -> None:
    """Writes `traces` as Parquet files and appends `sink_rows`, both in the order of time."""
    traces.mkdir(parents=True, exist_ok=True)
    for nth, start in enumerate(range(0, scenario.messages, CHUNK)):
        where = f"i >= {start} and i < {start + CHUNK}"
        query = f"select {TRACE_COLUMNS} from traces where {where} order by sent_at, message_id"  # noqa: S608 - whole numbers
        path = traces / f"{scenario.stream}-{nth:05d}.parquet"
        engine.sql(query).write_parquet(str(path), compression="zstd")
        land(engine, sink, where=where)
        done = min(start + CHUNK, scenario.messages)
        log.info("wrote %s of %s messages", f"{done:,}", f"{scenario.messages:,}")
