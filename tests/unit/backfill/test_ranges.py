"""From missing messages to ranges: joined where they are near, cut where they are long."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from shardaudit.backfill.rules.planned import Stretch
from shardaudit.backfill.rules.ranges import AFTER, BEFORE, MAX_LENGTH, ranges, whole_ranges
from shardaudit.model.window import Window
from tests.builders import T0, sequence, shard
from tests.unit.backfill.stretches import RETENTION, stretch


def unplaced(one: Stretch) -> Stretch:
    """The stretch, when no trace of it has a sequence number."""
    return replace(one, first_sequence=None, last_sequence=None)


def test_neighbours_are_one_window_when_the_gap_is_cheaper_than_a_page() -> None:
    found = ranges([stretch(0, 55), stretch(60, 100), stretch(200)])
    assert [(one.start_sequence, one.end_sequence, one.ids) for one in found] == [
        (sequence(0), sequence(100), 20),
        (sequence(200), sequence(200), 10),
    ]


def test_windows_by_time_do_not_read_the_same_minutes_again_and_again() -> None:
    found = ranges([unplaced(stretch(120 * n)) for n in range(30)])
    assert [one.ids for one in found] == [80, 80, 80, 60]
    again = [max(timedelta(0), a.window.end - b.window.start) for a, b in pairwise(found)]
    assert all(span <= BEFORE + AFTER for span in again)
    assert len(ranges([unplaced(stretch(0)), unplaced(stretch(421))])) == 2


def test_window_has_margins() -> None:
    (found,) = ranges([stretch(0, 30)])
    end = T0 + timedelta(seconds=30) + AFTER
    assert (found.window.start, found.window.end) == (T0 - BEFORE, end)


def test_window_reaches_to_where_a_late_message_was_acknowledged() -> None:
    acked = T0 + timedelta(days=3)
    early = acked - timedelta(minutes=5)
    late = unplaced(stretch(0, first_arrival=early, last_arrival=acked))
    (found,) = ranges([late])
    assert found.window == Window(early - BEFORE, acked + AFTER)
    assert found.sent == Window(T0, T0 + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("delay_min", "read_min"), [(None, 5), (1, 5), (25, 25), (60, 60), (3 * 1440, 60)]
)
def test_window_is_as_long_as_the_shards_slowest_message_took_up_to_an_hour(
    delay_min: int | None, read_min: int
) -> None:
    unknown = unplaced(stretch(0, 30, unacked_until=T0 + timedelta(seconds=30)))
    delays = {} if delay_min is None else {shard(0): timedelta(minutes=delay_min)}
    (found,) = ranges([unknown], delays=delays)
    assert found.window.end == T0 + timedelta(seconds=30, minutes=read_min)
    whole = whole_ranges(
        [shard(0)], Window(T0, T0 + MAX_LENGTH), [], deadline=T0 + RETENTION, delays=delays
    )
    assert whole[-1].window.end == T0 + MAX_LENGTH + timedelta(minutes=read_min)
    assert all(one.window.end - one.window.start <= BEFORE + MAX_LENGTH + AFTER for one in whole)
    assert [one.sent for one in whole[1:]] == [None] * (len(whole) - 1)


def test_known_places_are_not_joined_with_unknown_ones() -> None:
    unknown = unplaced(stretch(60))
    found = ranges([stretch(0, 59), unknown])
    assert [one.start_sequence for one in found] == [sequence(0), None]


def test_sequence_numbers_are_compared_as_numbers_when_their_lengths_differ() -> None:
    longer = stretch(5, first_sequence="1000", last_sequence="1000")
    (found,) = ranges([stretch(0, first_sequence="999", last_sequence="999"), longer])
    assert (found.start_sequence, found.end_sequence) == ("999", "1000")


def test_range_by_hand_is_cut_and_covers_every_shard() -> None:
    window = Window(T0, T0 + timedelta(minutes=40))
    shards = [shard(1), shard(0), shard(1)]  # who types one twice means it once
    wanted = [stretch(minute * 60) for minute in (1, 15, 29, 39, 40)]  # the last is beyond it
    found = whole_ranges(shards, window, wanted, deadline=T0 + RETENTION)
    assert [one.ids for one in found] == [10, 20, 10, 0, 0, 0]
    for number in range(2):
        mine = [one.window for one in found if one.shard_id == shard(number)]
        assert (mine[0].start, mine[-1].end) == (window.start - BEFORE, window.end + AFTER)
        assert all(one.end == other.start + BEFORE for one, other in pairwise(mine))
        sent = [one.sent for one in found if one.shard_id == shard(number) and one.sent]
        assert (sent[0].start, sent[-1].end) == (window.start, window.end)
        assert all(one.end == other.start for one, other in pairwise(sent))
    assert all(one.window.end - one.window.start <= BEFORE + MAX_LENGTH + AFTER for one in found)
