"""What it takes to run a stored plan: its stream, how that is read, and how it lands."""

import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.adapters.clock import now
from shardaudit.backfill.kinesis_source import JSON, Reading, decoder
from shardaudit.backfill.landing import Landing, backfill_sink, sink_sources
from shardaudit.backfill.ledger import Ledger, stored_windows
from shardaudit.backfill.rounds import Replay
from shardaudit.backfill.rules.approval import check_backfill
from shardaudit.ingest.list_shards import retention_of
from shardaudit.model.choices import BackfillMode
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.backfill_tables import BACKFILLS
from shardaudit.store.audits import read_rows
from shardaudit.store.warehouse import Warehouse


def stream_of(settings: Settings, plan_id: str) -> str:
    """The stream that a stored plan is of.

    Raises:
        ConfigError: there is no such plan, or its stream is not in the configuration.
    """
    rows = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == plan_id)
    if not rows:
        raise ConfigError("--plan", plan_id, "a plan that `shardaudit backfill plan` printed")
    name = str(rows[0]["stream"])
    settings.stream(name)
    return name


def replay_of(
    warehouse: Warehouse,
    settings: Settings,
    plan_id: str,
    *,
    as_of: datetime | None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Replay:
    """What it takes to replay a stored plan.

    Raises:
        ConfigError: its stream cannot be written.
        StreamRefusedError: there is no such stream; nothing is read.
    """
    rows = stored_windows(warehouse, plan_id)
    name = str(rows[0]["stream"])
    stream = settings.stream(name)
    address = StreamAddress(
        stream.stream_name, settings.aws.region, settings.aws.endpoint("kinesis")
    )
    check_backfill(name, stream, spark_settings=settings.spark)
    ShardPages(address).check_stream()
    return Replay(
        warehouse=warehouse,
        ledger=Ledger(warehouse, rows, f"{platform.node()}/{os.getpid()}"),
        landing=landing_of(warehouse, settings, name),
        reading=Reading(address, stream.backfill.read_share, stream.backfill.decoder),
        retention=retention_of(warehouse, name, stream),
        bucket=stream.bucket,
        now=now if as_of is None else lambda: as_of,
        turn=turn,
    )


def check_landing(settings: Settings, name: str) -> None:
    """Returns when a backfill of the stream could land; no engine is asked.

    Raises:
        ConfigError: its rows cannot be made, its decoder is not there.
        StreamRefusedError: there is no stream to put records into.
    """
    stream = settings.stream(name)
    if stream.backfill_mode is BackfillMode.REQUEST:
        return
    if stream.backfill.decoder != JSON:
        decoder(stream.backfill.decoder)
    sink_sources(settings, name, only_ids=stream.backfill_mode.hands_over)
    target = _republish_to(settings, name)
    if target is not None:
        ShardPages(target).check_stream()


def landing_of(warehouse: Warehouse, settings: Settings, name: str) -> Landing | None:
    """How a stream's backfill lands; None when somebody else is asked for it.

    Raises:
        ConfigError: its rows cannot be made, its decoder is not there.
        StreamRefusedError: there is no stream to put records into.
    """
    check_landing(settings, name)
    mode = settings.stream(name).backfill_mode
    if mode is BackfillMode.REQUEST:
        return None
    sink = backfill_sink(warehouse.spark, settings, name, only_ids=mode.hands_over)
    return Landing(mode, sink, _republish_to(settings, name))


def _republish_to(settings: Settings, name: str) -> StreamAddress | None:
    target = settings.stream(name).backfill.republish_to
    if target is None:
        return None
    return StreamAddress(target, settings.aws.region, settings.aws.endpoint("kinesis"))
