"""Puts every message on a stream, at its time; reads it again as the consumer that fills a sink."""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import duckdb
import pyarrow as pa

from shardaudit.model.errors import FinalError, RetryableError
from shardaudit.simulate.messages import payload, position_of, shard_id, step_ms
from shardaudit.simulate.scenario import Roles, Scenario
from shardaudit.simulate.stream import Ack, Put, Record, StreamPort

BATCH = 500  # Kinesis API, PutRecords
TRIES = 10
REPORT_EVERY = 50_000

log = logging.getLogger(__name__)


class PutFailedError(RetryableError, ConnectionError):
    """Records that the stream refused time and again."""

    def __init__(self, stream: str, failed: int) -> None:
        super().__init__(
            f"stream {stream} refused {failed} records {TRIES} times in a row: is it throttled?"
        )


def produce(
    engine: duckdb.DuckDBPyConnection, stream: StreamPort, scenario: Scenario, parts: Roles
) -> None:
    """Puts `puts` in their order, reshards where it is due, and makes the table `acks`.

    One row of `acks` is a put: `position`, `shard_id`, `sequence_number`.
    """
    stream.hold_clock(scenario.window.start)
    stream.create(shards=scenario.shards, retention=scenario.retention)
    acks = _Acks()
    # No batch reaches over one of these: what is behind gets the greater sequence numbers.
    cuts = sorted(position_of(message) for message in {parts.reshard_at, *parts.stuck.values()})
    for start, end in zip([0, *cuts], [*cuts, 4 * scenario.messages], strict=True):
        if start == position_of(parts.reshard_at):
            _reshard(stream, parts)
        for batch in _batches(engine, start, end):
            at = datetime.fromtimestamp(batch[0][2] / 1000, UTC)
            stream.hold_clock(at, step_ms=step_ms(scenario))
            acks.add([row[0] for row in batch], _put(stream, scenario, batch))
    engine.register("acks_arrow", acks.table())
    engine.execute("create table acks as select * from acks_arrow")
    engine.unregister("acks_arrow")


class _Acks:
    """The answers so far."""

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._acks: list[Ack] = []

    def add(self, positions: Sequence[int], acks: Sequence[Ack]) -> None:
        before = len(self._acks) // REPORT_EVERY
        self._positions += positions
        self._acks += acks
        if len(self._acks) // REPORT_EVERY > before:
            log.info("put %s records", f"{len(self._acks):,}")

    def table(self) -> pa.Table:
        return pa.table(
            {
                "position": pa.array(self._positions, pa.int64()),
                "shard_id": pa.array([ack.shard_id for ack in self._acks], pa.string()),
                "sequence_number": pa.array(
                    [ack.sequence_number for ack in self._acks], pa.string()
                ),
            }
        )


# position, attempt, slot_ms, message_id, hash_high, payload
_Row = tuple[int, int, int, str, int, str]


def _batches(engine: duckdb.DuckDBPyConnection, start: int, end: int) -> Iterator[list[_Row]]:
    cursor = engine.cursor()
    cursor.execute(f"""
        select position, attempt, slot_ms, message_id::varchar as message_id, hash_high, {payload()}
        from puts where position >= {start} and position < {end}
        order by position
    """)  # noqa: S608 - whole numbers
    while rows := cursor.fetchmany(BATCH):
        # A copy has no time of its own. Behind it the clock is set anew.
        ends = [index for index, (_, attempt, *_) in enumerate(rows, 1) if attempt > 1]
        for first, last in pairwise([0, *ends, len(rows)]):
            if first < last:
                yield rows[first:last]


def _put(stream: StreamPort, scenario: Scenario, batch: Sequence[_Row]) -> list[Ack]:
    """The answers to one batch; what failed is put again until it succeeds."""
    puts = [
        Put(partition_key=message_id, hash_key=str(hash_high << 64), content=content.encode())
        for _, _, _, message_id, hash_high, content in batch
    ]
    answers: list[Ack | None] = [None] * len(puts)
    for _ in range(TRIES):
        open_puts = [index for index, answer in enumerate(answers) if answer is None]
        if not open_puts:
            break
        for index, answer in zip(
            open_puts, stream.put([puts[index] for index in open_puts]), strict=True
        ):
            answers[index] = answer
    acks = [answer for answer in answers if answer is not None]
    if len(acks) < len(puts):
        raise PutFailedError(scenario.stream, len(puts) - len(acks))
    return acks


def _reshard(stream: StreamPort, parts: Roles) -> None:
    if parts.split is None or parts.merged is None:
        return
    split, first, second = (shard_id(shard) for shard in (parts.split, *parts.merged))
    stream.split(split)
    stream.merge(first, second)
    log.info("split %s, merged %s and %s", split, first, second)


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
