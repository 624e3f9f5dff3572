"""What the audits have to tell, sent: at least once, under the same id, apart from the watch's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.notifiers import OutgoingMessage
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, SHARDS
from shardaudit.model.window import Window
from shardaudit.watch.notify import alarms, audit_wanted, notify_audits, notify_stream
from tests.dags.warehouses import MINUTE, arrow, audit

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
EVIL = "for example <script>alert(1)</script> \\n=cmd() {{ x }}"
SHARD = "s1\r\nBcc: all\u202e"  # from a trace: Kinesis has no such name


class BrokenLineError(Exception):
    """The network went away."""


@pytest.fixture
def settings(config: Path) -> Settings:
    """Two audits and a shard have something to tell; one audit told it before."""
    common = {"stream": "events", "previous_level": "none", "level": "warn", "state": "pending"}
    rows = [
        {"notification_id": "a2", "kind": "audit", "text": f"second\n{EVIL}", "observed_at": NOON},
        {
            "notification_id": "a1",
            "kind": "audit",
            "text": "first\nx\ny",
            "observed_at": NOON - MINUTE,
        },
        {
            "notification_id": "a0",
            "kind": "audit",
            "text": "old",
            "observed_at": NOON,
            "state": "sent",
        },
        {
            "notification_id": "s",
            "kind": "change",
            "shard_id": SHARD,
            "text": f"{SHARD} waits",
            "observed_at": NOON,
        },
    ]
    place = config.with_name("warehouse") / NOTIFICATIONS.name
    write_deltalake(str(place), arrow(NOTIFICATIONS, [common | row for row in rows]))
    return load_settings(config)


def told_rows(settings: Settings) -> list[Row]:
    return DeltaRs(settings.warehouse, settings.aws).rows(NOTIFICATIONS, where=pc.scalar(True))


def pending(settings: Settings) -> set[str]:
    rows = DeltaTable(f"{settings.warehouse}/notifications").to_pyarrow_table().to_pylist()
    return {row["notification_id"] for row in rows if row["state"] == "pending"}


def test_each_audit_is_a_message_the_oldest_first_and_told_once(settings: Settings) -> None:
    messages: list[OutgoingMessage] = []
    assert notify_audits(settings, "events", sender=messages.append) == 2
    assert [(x.message_id, x.title, x.text) for x in messages] == [
        ("a1", "first", "x\ny"),
        ("a2", "second", EVIL),
    ]
    assert pending(settings) == {"s"}
    assert notify_audits(settings, "events", sender=messages.append) == 0
    assert notify_audits(settings, "orders", sender=messages.append) == 0


def test_what_a_crash_left_unmarked_is_sent_again_under_the_same_id(settings: Settings) -> None:
    sent: list[str] = []

    def sender(message: OutgoingMessage) -> None:
        sent.append(message.message_id)
        if len(sent) == 2:
            raise BrokenLineError

    with pytest.raises(BrokenLineError):
        notify_audits(settings, "events", sender=sender)
    assert pending(settings) == {"a2", "s"}
    notify_audits(settings, "events", sender=sender)
    assert sent == ["a1", "a2", "a2"]
    assert pending(settings) == {"s"}


def test_the_watch_does_not_hear_of_audits(settings: Settings) -> None:
    messages: list[OutgoingMessage] = []
    assert notify_stream(settings, "events", sender=messages.append) == 1
    assert [message.message_id for message in messages] == ["s"]
    assert pending(settings) == {"a1", "a2"}
    assert [news.shard_id for news in alarms(settings, "events", now=NOON)] == [SHARD]


def test_what_a_watch_by_a_clock_ahead_said_is_not_the_last_word(settings: Settings) -> None:
    ahead = {"level": "notice", "state": "sent", "observed_at": NOON + timedelta(days=7)}
    place = Path(settings.warehouse) / NOTIFICATIONS.name
    rows = [row for row in told_rows(settings) if row["notification_id"] == "s"]
    later = [row | ahead | {"notification_id": "later"} for row in rows]
    write_deltalake(str(place), arrow(NOTIFICATIONS, later), mode="append")
    assert [news.shard_id for news in alarms(settings, "events", now=NOON)] == [SHARD]
    assert alarms(settings, "events", now=NOON + timedelta(days=8)) == []


def test_a_shards_name_adds_no_line_and_turns_none_where_it_is_told(settings: Settings) -> None:
    """A line end in a mail's subject keeps it from being sent, and all that is behind it."""
    messages: list[OutgoingMessage] = []
    notify_stream(settings, "events", sender=messages.append)
    shown = r"s1\r\nBcc: all\u202e"
    assert [(message.title, message.text) for message in messages] == [
        (f"shardaudit: WARN: events {shown}", f"{shown} waits")
    ]


def test_holes_years_apart_are_audited_apart_the_first_ones_first(settings: Settings) -> None:
    def wanted() -> Window | None:
        return audit_wanted(settings, "events", now=NOON)

    def audited(*starts: datetime) -> None:
        """An audit of a minute each, just now."""
        rows = [
            audit(str(at), window_start=at, window_end=at + MINUTE, as_of=NOON) for at in starts
        ]
        place = f"{settings.warehouse}/{AUDITS.name}"
        write_deltalake(place, arrow(AUDITS, rows), mode="overwrite")

    firmware, hour = datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1)
    longest = settings.stream("events").audit_window
    seen = {"observed_at": NOON, "state": "ok", "audit_level": "warn", "unnamed_since": firmware}
    row = seen | {"stream": "events", "shard_id": "s", "unnamed_until": NOON + hour}
    write_deltalake(f"{settings.warehouse}/{SHARDS.name}", arrow(SHARDS, [row]))
    assert wanted() == Window(firmware, firmware + longest)
    audited(firmware)
    assert wanted() == Window(NOON - longest, NOON)
    audited(firmware, NOON - longest)
    assert wanted() is None
