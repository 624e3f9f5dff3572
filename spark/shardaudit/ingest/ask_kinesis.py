"""What Kinesis says of a stream, kept in `shards`: ListShards forgets the shards that expired.

The requests themselves: `adapters/aws/kinesis.py`.
"""

import logging
from collections import defaultdict
from datetime import datetime, timedelta

from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis import (
    StreamFacts,
    kinesis_client,
    kinesis_errors,
    stream_facts,
)
from shardaudit.adapters.clock import now as clock_now
from shardaudit.adapters.engine.collected import collected
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ConfigError, ShardauditError, WarehouseBusyError
from shardaudit.model.retention import Longer, Retention, observed_retention
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.store.audits import CLOCKS_DIFFER
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import WATCH
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)


def record_shards(warehouse: Warehouse, settings: Settings, name: str, *, now: datetime) -> None:
    """Adds the shards as they are now.

    A stream whose retention is configured is audited also where Kinesis cannot be reached: its
    shards are known from the traces and the sink.

    Raises:
        StreamRefusedError: Kinesis refused, and only it could say the retention.
        StreamUnavailableError: Kinesis did not answer, and only it could say the retention.
    """
    try:
        facts = ask_kinesis(settings, name)
    except ShardauditError as error:
        if settings.stream(name).retention is None:
            raise
        log.info("shards are known from traces and sink alone: %s", error)
        return
    rows = list(shard_rows(name, facts, now=now).values())
    try:
        with warehouse_lock(settings, owner=f"shards of {name}", name=WATCH):
            warehouse.upsert(rows, SHARDS)
    except WarehouseBusyError as busy:
        log.info("the watch that runs now asks Kinesis itself: %s", busy)


def ask_kinesis(settings: Settings, name: str) -> StreamFacts:
    """The stream's retention and shards as they are now.

    Raises:
        StreamRefusedError: Kinesis refused.
        StreamUnavailableError: Kinesis did not answer.
    """
    stream = settings.stream(name)
    with kinesis_errors(stream.stream_name):  # a client without a region is an error, too
        return stream_facts(kinesis_client(settings), stream.stream_name)


def shard_rows(name: str, facts: StreamFacts, *, now: datetime) -> dict[str, dict[str, object]]:
    """Per shard the row of `shards`, as far as Kinesis knows it."""
    return {
        shard.shard_id: {
            "stream": name,
            "shard_id": shard.shard_id,
            "parent_shard_ids": list(shard.parent_shard_ids),
            "hash_start": shard.hash_start,
            "hash_end": shard.hash_end,
            "opened": shard.is_open,
            "retention_hours": facts.retention // timedelta(hours=1),
            "observed_at": now,
        }
        for shard in facts.shards
    }


def retention_of(
    warehouse: Warehouse, name: str, stream: Stream, *, as_of: datetime | None = None
) -> Retention:
    """How long the stream keeps its records: as Kinesis said, else as configured.

    What is of a time still to come, by a clock that was wrong or as somebody asked, would hide each
    later change until then: it counts only where nothing else is known.

    Input:
        as_of: the "now" of who asks; it may be ahead of the clock.

    Raises:
        ConfigError: nobody knows.
    """
    said = warehouse.counts(SHARDS, by=("retention_hours", "observed_at"), having={"stream": name})
    seen = {at: timedelta(hours=hours) for hours, at in said if hours is not None}
    clock = clock_now()
    latest = max(as_of or clock, clock) + CLOCKS_DIFFER
    observed = observed_retention({at: kept for at, kept in seen.items() if at <= latest} or seen)
    if observed is not None:
        return observed
    if stream.retention is not None:
        return Retention(
            stream.retention, longer=_configured_before(warehouse, name, stream.retention)
        )
    raise ConfigError(
        f"streams.{name}.retention",
        "nothing, and Kinesis was not asked yet",
        'retention = "168h", or an ingest that reaches Kinesis',
    )


def parents_of(warehouse: Warehouse, name: str) -> dict[str, list[str]]:
    """By child the shards whose place it took, as Kinesis ever said of the stream's shards."""
    listed = warehouse.read(SHARDS).where(F.col("stream") == name)
    pairs = listed.select("shard_id", F.explode("parent_shard_ids").alias("parent")).distinct()
    parents = defaultdict[str, list[str]](list)
    for row in collected(pairs):
        parents[row.shard_id].append(row.parent)
    return parents


def _configured_before(warehouse: Warehouse, name: str, length: timedelta) -> tuple[Longer, ...]:
    """The longer ones that audits went by. A shorter one was no record's end, but a mistake."""
    said = warehouse.counts(AUDITS, by=("retention_s", "started_at"), having={"stream": name})
    seen = {at: timedelta(seconds=s) for s, at in said if s is not None and at is not None}
    kept = observed_retention(seen | {clock_now(): length})
    return () if kept is None else kept.longer
