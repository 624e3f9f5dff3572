"""Sends what the watch has stored to be told, and marks it: at least once, under stable ids."""

import logging
from collections.abc import Callable
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.claim import claim
from shardaudit.adapters.claim_store import WATCH
from shardaudit.adapters.clock import now
from shardaudit.adapters.delta_rs import DeltaRs, Row
from shardaudit.adapters.notifiers import Letter, has_receiver, send
from shardaudit.adapters.published import read_rows
from shardaudit.jobs.watch_history import notification
from shardaudit.model.config import Settings
from shardaudit.model.watch_tables import NOTIFICATIONS
from shardaudit.watch.notifications import Message, Notification, messages

log = logging.getLogger(__name__)


def notify_stream(
    settings: Settings, name: str, *, sender: Callable[[Letter], None] | None = None
) -> int:
    """Sends the stream's notifications that are not marked as sent; gives back how many messages.

    A crash after the sending and before the mark sends the same message again, with the same id.

    Raises:
        WarehouseBusyError: another run holds the watch's tables; nothing was sent.
        NotifierMissingError: the provider of a configured receiver is not installed.
        NotSentError: a receiver did not take a message; it and the later ones stay pending.
    """
    give = sender or (lambda letter: _give(settings, letter))
    if not _pending(settings, name):
        return 0
    with claim(settings, owner=f"notify {name}", name=WATCH) as held:
        pending = {row["notification_id"]: row for row in _pending(settings, name)}
        letters = messages([notification(row) for row in pending.values()])
        for letter in letters:
            held.check()
            give(_letter(letter, name))
            rows = [pending[item] for item in letter.notification_ids]
            _mark(settings, rows, at=now())
    return len(letters)


def alarms(settings: Settings, name: str) -> list[Notification]:
    """The last word on each shard of the stream that is warn or worse, the most urgent first."""
    rows = read_rows(settings, NOTIFICATIONS, where=pc.field("stream") == name)
    rows.sort(key=lambda row: row["observed_at"])
    newest = {row["shard_id"]: notification(row) for row in rows}
    found = [news for news in newest.values() if news.level.is_alarm]
    return sorted(found, key=lambda news: (-news.level.rank, news.shard_id))


def _pending(settings: Settings, name: str) -> list[Row]:
    mine = (pc.field("stream") == name) & (pc.field("state") == "pending")
    return read_rows(settings, NOTIFICATIONS, where=mine)


def _mark(settings: Settings, rows: list[Row], *, at: datetime) -> None:
    sent = [row | {"state": "sent", "sent_at": at} for row in rows]
    DeltaRs(settings.warehouse, settings.aws).upsert(sent, NOTIFICATIONS)


def _letter(message: Message, name: str) -> Letter:
    return Letter(message.message_id, name, message.level.value, message.title, message.text)


def _give(settings: Settings, letter: Letter) -> None:
    """Into the log in any case: there it stands also where nobody is configured."""
    log.warning("%s: %s [%s]", letter.title, letter.text, letter.message_id)
    if has_receiver(settings.notify):
        send(settings.notify, letter)
