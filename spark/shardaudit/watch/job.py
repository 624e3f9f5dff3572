"""The watch of one stream: what every shard is doing, and until when that can be repaired.

Read this first: it is the table of contents; `cli/watch_command.py` ingests before it. Kinesis,
the positions and the ledger are asked; `watch/rules/` judges; `positions`, `shards`,
`notifications` and `holes` are written, in this order: a crash in between leaves what the next
watch repeats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.audit.records import shard_records
from shardaudit.audit.rules.watermark import ShardRecord
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ShardauditError, WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, POSITIONS, SHARDS
from shardaudit.model.window import Window, parse_instant
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.store.audits import CLOCKS_DIFFER
from shardaudit.store.ledger_days import LedgerDays, ledger_days
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.facts import Holes, Rules, Witness
from shardaudit.watch.rules.facts import LedgerProgress as ShardProgress
from shardaudit.watch.rules.judgement import Judgement, judgement_of, waits_for
from shardaudit.watch.rules.notifications import REMIND_AFTER, ShardNews, due_notifications
from shardaudit.watch.watch_asked import Asked, ask
from shardaudit.watch.watch_history import (
    History,
    history,
    notification_rows,
    position_rows,
    told,
    watched_rows,
)
from shardaudit.watch.watch_holes import GONE_FOR, HoleFacts, Standing, found_holes, store_told
from shardaudit.watch.watch_ledger import Known, ledger_progress, usual_patience
from shardaudit.watch.watch_report import WatchReport, unread_report, watch_report

# Airflow tries a watch that failed again, in the same run; the next run is a quarter of an hour on.
_OF_ONE_RUN = timedelta(minutes=14)
# A night's audit of hours wakes nobody; a sixth of the shortest retention that Kinesis has does.
_BLIND_FOR = timedelta(hours=4)
# Who may fill a new ledger for hours, by the first word of the lock's owner.
_FILLING = {"audit", "ingest"}


@dataclass(frozen=True, slots=True)
class Watched:
    """What came of a watch.

    `failure`: why Kinesis or the positions could not be asked, or nothing was read for too long.
    """

    report: WatchReport
    failure: ShardauditError | None

    @property
    def exit_code(self) -> ExitCode:
        """0, or that of what failed."""
        return ExitCode.DONE if self.failure is None else self.failure.exit_code

    @property
    def checked(self) -> ExitCode:
        """The same, or that a level is bad; or that nobody knows yet, which is not well."""
        worst = self.report.worst
        if self.failure is not None or (worst is not None and not worst.is_alarm):
            return self.exit_code
        return ExitCode.RETRY if worst is None else ExitCode.BAD_VERDICT


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Which stream is watched, as of when.

    `busy`: why nothing could be ingested before. `now`: by the clock, where `as_of` is not that; a
    watch of a past time takes back nothing that was told since.
    """

    settings: Settings
    name: str
    as_of: datetime
    busy: WarehouseBusyError | None = None
    now: datetime | None = None


def watch(
    warehouse: Warehouse, request: WatchRequest, *, progress: Progress = NO_PROGRESS
) -> Watched:
    """Judges every shard as of a time and stores what it found.

    When Kinesis or the positions do not answer, the ledger is judged with what was known last. When
    nothing could be ingested, states are those of the last watch, and their deadlines run on; once
    that was so for over four hours, the watch has failed, whatever it stored and told: one of them,
    and another as often as somebody is reminded.

    Raises:
        WarehouseBusyError: nothing could be ingested, and no watch was before; but for the first
        four hours of an audit or an ingest, in which nothing is judged.
        ShardauditError: Kinesis does not answer, and nobody knows the retention.
    """
    settings, name, as_of, busy = request.settings, request.name, request.as_of, request.busy
    stream, past = settings.stream(name), history(warehouse, name, as_of=as_of)
    read_at = as_of if busy is None else past.watched_at
    if busy is not None and read_at is None and not _is_filling(busy, request.now or as_of):
        raise busy
    with progress.stage("ask Kinesis and the consumer"):
        asked = ask(warehouse, settings, name, past=past, as_of=as_of)
    if asked.is_fresh:
        warehouse.upsert(list(asked.rows.values()), SHARDS)
    elif stream.retention is None and not past.listing:
        raise asked.failures[0]
    kept = retention_of(warehouse, name, stream, as_of=as_of)
    failures = (*asked.failures, busy) if busy else asked.failures
    if read_at is None:  # a ledger that is half filled would have each shard silent
        unread = unread_report(name, asked, as_of=as_of, retention=kept.length, failures=failures)
        return Watched(unread, asked.failure(stream.retention))
    ledger = ledger_days(warehouse, name)
    # Where cells of several widths are in reach, what is reckoned without them is so by the widest.
    cells = ledger.cells(stream).within(Window(as_of - kept.length - GONE_FOR, as_of))
    stream = stream.model_copy(update={"bucket": cells.widest})
    rules = Rules(
        as_of=as_of,
        retention=kept.length,
        shorter=kept.shorter,
        cells=cells,
        read_share=stream.backfill.read_share,
        ledger_age=as_of - read_at,
    )
    with progress.stage("read the ledger"):
        seen = _seen(ledger, stream, rules, asked, past)
    with progress.stage("judge and store"):
        judgements = _judged(seen, rules, settle_grace=stream.settle_grace)
        _store(warehouse, request, asked, judgements)
        told_now = _store_news(warehouse, request, judgements, seen.found)
    report = watch_report(name, rules, judgements, asked, failures=failures)
    failure = asked.failure(stream.retention) or _unread(warehouse, request, rules.ledger_age)
    return Watched(replace(report, told=told_now), failure)


