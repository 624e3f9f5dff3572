"""Messages that their producer held back: they wait, and leave the stream, since they came into it.

Retention 24 h. Offline devices sent them days ago, and were acknowledged today. Where a producer's
clock is ahead they came before they were sent.
"""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.verdict import Level
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.watch_report import WatchReport
from tests.builders import NOW, sequence
from tests.spark.watch.ledger import MINUTE, cell, facts, fill, settings

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
QUARTER = timedelta(minutes=15)
START = NOW - 20 * HOUR  # of `cell`
TWO_DAYS_AGO = -28 * 60  # minutes before START: 48 h before NOW

Row = dict[str, object]


pytestmark = pytest.mark.usefixtures("_any_credentials")


def came(minute: int, at: datetime, *, number: int, batch: int = 1, n: int = 3) -> Row:
    """Messages of a minute that were acknowledged then: that fingerprint of a batch of traces."""
    arrived = {"arrived_from": at, "arrived_until": at + timedelta(seconds=20)}
    kept = {"max_sequence_number": sequence(number), "batch_id": f"events/traces/{batch}"}
    return cell("fleet", minute, n=n) | arrived | kept


def landed(minute: int, at: datetime, *, number: int, n: int = 3) -> Row:
    return cell("fleet", minute, "sink", n=n) | {
        "max_sequence_number": sequence(number),
        "last_at": at,
    }


def looked(warehouse: Warehouse, folder: Path, as_of: datetime = NOW) -> WatchReport:
    """The second of two watches."""
    for at in (as_of - QUARTER, as_of):
        report = watch(warehouse, WatchRequest(settings(folder), "events", at)).report
    return report


def test_a_fleet_that_comes_back_is_no_alarm(warehouse: Warehouse, tmp_path: Path) -> None:
    old = range(TWO_DAYS_AGO, TWO_DAYS_AGO + 60)
    earlier, fresh = NOW - 3 * HOUR, NOW - 5 * MINUTE
    fill(
        warehouse,
        [
            *(came(m, earlier, number=m - TWO_DAYS_AGO) for m in old),
            *(landed(m, earlier + MINUTE, number=m - TWO_DAYS_AGO) for m in old),
            *(came(m, fresh, number=1000 + m - TWO_DAYS_AGO, batch=2) for m in old),
        ],
    )
    ahead = facts(warehouse)["fleet"].ahead
    assert ahead is not None
    assert ahead.first_arrival == fresh
    assert [line.level for line in looked(warehouse, tmp_path).shards] == []
    late = looked(warehouse, tmp_path, as_of=NOW + 20 * HOUR)  # its consumer stopped
    (line,) = late.shards
    assert (line.state, line.level) == ("stalled", Level.URGENT)
    assert line.recoverable_until == fresh + DAY


def test_a_stop_is_told_when_all_that_waits_was_held_back(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """A shard at night: its consumer stops, and then one device comes back."""
    stopped_at, back_at = START + 700 * MINUTE, START + 800 * MINUTE
    old, minutes = range(TWO_DAYS_AGO, TWO_DAYS_AGO + 60), range(600, 700)
    fill(
        warehouse,
        [
            *(came(m, START + m * MINUTE, number=m) for m in minutes),
            *(landed(m, stopped_at, number=m) for m in minutes),
            *(came(m, back_at, number=5000 + m - TWO_DAYS_AGO, batch=2) for m in old),
        ],
    )
    (line,) = looked(warehouse, tmp_path).shards
    assert (line.state, line.messages_ahead) == ("stalled", 180)
    assert line.recoverable_until == back_at + DAY


def test_what_a_fleet_adds_to_a_stopped_shard_wins_no_time(warehouse: Warehouse) -> None:
    minutes = range(600, 1200)
    stopped_at = START + 700 * MINUTE
    fill(
        warehouse,
        [
            *(came(m, START + m * MINUTE, number=m) for m in minutes),
            *(landed(m, stopped_at, number=m) for m in range(600, 700)),
            *(came(m, NOW - 5 * MINUTE, number=2000 + m, batch=2) for m in minutes),
        ],
    )
    ahead = facts(warehouse)["fleet"].ahead
    assert ahead is not None
    assert ahead.since == START + 600 * MINUTE  # of these some were held back
    assert ahead.first_arrival == stopped_at


@pytest.mark.parametrize("days", [1, 3])
def test_a_hole_of_what_was_held_back_is_told_with_its_deadline(
    warehouse: Warehouse, tmp_path: Path, days: int
) -> None:
    """A day is between what is in the stream by its `sent_at` and what nobody looks at."""
    minute, at = 19 * 60 - days * 24 * 60, NOW - 2 * HOUR
    fill(
        warehouse,
        [
            came(minute, START + minute * MINUTE, number=1),
            landed(minute, START + minute * MINUTE, number=1),
            came(minute, at, number=500, batch=2, n=2),
            came(1100, START + 1100 * MINUTE, number=600),
            landed(1100, START + 1101 * MINUTE, number=600),
        ],
    )
    (line,) = looked(warehouse, tmp_path).shards
    assert (line.holes, line.hole_messages) == (1, 2)
    assert line.hole_recoverable_until == at + DAY
    assert line.level is Level.WARN
    told = looked(warehouse, tmp_path, as_of=NOW + QUARTER)
    assert told.shards[0].holes == 1


def fill_with_a_hole(warehouse: Warehouse, minute: int, at: datetime) -> None:
    """Two messages of a minute that came at a time, and that the consumer has passed."""
    fill(
        warehouse,
        [
            came(minute, at, number=500, n=2),
            came(1100, START + 1100 * MINUTE, number=600),
            landed(1100, START + 1101 * MINUTE, number=600),
        ],
    )


def test_it_is_gone_when_the_last_of_it_has_left_the_stream(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    minute, at = -6 * 60, NOW - 23 * HOUR  # sent 26 h ago
    fill_with_a_hole(warehouse, minute, at)
    (line,) = looked(warehouse, tmp_path).shards
    assert line.hole_recoverable_until == at + DAY
    (gone,) = looked(warehouse, tmp_path, as_of=NOW + 2 * HOUR).shards
    assert (gone.holes, gone.level) == (0, Level.NOTICE)


def test_a_clock_that_is_ahead_wins_no_time(warehouse: Warehouse, tmp_path: Path) -> None:
    """By it they are sent in ten hours; they came two hours ago, and their consumer stopped."""
    minute, at = 30 * 60, NOW - 2 * HOUR
    fill(
        warehouse,
        [
            came(60, START + HOUR, number=60),
            landed(60, START + HOUR + MINUTE, number=60),
            came(minute, at, number=100),
        ],
    )
    (line,) = looked(warehouse, tmp_path).shards
    assert (line.state, line.recoverable_until) == ("stalled", at + DAY)


def test_a_hole_of_a_clock_that_is_ahead_is_told_with_its_deadline(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    minute, at = 30 * 60, NOW - 2 * HOUR
    fill_with_a_hole(warehouse, minute, at)
    (line,) = looked(warehouse, tmp_path).shards
    assert (line.holes, line.hole_messages) == (1, 2)
    assert line.hole_recoverable_until == at + DAY
