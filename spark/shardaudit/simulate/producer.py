"""Puts every message on a stream, at its time, and keeps the answers."""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import duckdb
import pyarrow as pa

from shardaudit.model.errors import RetryableError
from shardaudit.simulate.messages import position_of, step_ms
from shardaudit.simulate.records import payload, shard_id
from shardaudit.simulate.scenario import Roles, Scenario
from shardaudit.simulate.stream import StreamPort
from shardaudit.simulate.stream_record import Ack, Put

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
