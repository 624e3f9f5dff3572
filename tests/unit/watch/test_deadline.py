from dataclasses import replace
from datetime import timedelta

import pytest

from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.verdict import Level
from shardaudit.watch.rules.deadline import audit_level
from shardaudit.watch.rules.facts import Holes, Span
from tests.builders import NOW
from tests.unit.watch.witnesses import HOUR, MINUTE, RULES, before, behind, judge

DAY = timedelta(days=1)
WHOLE = replace(RULES, read_share=1.0)
MANY = 10**9  # so many messages that only the shard's speed bounds their bytes


def test_the_published_incident_reads_for_about_two_and_a_half_days() -> None:
    """Five days at a full shard's 1 MiB/s, read at 2 MB/s: an upper bound of the published 44 h."""
    found = judge(behind(5 * DAY, messages=MANY), WHOLE).deadline
    assert found is not None
    assert found.hours_to_read == pytest.approx(62.9, abs=0.1)
    assert found.recoverable_until == NOW + 2 * DAY
    assert found.start_by < NOW


@pytest.mark.parametrize(
    ("ahead", "rate", "mib"),
    [
        (Span(MANY, NOW - HOUR, NOW), 1, 3600),  # a full shard
        (Span(2, NOW - HOUR, NOW), 1, 20),  # two of 10 MiB
        (Span(2, NOW - HOUR, NOW), 0.01, 2000),  # two of a hundredth
        (Span(MANY, NOW + DAY, NOW + DAY + MINUTE), 1, 60),  # a clock is ahead, who knows by what
        (Span(MANY, NOW + DAY, NOW + DAY + MINUTE, arrived_from=NOW - HOUR), 1, 3600),
        (Span(MANY, NOW - 900 * DAY, NOW - 899 * DAY, NOW - HOUR, NOW - HOUR / 2), 1, 1800),
        (Span(MANY, NOW - 900 * DAY, NOW), 1, 7 * 24 * 3600),  # older than the retention: gone
    ],
)
def test_a_reading_takes_what_the_shard_can_have_taken_since_the_oldest_came(
    ahead: Span, rate: float, mib: int
) -> None:
    rules = replace(WHOLE, cells=Eras(CellShape(60, rate)))
    found = judge(behind(HOUR, ahead=ahead), rules).deadline
    assert found is not None
    assert found.bytes_at_most == mib * 2**20
    assert found.hours_to_read == pytest.approx(mib * 2**20 / 2_000_000 / 3600)
    assert found.recoverable_until - found.start_by == pytest.approx(
        timedelta(hours=found.hours_to_read), abs=timedelta(seconds=1)
    )


@pytest.mark.parametrize(
    ("ago", "level"),
    [
        (timedelta(hours=2), Level.NOTICE),  # 7 d less 2 h left, 1 h to read
        (3.5 * DAY, Level.WARN),  # half the retention
        (timedelta(days=4), Level.WARN),  # 72 h left, 50.3 h to read: within 24 h
        (timedelta(hours=109), Level.URGENT),  # 59 h left, 57 h to read
        (timedelta(days=6), Level.URGENT),  # too late for all, not for most
        (timedelta(days=8), Level.LOST),
    ],
)
def test_levels_of_a_standstill(ago: timedelta, level: Level) -> None:
    assert judge(behind(ago, messages=MANY), WHOLE).level is level


def test_a_short_retention_is_a_warning_at_once() -> None:
    rules = replace(RULES, retention=DAY)
    assert judge(behind(HOUR), rules).level is Level.WARN


def lagging(ago: timedelta, *, an_hour_ago: timedelta) -> Level:
    """The level of a shard that is so long behind, and was so long behind an hour ago."""
    moving = behind(ago, frontier_at=NOW - MINUTE, last_landed_at=NOW - MINUTE)
    oldest_then = NOW - HOUR - an_hour_ago
    earlier = before(HOUR, recoverable_until=oldest_then + RULES.retention)
    return judge(moving, earlier=earlier).level


