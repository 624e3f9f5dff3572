"""Reads a stream from its beginning to its end and keeps what the sink may get."""

import logging

import duckdb
import pyarrow as pa

from shardaudit.model.errors import FinalError
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stream import StreamPort
from shardaudit.simulate.stream_record import Record

REPORT_EVERY = 50_000

log = logging.getLogger(__name__)


class StreamContentError(FinalError, ValueError):
    """A stream that does not hold exactly what was put."""

    def __init__(self, stream: str, *, put: int, read: int, matched: int) -> None:
        super().__init__(
            f"stream {stream}: {put} records were put and {read} read, {matched} of them the same: "
            "does somebody else use the stream?"
        )


def consume(engine: duckdb.DuckDBPyConnection, stream: StreamPort, scenario: Scenario) -> None:
    """Makes `records` from what GetRecords brings and from `acks`.

    Raises:
        StreamContentError: something is there twice, or not at all.
    """
    stream.hold_clock(scenario.window.end)
    tables, rows = [], 0
    for page in stream.read():
        tables.append(_table(page))
        if (rows + len(page)) // REPORT_EVERY > rows // REPORT_EVERY:
            log.info("read %s records", f"{rows + len(page):,}")
        rows += len(page)
    read = pa.concat_tables(tables or [_table([])])
    engine.register("read_arrow", read)
    engine.execute("""
        create table records as
        select puts.i, attempt, position, puts.message_id::varchar as message_id,
            split_part(shard_id, '-', 2)::bigint as shard, shard_id, sequence_number, sent_ms,
            epoch_ms(arrived_at) as arrived_ms, draw, content::varchar as payload
        from acks join read_arrow using (shard_id, sequence_number) join puts using (position)
        where json_extract_string(content::varchar, '$.message_id') = puts.message_id::varchar
    """)
    engine.unregister("read_arrow")
    [(put, matched)] = engine.execute(
        "select (select count(*) from acks), (select count(*) from records)"
    ).fetchall()
    if not put == matched == read.num_rows:
        raise StreamContentError(scenario.stream, put=put, read=read.num_rows, matched=matched)


def _table(records: list[Record]) -> pa.Table:
    return pa.table(
        {
            "shard_id": pa.array([record.shard_id for record in records], pa.string()),
            "sequence_number": pa.array([r.sequence_number for r in records], pa.string()),
            "arrived_at": pa.array([r.arrived_at for r in records], pa.timestamp("us", "UTC")),
            "content": pa.array([record.content.decode() for record in records], pa.string()),
        }
    )
