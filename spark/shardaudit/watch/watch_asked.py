"""What the watch asks outside of the ledger: Kinesis and the consumer's own positions."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.adapters.aws.dynamodb import read_leases
from shardaudit.adapters.files.consumer_positions import read_position_files
from shardaudit.ingest.ask_kinesis import ask_kinesis, shard_rows
from shardaudit.model.config.choices import PositionSource
from shardaudit.model.config.parts import Positions
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ShardauditError
from shardaudit.model.sequence import Position
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.watch_history import History

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """Kinesis' own rows of `shards` (fresh, or of `listed_at`), and the consumer's positions.

    `unsaid`: what who was asked left open, a sentence each.
    """

    rows: Mapping[str, Mapping[str, object]]
    listed_at: datetime | None
    is_fresh: bool
    positions: dict[str, Position]
    failures: tuple[ShardauditError, ...]
    unsaid: tuple[str, ...] = ()

    def failure(self, retention: timedelta | None) -> ShardauditError | None:
        """What the run must end with: a stream that Kinesis never listed is watched without it."""
        if not self.failures:
            return None
        is_known_blind = retention is not None and self.listed_at is None
        others = self.failures[1:] if is_known_blind else self.failures
        return others[0] if others else None


def ask(
    warehouse: Warehouse, settings: Settings, name: str, *, past: History, as_of: datetime
) -> Asked:
    """Asks both; what does not answer leaves a failure, and what was known last."""
    failures: list[ShardauditError] = []
    rows: Mapping[str, Mapping[str, object]] = past.listing
    listed_at, is_fresh = past.listed_at, False
    try:
        rows = shard_rows(name, ask_kinesis(settings, name), now=as_of)
        listed_at, is_fresh = as_of, True
    except ShardauditError as error:
        failures.append(error)
    positions: list[Position] = []
    unsaid: tuple[str, ...] = ()
    try:
        positions = _positions(warehouse, settings, name, as_of=as_of)
        unsaid = () if positions else _unsaid(settings.stream(name).positions)
    except ShardauditError as error:
        failures.append(error)
    for failure in failures:
        log.warning("%s", failure)
    by_shard = {position.shard_id: position for position in positions}
    return Asked(rows, listed_at, is_fresh, by_shard, tuple(failures), unsaid)


def _unsaid(wanted: Positions) -> tuple[str, ...]:
    """That there is no position where the consumer is to have some: a name may be mistyped."""
    if wanted.source is PositionSource.SINK:
        return ()
    return (
        f"no shard has a position in {wanted.table or wanted.path}: the consumer has not begun, or "
        "it is another one's name (`positions` in the configuration); the sink alone says how far "
        "it is",
    )


def _positions(
    warehouse: Warehouse, settings: Settings, name: str, *, as_of: datetime
) -> list[Position]:
    """What the consumer says; nothing when the sink is the only witness."""
    stream = settings.stream(name)
    wanted = stream.positions
    if wanted.source is PositionSource.KCL and wanted.table is not None:
        return read_leases(settings, wanted.table, stream_name=stream.stream_name)
    if wanted.source is PositionSource.FILE and wanted.path is not None:
        return read_position_files(wanted.path, warehouse.access, as_of=as_of)
    return []