def test_levels_of_a_shard_that_lags() -> None:
    assert lagging(2 * HOUR, an_hour_ago=HOUR) is Level.NONE  # a burst: its trend says nothing
    assert lagging(20 * HOUR, an_hour_ago=20.5 * HOUR) is Level.NONE  # catching up
    assert lagging(3.6 * DAY, an_hour_ago=3.7 * DAY) is Level.WARN  # half the retention
    assert lagging(6.2 * DAY, an_hour_ago=6.2 * DAY - HOUR) is Level.WARN
    assert lagging(6.9 * DAY, an_hour_ago=6.9 * DAY - HOUR) is Level.URGENT
    assert lagging(7.1 * DAY, an_hour_ago=7.1 * DAY - HOUR) is Level.LOST


def test_a_shard_that_lags_says_when_it_crosses_the_retention() -> None:
    moving = behind(4 * DAY, frontier_at=NOW - MINUTE, last_landed_at=NOW - MINUTE)
    earlier = before(HOUR, recoverable_until=NOW + 3 * DAY - HOUR / 2)
    found = judge(moving, earlier=earlier)
    assert found.deadline is not None
    assert found.deadline.crosses_at == NOW + 6 * DAY  # it loses half an hour an hour
    assert found.advice == (
        "4 d 0 h behind and moving, slower than its producers: at this pace it loses messages "
        "from 2026-11-26T14:00Z on; extending the retention before 2026-11-23T14:00Z keeps all of "
        "it, later only what is still there"
    )


def test_the_advice_names_window_hours_and_the_last_moment() -> None:
    found = judge(behind(2 * DAY, messages=MANY), WHOLE)
    assert found.advice == (
        "stands still since 2026-11-18T14:00Z, at most 1,000,000,000 messages from "
        "2026-11-18T14:00Z on wait; restart its consumer, or reading [2026-11-18T14:00Z, "
        "2026-11-20T14:00Z) again takes at most 25.2 h (168.8 GiB at most): start by "
        "2026-11-24T12:50Z; extending the retention before 2026-11-25T14:00Z keeps all of it, "
        "later only what is still there"
    )


@pytest.mark.parametrize(
    ("hours", "ago", "asked"),
    [(24, 1, False), (24, 11, False), (24, 13, True), (24, 23, True), (168, 24, False),
     (168, 145, True)],
)  # fmt: skip
def test_an_audit_of_doubts_is_asked_for_as_their_time_runs_out(
    hours: int, ago: int, *, asked: bool
) -> None:
    since = NOW - timedelta(hours=ago)
    doubted = Holes(
        doubts=1, doubted_since=since, unnamed_since=since, unnamed_until=since + MINUTE
    )
    rules = replace(RULES, retention=timedelta(hours=hours))
    assert audit_level(doubted, rules).is_alarm is asked
    holes = replace(doubted, cells=1, messages=1, unnamed=1, since=since, until=since + MINUTE)
    assert audit_level(holes, rules).is_alarm is (asked or hours == 24)
    named = replace(holes, unnamed=0)  # beside a hole that an audit named there are doubts alone
    assert audit_level(named, rules).is_alarm is asked


def test_the_advice_after_the_retention_is_about_the_rest() -> None:
    found = judge(behind(8 * DAY, messages=MANY), WHOLE)
    assert found.advice is not None
    assert "what was sent before 2026-11-13T14:00Z has left the stream" in found.advice
    assert "extending the retention brings nothing back, but at once it keeps the rest" in (
        found.advice
    )


def test_what_has_left_the_stream_altogether_is_no_alarm_any_more() -> None:
    gone = behind(9 * DAY, ahead=Span(5, NOW - 9 * DAY, NOW - 8 * DAY))
    found = judge(gone)
    assert found.level is Level.NOTICE
    assert found.advice is not None
    assert "have left the stream, nothing of it can be read again" in found.advice


def test_the_longest_retention_cannot_be_extended() -> None:
    found = judge(behind(DAY), replace(RULES, retention=timedelta(hours=8760)))
    assert found.advice is not None
    assert found.advice.endswith("the retention is at its maximum")