def _is_filling(busy: WarehouseBusyError, now: datetime) -> bool:
    """Whether who holds the ledger may be an audit, or an ingest, that has only just begun."""
    if busy.owner.split()[0] not in _FILLING:
        return False
    age = now - parse_instant(busy.since, where="lock since")
    return -CLOCKS_DIFFER <= age <= _BLIND_FOR  # begun later: nobody knows when, by which clock


@dataclass(frozen=True, slots=True)
class Seen:
    """What everybody who was asked says; but `asked` and `past` by shard."""

    asked: Asked
    progress: Mapping[str, ShardProgress]
    patience: Mapping[str, timedelta]
    found: HoleFacts
    past: History
    records: Mapping[str, ShardRecord]


def _seen(ledger: LedgerDays, stream: Stream, rules: Rules, asked: Asked, past: History) -> Seen:
    """What the ledger says, too."""
    then = rules.when_read.as_of
    known = Known(past.before, asked.positions)
    stands = ledger_progress(ledger, stream, as_of=then, known=known)
    patience = usual_patience(ledger, stream, as_of=then, retention=rules.retention)
    settled = past.settled_by(rules.settled_by)
    standing = Standing(stream, rules, stands, patience, settled, past.before)
    records = shard_records(ledger.warehouse, ledger.stream)
    return Seen(asked, stands, patience, found_holes(ledger, standing), past, records)


def _judged(seen: Seen, rules: Rules, *, settle_grace: timedelta) -> list[Judgement]:
    """Every shard that Kinesis lists, or that may have something in the stream, by its id."""
    asked, past, holes = seen.asked, seen.past, seen.found.holes
    parents = {shard: _parents(row) for shard, row in asked.rows.items()}
    listed = {shard: seen.progress.get(shard, ShardProgress(shard)) for shard in parents}
    progress = listed | {
        shard: known
        for shard, known in seen.progress.items()
        if not parents
        or rules.kept.until(known.newest or rules.as_of) > rules.as_of
        or shard in holes
    }
    witnesses = {
        shard: Witness(
            progress=progress[shard],
            patience=seen.patience.get(shard, settle_grace),
            # Without any listing nobody says that a shard is closed.
            is_open=bool(asked.rows[shard]["opened"]) if shard in parents else not parents,
            position=asked.positions.get(shard),
            holes=holes.get(shard, Holes()),
            before=past.before.get(shard),
            earlier=past.earlier.get(shard),
            judged_until=_judged_until(seen.records.get(shard), progress[shard], as_of=rules.as_of),
        )
        for shard in sorted(progress)
    }
    waiting = waits_for(witnesses.values(), parents, rules.when_read)
    return [
        judgement_of(
            replace(witness, waits_for=waiting.get(shard)), rules, settle_grace=settle_grace
        )
        for shard, witness in witnesses.items()
    ]


def _judged_until(
    record: ShardRecord | None, progress: ShardProgress, *, as_of: datetime
) -> datetime | None:
    """Up to when audits have judged what waits on a shard; None: none has, or nothing waits.

    One by a clock that was far ahead has judged nothing.
    """
    if record is None or progress.ahead is None or record.as_of > as_of + CLOCKS_DIFFER:
        return None
    return record.judged_until(progress.ahead.since)


def _parents(row: Mapping[str, object]) -> tuple[str, ...]:
    parents = row["parent_shard_ids"]
    return tuple(map(str, parents)) if isinstance(parents, list) else ()


def _store(
    warehouse: Warehouse, request: WatchRequest, asked: Asked, judgements: list[Judgement]
) -> None:
    """Writes what was found: where everybody stands, and what each shard is doing."""
    if not judgements:
        return
    sink = request.settings.stream(request.name).sink.path
    warehouse.upsert(position_rows(request.name, judgements, sink=sink), POSITIONS)
    if request.busy is None:  # else the next watch would not look at what landed before this one
        fresh = asked.rows if asked.is_fresh else {}
        warehouse.upsert(watched_rows(request.name, judgements, listed=fresh), SHARDS)


def _unread(
    warehouse: Warehouse, request: WatchRequest, age: timedelta
) -> WarehouseBusyError | None:
    """Why nothing was read for too long, where no earlier watch of that time has failed by it."""
    if request.busy is None or age <= _BLIND_FOR:
        return None
    since = request.as_of - (age - _BLIND_FOR) % REMIND_AFTER
    at = pc.field("observed_at")
    looked = (at > pc.scalar(since)) & (at < pc.scalar(request.as_of - _OF_ONE_RUN))
    said = warehouse.rows(POSITIONS, where=(pc.field("stream") == request.name) & looked)
    return None if said else request.busy


def _store_news(
    warehouse: Warehouse, request: WatchRequest, judgements: list[Judgement], found: HoleFacts
) -> int:
    """Writes who must be told, then of which holes; gives back how many notifications are new."""
    if not judgements:
        return 0
    name, as_of = request.name, request.as_of
    now = request.now or as_of
    news = due_notifications(
        [_news_of(name, j) for j in judgements],
        told(warehouse, name, as_of=now),
        as_of=as_of,
        is_past=as_of < now,
    )
    if news:
        warehouse.upsert(notification_rows(news), NOTIFICATIONS)
    if any(holes.news for holes in found.holes.values()) and found.news is not None:
        store_told(warehouse, name, found.news, told_at=as_of)
    return len(news)


def _news_of(name: str, judgement: Judgement) -> ShardNews:
    holes = judgement.witness.holes
    return ShardNews(
        stream=name,
        shard_id=judgement.shard_id,
        level=judgement.level,
        stands_still=judgement.stands_still,
        text=judgement.words or f"{judgement.state}, level {judgement.level}",
        goes_on=judgement.goes_on,
        has_holes=holes.cells > 0 or holes.gone > 0,
        has_news=holes.news > 0,
    )
