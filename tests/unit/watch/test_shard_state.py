from dataclasses import replace
from datetime import timedelta

import pytest

from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.verdict import Level, ShardState
from shardaudit.watch.rules.facts import LedgerProgress, Pause, Span
from tests.builders import NOW, SHARD, sequence
from tests.unit.watch.witnesses import (
    GRACE,
    HOUR,
    MINUTE,
    RULES,
    before,
    behind,
    judge,
    position,
    progress,
)

HALF_A_MINUTE = MINUTE / 2


def test_a_shard_that_keeps_up_is_ok() -> None:
    assert (judge(progress()).state, judge(progress()).level) == (ShardState.OK, Level.NONE)


def test_a_shard_to_which_nothing_comes_is_idle_however_old_its_frontier() -> None:
    quiet = progress(produced_until=NOW - 20 * HOUR, frontier_at=NOW - 20 * HOUR)
    assert judge(quiet).state is ShardState.IDLE


def test_a_shard_that_never_had_a_message_is_idle() -> None:
    assert judge(LedgerProgress(SHARD)).state is ShardState.IDLE


def test_one_message_an_hour_is_not_a_stall_when_the_newest_is_half_a_minute_old() -> None:
    newest = NOW - HALF_A_MINUTE
    fresh = behind(HOUR, ahead=Span(1, newest, NOW), produced_until=newest)
    assert (judge(fresh).state, judge(fresh).level) == (ShardState.OK, Level.NONE)


def test_a_frontier_at_rest_with_messages_that_wait_is_stalled() -> None:
    assert judge(behind(GRACE + 2 * MINUTE)).state is ShardState.STALLED


@pytest.mark.parametrize("ago", [GRACE, GRACE + MINUTE])
def test_within_its_patience_and_the_cell_nothing_is_stalled(ago: timedelta) -> None:
    assert judge(behind(ago)).state is ShardState.OK


def test_what_waits_is_overdue_by_its_own_cell_where_wider_ones_were_before() -> None:
    eras = Eras(CellShape(86_400, 1.0), ((NOW.date(), CellShape(60, 1.0)),))
    found = judge(behind(GRACE + 2 * MINUTE), replace(RULES, cells=eras))
    assert found.state is ShardState.STALLED


def test_a_shard_of_which_nobody_knows_what_landed_last_is_stalled_and_not_rewound() -> None:
    assert judge(behind(3 * HOUR, relanded_until=None)).state is ShardState.STALLED


def test_a_frontier_that_moves_is_lagging_however_old_what_waits() -> None:
    moving = behind(3 * HOUR, frontier_at=NOW - MINUTE, last_landed_at=NOW - MINUTE)
    assert (judge(moving).state, judge(moving).level) == (ShardState.LAGGING, Level.NONE)


def test_rows_that_land_twice_do_not_make_the_frontier_younger() -> None:
    """A consumer that restarts and replays the last minute for ever stands still, too."""
    looping = behind(HOUR, frontier_at=NOW - MINUTE, last_landed_at=NOW - MINUTE)
    last = before(15 * MINUTE, frontier=looping.frontier, frontier_at=NOW - HOUR)
    assert judge(looping, before=last).state is ShardState.STALLED


def test_without_numbers_a_landing_is_the_newest_thing_known() -> None:
    slow = behind(HOUR, frontier=None, frontier_at=NOW - MINUTE, last_landed_at=NOW - MINUTE)
    last = before(15 * MINUTE, frontier=None, frontier_at=NOW - HOUR)
    assert judge(slow, before=last).state is ShardState.LAGGING


def test_a_shard_of_which_nothing_ever_landed_is_silent() -> None:
    dead = LedgerProgress(SHARD, produced_until=NOW, ahead=Span(100, NOW - HOUR, NOW))
    assert (judge(dead).state, judge(dead).level) == (ShardState.SILENT, Level.NOTICE)
    new = LedgerProgress(SHARD, produced_until=NOW, ahead=Span(100, NOW - GRACE, NOW))
    assert judge(new).state is ShardState.OK


def test_landings_far_behind_the_frontier_are_a_rewind() -> None:
    reading = behind(HOUR, last_landed_at=NOW - MINUTE, relanded_until=NOW - 5 * HOUR)
    assert (judge(reading).state, judge(reading).level) == (ShardState.REWOUND, Level.NOTICE)


def test_a_position_that_went_back_is_a_rewind() -> None:
    last = before(15 * MINUTE, position=position(sequence(90)))
    found = judge(progress(), position=position(sequence(80)), before=last)
    assert (found.state, found.level) == (ShardState.REWOUND, Level.NOTICE)
    longer = before(15 * MINUTE, position=position("999"))
    assert judge(progress(), position=position("1000"), before=longer).state is ShardState.OK


def test_a_closed_shard_is_closed_and_a_drained_one_is_quiet() -> None:
    drained = judge(progress(), is_open=False)
    assert (drained.state, drained.level) == (ShardState.CLOSED, Level.NONE)


def test_a_closed_shard_that_was_not_drained_is_told() -> None:
    found = judge(behind(HOUR), is_open=False)
    assert (found.state, found.level) == (ShardState.CLOSED, Level.NOTICE)
    assert found.advice is not None
    assert found.advice.startswith("closed and not drained, stands still since")


def test_where_an_audit_calls_lost_what_waits_the_advice_says_so() -> None:
    said = "an audit calls them lost: either restart it, or read them again"
    told = {by_time: judge(behind(HOUR, is_by_time=by_time)).advice for by_time in (True, False)}
    assert said in str(told[True])
    assert said not in str(told[False])


def test_a_child_is_not_judged_before_its_parent_is_drained() -> None:
    child = LedgerProgress(SHARD, produced_until=NOW, ahead=Span(100, NOW - 6 * HOUR, NOW))
    found = judge(child, waits_for="parent")
    assert (found.state, found.level) == (ShardState.LAGGING, Level.NONE)
    assert found.advice == "not judged before its parent is drained: parent"


def test_a_pause_that_is_over_is_a_notice_once() -> None:
    pause = Pause(NOW - 20 * MINUTE, NOW - 5 * MINUTE)
    found = judge(progress(pause=pause))
    assert (found.state, found.level) == (ShardState.OK, Level.NOTICE)
    assert found.advice == (
        "stood still for 15 min from 2026-11-20T13:40Z to 2026-11-20T13:55Z while messages "
        "waited, and goes on"
    )
    short = Pause(NOW - 14 * MINUTE, NOW - 5 * MINUTE)
    assert judge(progress(pause=short)).level is Level.NONE


def test_a_ledger_that_is_old_stops_nobody_and_deadlines_run_on() -> None:
    """While an audit holds the ledger, what landed since the last watch is unknown."""
    hour_old = replace(RULES, as_of=NOW + HOUR, ledger_age=HOUR)
    for seen in (progress(), behind(GRACE), behind(3 * HOUR, frontier_at=NOW, last_landed_at=NOW)):
        found = judge(seen, hour_old)
        assert (found.state, found.level) == (judge(seen).state, Level.NONE)
    ahead_of_the_sink = judge(behind(GRACE, passed=Span(1, NOW - GRACE, NOW)), hour_old)
    assert ahead_of_the_sink.evidence == ()
    stuck = behind(84 * HOUR - 30 * MINUTE, messages=1)
    assert (judge(stuck).level, judge(stuck, hour_old).level) == (Level.NOTICE, Level.WARN)
