"""From ranges to windows: priced, ordered, and told when it is too late."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.backfill.ledger import taken_up
from shardaudit.backfill.rules.plan import Terms, planned, price, wanted_stretches
from shardaudit.backfill.rules.planned import WindowState, window_order
from shardaudit.backfill.rules.ranges import AFTER, BEFORE, ranges, whole_ranges
from shardaudit.model.retention import bytes_at_most, seconds_to_read, time_to_read
from shardaudit.model.sequence import sequence_order
from shardaudit.model.verdict import URGENT_WITHIN, Cause
from shardaudit.model.window import Window
from tests.builders import T0, shard
from tests.unit.backfill.stretches import RETENTION, stretch
from tests.unit.backfill.windows import stored_window

NOW = T0 + timedelta(hours=2)
TERMS = Terms("events", NOW, RETENTION, 0.5, "digest")


def test_price_is_a_page_when_one_record_is_wanted() -> None:
    (one,) = ranges([stretch(0)])
    assert price(one, read_share=0.5).records == 1
    assert price(one, read_share=0.5).seconds == 10.5  # 10 MiB at 1 MB/s
    assert price(one, read_share=1.0).seconds == 5.3


def test_price_is_what_the_shard_can_take_when_only_the_time_is_known() -> None:
    (one,) = ranges([stretch(0, first_sequence=None, last_sequence=None)])
    cost = price(one, read_share=1.0)
    seconds = (BEFORE + AFTER).total_seconds()
    assert cost.size_bytes == (seconds + 10) * 2**20
    assert cost.seconds >= seconds / 2


def test_most_urgent_window_is_first_and_named_in_that_order() -> None:
    plan = planned(ranges([stretch(600), stretch(0), stretch(300)]), TERMS)
    assert [one.window_id for one in plan.windows] == ["00001", "00002", "00003"]
    assert plan.windows == tuple(sorted(plan.windows, key=lambda one: one.deadline))
    assert plan.extension is None


@pytest.mark.slow
def test_window_ids_sort_in_their_order_when_there_are_more_than_99_999() -> None:
    (one,) = ranges([stretch(0)])
    ids = [window.window_id for window in planned([one] * 100_001, TERMS).windows]
    assert ids == sorted(ids) == sorted(ids, key=window_order)
    of_old = [f"{number:05}" for number in range(99_998, 100_003)]
    assert sorted(reversed(of_old), key=window_order) == of_old != sorted(of_old)


def test_plan_proposes_the_retention_that_makes_it_feasible() -> None:
    soon = NOW + timedelta(seconds=3)
    plan = planned(ranges([stretch(0, deadline=soon)]), TERMS)
    assert (plan.windows[0].feasible, plan.extension) == (False, timedelta(hours=25))


def test_nothing_is_proposed_when_the_messages_are_gone_already() -> None:
    gone = NOW - timedelta(hours=1)
    plan = planned(ranges([stretch(0, deadline=gone)]), TERMS)
    assert (plan.windows[0].feasible, plan.extension) == (False, None)


def test_plan_has_the_same_id_when_it_is_made_again_later() -> None:
    wanted = [stretch(0), stretch(600, shard_id=shard(1))]
    first = planned(ranges(wanted), TERMS)
    later = replace(TERMS, as_of=NOW + timedelta(hours=1))
    again = planned(ranges(reversed(wanted)), later)
    # As many messages between the same two, but others: one came, another went.
    for change in ({"ids": 11}, {"ids_sum": 1}):
        other = planned(ranges([stretch(0, **change), wanted[1]]), TERMS)
        assert first.plan_id == again.plan_id != other.plan_id


def test_plan_has_the_same_id_when_late_traces_tell_when_its_records_came() -> None:
    arrivals = [T0 + timedelta(minutes=minutes) for minutes in (0, 40)]
    plans = [
        planned(ranges([stretch(0, first_arrival=at, last_arrival=at)]), TERMS) for at in arrivals
    ]
    assert plans[0].windows[0].window.start != plans[1].windows[0].window.start
    assert plans[0].plan_id == plans[1].plan_id


def test_plan_of_a_longer_time_by_hand_is_another_though_nothing_more_lacks() -> None:
    by_hand = replace(TERMS, takes_all=True)
    plans = {
        planned(
            whole_ranges([shard(0)], Window(T0, end), [stretch(60)], deadline=NOW + RETENTION),
            replace(by_hand, as_of=at),
        ).plan_id
        for end in (T0 + timedelta(minutes=2), T0 + timedelta(minutes=9))
        for at in (NOW, NOW + timedelta(hours=1))
    }
    assert len(plans) == 2


def test_stuck_messages_are_planned_when_asked_for_or_when_time_runs_out() -> None:
    tail = [stretch(0, cause=Cause.STUCK), stretch(60, 3600, cause=Cause.STUCK)]
    near = [replace(s, shard_id=shard(1), deadline=NOW + URGENT_WITHIN) for s in tail]
    wanted = [stretch(0), *tail, *near]
    assert {
        (one.shard_id, one.why) for one in wanted_stretches(wanted, TERMS, include_stuck=False)
    } == {(shard(0), "lost"), (shard(1), "stuck, and it must start within 6 h")}
    # Of few messages the time between them is not read: they can wait for the consumer longer.
    hour = timedelta(hours=1)
    few = [replace(s, deadline=NOW + URGENT_WITHIN + hour) for s in tail]
    full = [replace(s, ids=500) for s in few]
    assert not wanted_stretches(few, TERMS, include_stuck=False)
    assert len(wanted_stretches(full, TERMS, include_stuck=False)) == 2
    sampled = replace(TERMS, sample_rate=0.01)
    assert len(wanted_stretches(few, sampled, include_stuck=False)) == 2
    everything = wanted_stretches(wanted, TERMS, include_stuck=True)
    assert len(everything) == 5
    assert {one.because for one in everything[1:]} == {"stuck, asked for"}


@given(minutes=st.integers(1, 7 * 24 * 60), share=st.floats(0.01, 1.0), known=st.booleans())
def test_plan_and_watch_read_a_full_shard_in_the_same_time(
    minutes: int, share: float, known: bool
) -> None:
    """But for the margins and pages around it: the plan's is the longer one."""
    span = timedelta(minutes=minutes)
    places = {} if known else {"first_sequence": None, "last_sequence": None}
    (one,) = ranges([stretch(0, int(span.total_seconds()), **places)])
    size = bytes_at_most(span)
    watched = time_to_read(size, share=share).total_seconds()
    cost = price(one, read_share=share)
    around = seconds_to_read(cost.size_bytes - size, calls=10, share=share)
    assert watched <= cost.seconds <= watched + around + 0.2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 500)), max_size=40, unique=True))
