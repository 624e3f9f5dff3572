"""One shard's judgement: what contradicts what, what is due first, who is furthest behind."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shardaudit.watch.rules.facts import Holes, LedgerProgress, Span
from shardaudit.watch.rules.judgement import Judgement, Skew, landed_skew, produced_skew, waits_for
from tests.builders import NOW, sequence
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
    witness,
)

CHILD = LedgerProgress("child", produced_until=NOW, ahead=Span(9, NOW - 2 * HOUR, NOW))


@pytest.mark.parametrize(
    ("parent", "child", "is_behind"),
    [
        (behind(3 * HOUR), CHILD, True),
        (progress(frontier_at=NOW - GRACE), CHILD, True),  # the consumer may just have drained it
        (progress(frontier_at=NOW - GRACE - timedelta.resolution), CHILD, False),
        (behind(3 * HOUR), replace(CHILD, landed_until=NOW), False),
        # Of all that waits there nothing is in the stream any more.
        (behind(191 * HOUR, ahead=Span(1, NOW - 190 * HOUR, NOW - 167 * HOUR)), CHILD, True),
        (behind(191 * HOUR, ahead=Span(1, NOW - 190 * HOUR, NOW - 168 * HOUR)), CHILD, False),
    ],
)
def test_child_waits_until_its_parent_is_drained_for_a_patience(
    parent: LedgerProgress, child: LedgerProgress, *, is_behind: bool
) -> None:
    shards = [witness(replace(parent, shard_id="parent")), witness(child)]
    found = {"child": "parent"} if is_behind else {}
    assert waits_for(shards, {"parent": (), "child": ("parent",)}, RULES) == found
    assert waits_for(shards, {"child": ("parent",)}, RULES) == {}  # Kinesis forgot the parent


def test_a_checkpoint_beyond_the_frontier_is_a_hole_in_the_making() -> None:
    seen = behind(HOUR, passed=Span(7, NOW - HOUR, NOW))
    (said,) = judge(seen, position=position(sequence(200))).evidence
    assert said.startswith("a HOLE in the making: leases says 4965")
    assert "past 7 messages from 2026-11-20T13:00Z on that have not landed" in said


def test_a_checkpoint_within_the_flush_grace_is_no_hole() -> None:
    seen = behind(GRACE, passed=Span(7, NOW - GRACE, NOW))
    assert judge(seen, position=position(sequence(200))).evidence == ()


def test_a_renewed_lease_whose_checkpoint_stays_is_a_hung_processor() -> None:
    last = before(15 * MINUTE, position=position(sequence(100), lease_counter=26))
    now = position(sequence(100), lease_counter=51)
    (said,) = judge(behind(HOUR), position=now, before=last).evidence
    assert "worker-1 renews the lease (26 → 51), the checkpoint stays at 4965" in said


def test_a_lease_is_not_hung_when_it_moves_or_when_nothing_waits() -> None:
    last = before(15 * MINUTE, position=position(sequence(99), lease_counter=26))
    moved = position(sequence(100), lease_counter=51)
    assert judge(behind(HOUR), position=moved, before=last).evidence == ()
    same = before(15 * MINUTE, position=position(sequence(100), lease_counter=26))
    idle = behind(HOUR, ahead=None)
    assert judge(idle, position=moved, before=same).evidence == ()


def test_a_consumer_that_never_stored_a_checkpoint_is_told() -> None:
    (said,) = judge(behind(HOUR), position=position("LATEST")).evidence
    assert said == "leases never stored a checkpoint, only LATEST: a restart skips what waits"


@pytest.mark.parametrize("hole_ago", [None, 5 * HOUR, MINUTE])
def test_what_is_due_first_is_the_nearer_of_the_two_deadlines(hole_ago: timedelta | None) -> None:
    """Of what waits since an hour, and of a hole that is older, or younger."""
    holes = Holes()
    if hole_ago is not None:
        since = NOW - hole_ago
        holes = Holes(cells=1, messages=5, sent=5, since=since, until=since + MINUTE)
    found = judge(behind(HOUR), holes=holes)
    assert found.deadline is not None
    assert (found.hole_deadline is None) is (hole_ago is None)
    is_of_hole = found.first_due is not None and found.first_due == found.hole_deadline
    assert is_of_hole is (hole_ago == 5 * HOUR)


# A stream that keeps a day; of a shard that stopped `ago`, audits have judged all but the last
# `left` (None: nothing); `asked`: since when an audit is asked for (None: it is not).
@pytest.mark.parametrize(
    ("ago", "left", "asked"),
    [
        (HOUR, None, HOUR),
        (HOUR, 2 * HOUR, HOUR),  # it stopped after that audit
        (5 * HOUR, 2 * HOUR, None),
        (18 * HOUR, 2 * HOUR, 2 * HOUR),  # urgent
        (18 * HOUR, 0 * HOUR, None),
        (GRACE, None, None),  # within its patience: on its way
    ],
)
def test_an_audit_is_asked_for_of_what_waits_before_a_stopped_consumer_and_none_has_judged(
    ago: timedelta, left: timedelta | None, asked: timedelta | None
) -> None:
    day = replace(RULES, retention=timedelta(days=1))
    judged = None if left is None else NOW - left
    found = judge(behind(ago), day, judged_until=judged)
    span = (None, None) if asked is None else (NOW - asked, NOW)
    assert found.audit_level.is_alarm is (asked is not None)
    assert (found.unnamed_since, found.unnamed_until) == span
    # Of a stream that keeps a week the nights look at it in time.
    assert not judge(behind(ago), judged_until=judged).audit_level.is_alarm
    # Whose consumer goes on is in no plan; and of a hole before it both are looked at.
    moves = behind(ago, frontier_at=NOW - MINUTE)
    assert judge(moves, day, judged_until=judged).unnamed_since is None
    since = NOW - 20 * HOUR
    holes = Holes(1, 5, 5, unnamed=1, unnamed_since=since, unnamed_until=since + MINUTE)
    both = judge(behind(ago), day, judged_until=judged, holes=holes)
    assert both.unnamed_since == since
    assert both.unnamed_until == (since + MINUTE if asked is None else NOW)


def test_what_was_held_back_is_judged_with_what_came_when_it_came() -> None:
    def unjudged(**of: timedelta) -> Span | None:
        at = {name: NOW - ago for name, ago in of.items()}
        waits = Span(9, NOW - 9 * HOUR, NOW - 8 * HOUR, **at)
        return witness(behind(HOUR, ahead=waits), judged_until=NOW - 2 * HOUR).unjudged

    assert unjudged() is None
    assert unjudged(arrived_from=3 * HOUR, arrived_until=3 * HOUR) is None
    late = unjudged(arrived_from=3 * HOUR, arrived_until=HOUR)
    assert late == Span(9, NOW - 2 * HOUR, NOW - HOUR, NOW - 3 * HOUR, NOW - HOUR)


def test_nothing_is_due_and_nothing_said_of_a_shard_that_keeps_up() -> None:
    well = judge(progress())
    assert (well.first_due, well.words, well.stands_still, well.goes_on) == (
        *(None, None, False, True),
    )


def test_the_words_are_the_advice_and_what_contradicts_it() -> None:
    said = judge(behind(HOUR), position=position("LATEST"))
    assert said.advice is not None
    assert said.words == "; ".join([said.advice, *said.evidence])
    assert (said.stands_still, said.goes_on, len(said.evidence)) == (True, False, 1)


def test_skew_is_between_the_first_and_the_last_of_the_shards_at_work() -> None:
    def seen(shard: str, produced: int, landed: int) -> Judgement:
        at = {"produced_until": NOW - produced * MINUTE, "landed_until": NOW - landed * MINUTE}
        return judge(progress(shard_id=shard, **at))

    old = NOW - 20 * HOUR
    idle = judge(progress(produced_until=old, frontier_at=old, landed_until=old))
    both = [seen("a", 1, 3), seen("b", 2, 3), idle, seen("c", 1, 9), seen("d", 1, 2)]
    assert produced_skew(both) == Skew(MINUTE, NOW - 2 * MINUTE, NOW - MINUTE, "b")
    assert landed_skew(both) == Skew(7 * MINUTE, NOW - 9 * MINUTE, NOW - 2 * MINUTE, "c")
    assert (produced_skew([idle]), landed_skew([])) == (None, None)
    never = judge(progress(landed_until=None, relanded_until=None))
    assert landed_skew([never]) is None
