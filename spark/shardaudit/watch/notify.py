"""Sends what watch and audit stored to be told, marks it, and says which audit is wanted."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pyarrow.compute as pc

from shardaudit.adapters.clock import now
from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.notifiers import Give, OutgoingMessage, receivers, tell_each
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.verdict import AuditStatus, Level
from shardaudit.model.window import Window
from shardaudit.report.health import WATCH_COUNTS_FOR
from shardaudit.report.plain import harmless
from shardaudit.store.audits import is_ahead, read_rows, watch_since
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import A_WATCH, WATCH
from shardaudit.watch.rules.notifications import NewsMessage, Notification, news_messages
from shardaudit.watch.watch_history import notification

log = logging.getLogger(__name__)

_OF_SHARDS = pc.field("shard_id").is_valid()

# An audit that fails, or finds new holes each time, is not asked for again before.
AGAIN_AFTER = timedelta(hours=1)


def notify_stream(settings: Settings, name: str, *, sender: Give | None = None) -> int:
    """Sends the stream's notifications that are not marked as sent; gives back how many messages.

    A crash after the sending and before the mark sends the same message again, with the same id.
    One that a receiver did not take is sent to that one again, and to no other.

    Raises:
        WarehouseBusyError: another run holds the watch's tables for minutes; nothing was sent.
        NotifierMissingError: the provider of a configured receiver is not installed.
        NotSentError: a receiver did not take a message; for it that and the later ones stay
        pending.
    """
    return _notify(settings, name, about=_OF_SHARDS, sender=sender)


def notify_audits(settings: Settings, name: str, *, sender: Give | None = None) -> int:
    """The same for what the stream's audits have to tell: a message for each, the oldest first.

    Raises:
        WarehouseBusyError, NotifierMissingError, NotSentError: as `notify_stream`.
    """
    return _notify(settings, name, about=~_OF_SHARDS, sender=sender)


def _notify(
    settings: Settings,
    name: str,
    *,
    about: pc.Expression,
    sender: Give | None,
) -> int:
    if not _pending(settings, name, about):
        return 0
    gives = _gives(settings, sender)
    with warehouse_lock(settings, owner=f"notify {name}", name=WATCH, timeout=A_WATCH) as held:
        tables = DeltaRs(settings.warehouse, settings.aws, check=held.check)
        pending = {row["notification_id"]: row for row in _pending(settings, name, about)}
        # A receiver that failed may have been taken out of the configuration since.
        if told := [row for row in pending.values() if gives.keys() <= _taken_by(row)]:
            tables.upsert([_marked(row, gives) for row in told], NOTIFICATIONS)
        given = set[str]()

        def tell(kind: str, give: Give) -> None:
            left = [row for row in pending.values() if kind not in _taken_by(row)]
            for message, notification_ids in _messages(left, name):
                held.check()
                give(message)
                given.add(message.message_id)
                took = {item: _marked(pending[item], gives, by=kind) for item in notification_ids}
                pending.update(took)
                tables.upsert([*took.values()], NOTIFICATIONS)

        tell_each(gives, tell)
    return len(given)


def _gives(settings: Settings, sender: Give | None) -> dict[str, Give]:
    """How each receiver gets a message; the log alone, where nobody is configured."""
    if sender is not None:
        return {"sender": sender}
    given = receivers(settings.notify) or {"log": lambda _: None}
    return {kind: partial(_give, kind, give) for kind, give in given.items()}


def _give(kind: str, give: Give, message: OutgoingMessage) -> None:
    """Into the log in any case."""
    log.warning("%s: %s: %s [%s]", kind, message.title, message.text, message.message_id)
    give(message)


def _taken_by(row: Row) -> set[str]:
    return set(row["taken_by"] or ())


def _marked(row: Row, gives: Mapping[str, Give], *, by: str | None = None) -> Row:
    """The row, taken by one more; sent once all receivers took it."""
    taken = _taken_by(row) | ({by} if by else set())
    is_sent = gives.keys() <= taken
    sent = {"state": "sent", "sent_at": now()} if is_sent else {}
    return row | {"taken_by": sorted(taken)} | sent


def alarms(settings: Settings, name: str, *, now: datetime) -> list[Notification]:
    """The last word on each shard of the stream that is warn or worse, the most urgent first."""
    mine = (pc.field("stream") == name) & _OF_SHARDS & ~is_ahead("observed_at", now)
    rows = read_rows(settings, NOTIFICATIONS, where=mine)
    rows.sort(key=lambda row: row["observed_at"])
    newest = {row["shard_id"]: notification(row) for row in rows}
    found = [news for news in newest.values() if news.level.is_alarm]
    return sorted(found, key=lambda news: (-news.level.rank, news.shard_id))


def _is_recent(audit: Row, now: datetime) -> bool:
    """Whether it began within AGAIN_AFTER, by a clock that may be a bit ahead."""
    begun: datetime = audit["started_at"] or audit["as_of"]
    return abs(now - begun) < AGAIN_AFTER


def _pending(settings: Settings, name: str, about: pc.Expression) -> list[Row]:
    mine = (pc.field("stream") == name) & (pc.field("state") == "pending")
    return read_rows(settings, NOTIFICATIONS, where=mine & about)


def _messages(rows: list[Row], name: str) -> list[tuple[OutgoingMessage, tuple[str, ...]]]:
    """The messages, each with the notifications that it tells."""
    of_audits = [row for row in rows if row["shard_id"] is None]
    if of_audits:
        of_audits.sort(key=lambda row: row["observed_at"])
        return [(_message_of_audit(row, name), (row["notification_id"],)) for row in of_audits]
    told = news_messages([_harmless(notification(row)) for row in rows])
    return [(_outgoing(message, name), message.notification_ids) for message in told]


def _harmless(news: Notification) -> Notification:
    """The same for people: a line end in a mail's subject would keep it from being sent at all."""
    return replace(news, shard_id=harmless(news.shard_id), text=harmless(news.text))