def test_every_missing_message_is_in_exactly_one_window(places: list[tuple[int, int]]) -> None:
    stretches = [
        stretch(60 * minute + 7, 60 * minute + 50, shard_id=shard(number), ids=minute + 1)
        for number, minute in places
    ]
    plan = planned(ranges(stretches), TERMS)
    assert sum(one.expected_ids for one in plan.windows) == sum(one.ids for one in stretches)
    covered = [(one.shard_id, start) for one in plan.windows for start in one.buckets]
    assert sorted(covered) == sorted((one.shard_id, one.bucket_start) for one in stretches)
    for one in stretches:
        (mine,) = [
            w for w in plan.windows if w.shard_id == one.shard_id and one.bucket_start in w.buckets
        ]
        assert mine.start_sequence is not None
        assert mine.end_sequence is not None
        assert one.first_sequence is not None
        first = sequence_order(one.first_sequence)
        assert sequence_order(mine.start_sequence) <= first <= sequence_order(mine.end_sequence)
        assert mine.window.covers(one.first_sent_at)
        assert mine.window.covers(one.last_sent_at)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_verified_window_whose_messages_lack_again_begins_anew(*, by_hand: bool) -> None:
    """Of a range by hand each does: nobody knows what lacks in it."""
    plan = planned(ranges([stretch(n * 300, ids=10 * (not by_hand)) for n in range(4)]), TERMS)
    plan = replace(plan, windows=tuple(replace(w, takes_all=by_hand) for w in plan.windows))
    ended = (WindowState.VERIFIED, WindowState.EXPIRED, WindowState.CANCELLED)
    states = (WindowState.INCOMPLETE, *ended)
    before = [
        stored_window(plan_id=plan.plan_id, window_id=one.window_id, state=state, approved_by="ann")
        for one, state in zip(plan.windows, states, strict=True)
    ]
    again = taken_up(plan, before, now=NOW)
    assert [(w.window_id, w.state, w.approved_by, w.updated_at) for w in again] == [
        ("00001", WindowState.INCOMPLETE, "ann", NOW),
        ("00002", WindowState.PLANNED, None, NOW),
        ("00003", WindowState.EXPIRED, "ann", NOW),
        ("00004", WindowState.PLANNED, None, NOW),
    ]


def test_what_an_earlier_version_left_to_read_waits_for_an_approval_of_what_is_configured() -> None:
    plan = replace(planned(ranges([stretch(0)]), TERMS), configured="{}")
    left = (WindowState.APPROVED, WindowState.RUNNING, WindowState.INCOMPLETE)
    before = [stored_window(state=s, approved_by="ann") for s in (*left, WindowState.MERGED)]
    again = taken_up(plan, before, now=NOW)
    waiting = [(WindowState.PLANNED, None)] * len(left)
    assert [(w.state, w.approved_by) for w in again] == [*waiting, (WindowState.MERGED, "ann")]
    assert {w.configured for w in again} == {"{}"}
    assert taken_up(plan, again, now=NOW) == again


def test_a_plan_that_waited_says_its_deadlines_as_they_are_by_now() -> None:
    """It was in time a day ago; or its stream's retention was extended since."""
    soon = NOW + timedelta(seconds=3)
    plan = planned(ranges([stretch(0, deadline=soon)]), TERMS)
    states = (WindowState.PLANNED, WindowState.INCOMPLETE, WindowState.MERGED)
    before = [stored_window(state=state) for state in states]
    was = (before[0].deadline, True)
    again = [(w.deadline, w.feasible) for w in taken_up(plan, before, now=NOW)]
    assert again == [(soon, False), (soon, False), was]
