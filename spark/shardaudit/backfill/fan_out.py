"""A replay that reads by enhanced fan-out: its consumer lives as long as it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow.compute as pc

from shardaudit.adapters.aws.kinesis_fan_out import (
    consumer_name,
    registered_consumer,
    remove_consumers,
)
from shardaudit.backfill.round import Replay
from shardaudit.model.tables.backfill_tables import BACKFILLS


@contextmanager
def fan_out(replay: Replay, *, warehouse: str, reads: bool) -> Iterator[Replay]:
    """The replay, reading through a consumer that is removed when the block ends.

    A consumer that a run of any of the stream's plans left behind is removed first, also when
    nothing is to be read any more: nobody else runs one, the claim on its backfills is ours.
    """
    plans = replay.warehouse.rows(BACKFILLS, where=pc.field("stream") == replay.name)
    ours = {consumer_name(warehouse, str(row["plan_id"])) for row in plans}
    address, name = replay.reading.address, consumer_name(warehouse, replay.plan_id)
    if not reads:
        remove_consumers(address, ours)
        yield replay
        return
    with registered_consumer(address, name, left_over=ours) as arn:
        yield replace(replay, reading=replace(replay.reading, consumer_arn=arn))