def _outgoing(message: NewsMessage, name: str) -> OutgoingMessage:
    return OutgoingMessage(
        message.message_id, name, message.level.value, message.title, message.text
    )


def _message_of_audit(row: Row, name: str) -> OutgoingMessage:
    title, _, text = row["text"].partition("\n")
    return OutgoingMessage(row["notification_id"], name, row["level"], title, text)


def audit_wanted(
    settings: Settings, name: str, *, now: datetime, is_news: bool = False
) -> Window | None:
    """The time of the stream that an audit must look at now; None when there is no hurry.

    Around the cells of which both sides differ, that the consumer is past and no audit has named,
    on the shards where they are near their deadline. Where these are longer apart than an audit is,
    the first ones, then the last ones.

    Input:
        is_news: nobody was asked yet: an audit that still runs, as a night's, does not count as one
        behind which a plan is asked for.
    """
    rows = [
        row
        for row in watch_since(settings, name, since=now - WATCH_COUNTS_FOR, now=now)
        if row["audit_level"] and Level(row["audit_level"]).is_alarm
    ]
    if not rows:
        return None
    since = min(row["unnamed_since"] for row in rows)
    # What a clock ahead stamped is audited when its time has come.
    until = min(max(row["unnamed_until"] for row in rows), now)
    # No audit is longer than that of a night: a device without a clock stamps the year of its make.
    longest = settings.stream(name).audit_window
    audits = read_rows(settings, AUDITS, where=pc.field("stream") == name)
    recent = [
        row
        for row in audits
        if _is_recent(row, now) and not (is_news and row["status"] == AuditStatus.RUNNING)
    ]
    for start in (since, max(since + longest, until - longest)):
        is_tried = any(row["window_start"] <= start < row["window_end"] for row in recent)
        if start < until and not is_tried:
            return Window(start, min(start + longest, until))
    return None
