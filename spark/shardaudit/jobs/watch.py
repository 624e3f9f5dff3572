"""The watch of one stream: what every shard is doing, and until when that can be repaired.

Read this first: it is the table of contents. Kinesis, the positions and the ledger are asked;
`watch/` judges; `positions`, `shards` and `notifications` are written, in this order: a crash in
between leaves what the next watch repeats.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.dynamodb import read_leases
from shardaudit.adapters.files import s3_access
from shardaudit.adapters.position_files import read_position_files
from shardaudit.jobs.observe import ask_kinesis, retention_of, shard_rows
from shardaudit.jobs.watch_history import History, history, told
from shardaudit.jobs.watch_ledger import Known, LedgerFacts, ledger_facts
from shardaudit.jobs.watch_report import watch_report
from shardaudit.jobs.watch_rows import notification_rows, position_rows, watched_rows
from shardaudit.model.choices import PositionSource
from shardaudit.model.config import Settings
from shardaudit.model.errors import ExitCode, ShardauditError
from shardaudit.model.position import Position
from shardaudit.model.tables import SHARDS
from shardaudit.model.watch_tables import NOTIFICATIONS, POSITIONS
from shardaudit.report.progress import SILENT, Progress
from shardaudit.report.watch_summary import WatchReport
from shardaudit.watch.facts import Progress as ShardProgress
from shardaudit.watch.facts import Rules, Witness
from shardaudit.watch.judge import Judgement, judged, waits_for
from shardaudit.watch.notifications import Heard, due_notifications
from shardaudit.watch.patience import patiences

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """What came of a watch. `failure`: why Kinesis or the positions could not be asked."""

    report: WatchReport
    failure: ShardauditError | None

    @property
    def exit_code(self) -> ExitCode:
        """0, or that of what failed."""
        return ExitCode.DONE if self.failure is None else self.failure.exit_code


@dataclass(frozen=True, slots=True)
class _Asked:
    """Kinesis' own rows of `shards` (fresh, or of `listed_at`), and the consumer's positions."""

    rows: Mapping[str, Mapping[str, object]]
    listed_at: datetime | None
    is_fresh: bool
    positions: dict[str, Position]
    failures: tuple[ShardauditError, ...]


def watch(
    warehouse: Warehouse,
    settings: Settings,
    name: str,
    *,
    as_of: datetime,
    progress: Progress = SILENT,
) -> Watched:
    """Judges every shard as of a time and stores what it found.

    When Kinesis or the positions do not answer, the ledger is judged with what was known last.

    Raises:
        ShardauditError: Kinesis does not answer, and nobody knows the retention.
    """
    stream = settings.stream(name)
    past = history(warehouse, name, as_of=as_of)
    with progress.stage("ask Kinesis and the consumer"):
        asked = _asked(warehouse, settings, name, past=past, as_of=as_of)
    if asked.is_fresh:
        warehouse.upsert(list(asked.rows.values()), SHARDS)
    elif stream.retention is None and not past.listing:
        raise asked.failures[0]
    with progress.stage("read the ledger"):
        facts = ledger_facts(
            warehouse,
            name,
            as_of=as_of,
            bucket=stream.bucket,
            known=Known(past.before, asked.positions),
        )
    with progress.stage("judge and store"):
        rules = Rules(
            as_of=as_of,
            retention=retention_of(warehouse, name, stream),
            bucket=stream.bucket,
            read_share=stream.backfill.read_share,
        )
        judgements = _judged(asked, facts, past, rules, settle_grace=stream.settle_grace)
        _store(warehouse, settings, name, asked=asked, judgements=judgements)
    failure = _failure(asked, stream.retention)
    report = watch_report(
        name,
        rules,
        judgements,
        listed_at=asked.listed_at,
        failures=asked.failures,
    )
    return Watched(report, failure)


def _asked(
    warehouse: Warehouse, settings: Settings, name: str, *, past: History, as_of: datetime
) -> _Asked:
    failures: list[ShardauditError] = []
    rows: Mapping[str, Mapping[str, object]] = past.listing
    listed_at, is_fresh = past.listed_at, False
    try:
        rows = shard_rows(name, ask_kinesis(settings, name), now=as_of)
        listed_at, is_fresh = as_of, True
    except ShardauditError as error:
        failures.append(error)
    positions: list[Position] = []
    try:
        positions = _positions(warehouse, settings, name, as_of=as_of)
    except ShardauditError as error:
        failures.append(error)
    for failure in failures:
        log.warning("%s", failure)
    by_shard = {position.shard_id: position for position in positions}
    return _Asked(rows, listed_at, is_fresh, by_shard, tuple(failures))


def _positions(
    warehouse: Warehouse, settings: Settings, name: str, *, as_of: datetime
) -> list[Position]:
    """What the consumer says; nothing when the sink is the only witness."""
    stream = settings.stream(name)
    wanted = stream.positions
    if wanted.source is PositionSource.KCL and wanted.table is not None:
        return read_leases(settings, wanted.table, stream_name=stream.stream_name)
    if wanted.source is PositionSource.FILE and wanted.path is not None:
        return read_position_files(wanted.path, s3_access(warehouse.spark), as_of=as_of)
    return []


def _judged(
    asked: _Asked, facts: LedgerFacts, past: History, rules: Rules, *, settle_grace: timedelta
) -> list[Judgement]:
    """Every shard that Kinesis lists or the ledger knows, by its id."""
    patience = patiences(facts.bins, settle_grace=settle_grace, retention=rules.retention)
    parents = {shard: _parents(row) for shard, row in asked.rows.items()}
    ids = sorted({*parents, *facts.progress})
    progress = {shard: facts.progress.get(shard, ShardProgress(shard)) for shard in ids}
    waiting = waits_for({shard: p.ahead is not None for shard, p in progress.items()}, parents)
    return [
        judged(
            Witness(
                progress=progress[shard],
                patience=patience.get(shard, settle_grace),
                # Without any listing nobody says that a shard is closed.
                is_open=bool(asked.rows[shard]["opened"]) if shard in parents else not parents,
                waits_for=waiting[shard],
                position=asked.positions.get(shard),
                before=past.before.get(shard),
                earlier=past.earlier.get(shard),
            ),
            rules,
            settle_grace=settle_grace,
        )
        for shard in ids
    ]


def _parents(row: Mapping[str, object]) -> tuple[str, ...]:
    parents = row["parent_shard_ids"]
    return tuple(map(str, parents)) if isinstance(parents, list) else ()


def _store(
    warehouse: Warehouse,
    settings: Settings,
    name: str,
    *,
    asked: _Asked,
    judgements: list[Judgement],
) -> None:
    """Writes what was found, and who must be told."""
    if not judgements:
        return
    sink = settings.stream(name).sink.path
    warehouse.upsert(position_rows(name, judgements, sink=sink), POSITIONS)
    fresh = asked.rows if asked.is_fresh else {}
    warehouse.upsert(watched_rows(name, judgements, listed=fresh), SHARDS)
    heard = [
        Heard(name, j.shard_id, j.level, j.words or f"{j.state}, level {j.level}")
        for j in judgements
    ]
    news = due_notifications(heard, told(warehouse, name), as_of=judgements[0].as_of)
    if news:
        warehouse.upsert(notification_rows(news), NOTIFICATIONS)


def _failure(asked: _Asked, retention: timedelta | None) -> ShardauditError | None:
    """What the run must end with: a stream that Kinesis never listed is watched without it."""
    if not asked.failures:
        return None
    is_known_blind = retention is not None and asked.listed_at is None and not asked.is_fresh
    others = asked.failures[1:] if is_known_blind else asked.failures
    return others[0] if others else None
