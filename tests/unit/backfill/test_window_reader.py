"""A window is read to its end, whatever the shard answers, or it is said what was not read."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.backfill.rules.reading import ReadOutcome
from shardaudit.backfill.window_reader import MAX_TRIES
from shardaudit.model.errors import FinalError
from shardaudit.model.get_records import (
    IteratorExpiredError,
    PlaceGoneError,
    Start,
    StreamPage,
    ThrottledError,
)
from tests.builders import T0, sequence
from tests.unit.backfill.shards import (
    FakeShard,
    numbers,
    read,
    read_in_turn,
    record,
    seconds,
    window,
)

TEN = [record(number) for number in range(10)]


def by_sequence(first: int, last: int, **fields: object) -> dict[str, object]:
    return {"start_sequence": sequence(first), "end_sequence": sequence(last), **fields}


def test_time_window_brings_its_records_and_no_others() -> None:
    found, outcome = read(FakeShard(TEN), window(2, 5))
    assert numbers(found) == [2, 3, 4]
    assert (outcome.is_complete, outcome.error, outcome.expired_from) == (True, None, None)


def test_sequence_window_includes_both_ends() -> None:
    shard = FakeShard(TEN)
    found, outcome = read(shard, window(0, 99, **by_sequence(3, 6)))
    assert (numbers(found), outcome.is_complete) == ([3, 4, 5, 6], True)


def test_one_record_is_one_call_for_one_record() -> None:
    shard = FakeShard(TEN, page_size=10_000)
    found, outcome = read(shard, window(0, 99, **by_sequence(4, 4)))
    assert (numbers(found), outcome.calls, outcome.records) == ([4], 1, 1)


def test_pages_between_known_places_grow() -> None:
    shard = FakeShard([record(number) for number in range(30_000)], page_size=10_000)
    found, outcome = read(shard, window(0, 99, **by_sequence(0, 20_000)))
    assert (len(found), outcome.calls) == (20_001, 4)  # 500, 2,000, 8,000, 10,000
    few, outcome = read(shard, window(0, 99, **by_sequence(3, 6)))
    assert (len(few), outcome.records) == (4, 500)


def test_arrival_times_out_of_order_do_not_end_a_window() -> None:
    arrivals = [0, 1, 50, 2, 60, 3, 4, 70, 5, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90]
    shard = FakeShard([record(n, arrived_s=at) for n, at in enumerate(arrivals)], page_size=1)
    found, _ = read(shard, window(0, 10))
    assert numbers(found) == [0, 1, 3, 5, 6, 8]
    assert len(shard.calls) < len(arrivals)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_empty_page_is_not_the_end(every: int) -> None:
    shard = FakeShard(TEN, page_size=1, empty_every=every + 1)
    assert numbers(read(shard, window(0, 99))[0]) == list(range(10))


def test_expired_iterator_goes_on_behind_the_last_record() -> None:
    refusals = [None, IteratorExpiredError(), None, IteratorExpiredError(), IteratorExpiredError()]
    shard = FakeShard(TEN, refusals=refusals)
    found, outcome = read(shard, window(0, 99))
    assert (numbers(found), outcome.is_complete) == (list(range(10)), True)
    assert [(s.sequence_number, s.is_after) for s in shard.starts[1:]] == [
        (sequence(2), True),
        (sequence(5), True),
        (sequence(5), True),
    ]


def test_throttling_is_waited_out() -> None:
    refusals = [None, *[ThrottledError()] * 5]
    shard = FakeShard(TEN, page_size=1, refusals=refusals)
    found, outcome = read(shard, window(0, 99))
    assert (numbers(found), outcome.is_complete) == (list(range(10)), True)
    # Beyond the pace of the calls: the waits double, and even the shortest add up to two seconds.
    assert shard.time.at > (outcome.calls - 1) / 5 + 2


def test_window_is_incomplete_when_throttling_never_ends() -> None:
    shard = FakeShard(TEN, refusals=[None, *[ThrottledError("busy")] * MAX_TRIES])
    found, outcome = read(shard, window(0, 99))
    assert (numbers(found), outcome.is_complete, outcome.error) == ([0, 1, 2], False, "busy")


def test_a_shard_is_given_up_once_for_all_its_windows() -> None:
    shard = FakeShard(TEN, refusals=[None, *[ThrottledError("busy")] * MAX_TRIES])
    outcomes = [outcome for _, outcome in read_in_turn(shard, [window(0, 99)] * 3)]
    assert [(each.is_complete, each.error) for each in outcomes] == [(False, "busy")] * 3
    assert len(shard.calls) == 1 + MAX_TRIES


def test_a_shard_that_does_not_answer_is_given_up_within_three_minutes() -> None:
    class Silent(FakeShard):
        def page(self, iterator: str, *, limit: int) -> StreamPage:
            self.time.sleep(20)  # the client's limit for an answer
            return super().page(iterator, limit=limit)

    shard = Silent(TEN, refusals=[ThrottledError("no answer")] * 99)
    outcome = read(shard, window(0, 99))[1]
    assert (outcome.is_complete, outcome.error) == (False, "no answer")
    assert shard.time.at < 180


def test_window_is_incomplete_when_kinesis_refuses() -> None:
    outcome = read(FakeShard(TEN, refusals=[FinalError("not allowed")]), window(0, 99))[1]
    assert (outcome.is_complete, outcome.error) == (False, "not allowed")


def test_closed_shard_ends_without_a_next_iterator() -> None:
    found, outcome = read(FakeShard(TEN, is_open=False), window(5, 99))
    assert (numbers(found), outcome.is_complete) == ([5, 6, 7, 8, 9], True)


LEFT = [record(number, arrived_s=600 + number) for number in range(6, 10)]
LONG_AFTER, LONG_BEFORE = T0 + timedelta(days=9), T0 - timedelta(days=9)


def ends(outcome: ReadOutcome) -> tuple[float | None, ...]:
    return tuple(map(seconds, (outcome.begins_at, outcome.expired_from, outcome.expired_to)))


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"horizon": LONG_AFTER}, (606, 0, 606)),
        # Kinesis keeps it for less than the configuration says.
        ({"horizon": LONG_BEFORE, "is_expected": True}, (606, 0, 606)),
        # A shard that is younger than the range, as far as anybody knows.
        ({"horizon": LONG_BEFORE}, (606, None, None)),
    ],
)
def test_expired_part_is_told_from_the_oldest_record_that_is_left(
    told: dict[str, object], found: tuple[float | None, ...]
) -> None:
    got, outcome = read(FakeShard(LEFT, empty_every=3), window(0, 608, **told))
    assert (numbers(got), outcome.is_complete) == ([6, 7], True)
    assert ends(outcome) == found


@pytest.mark.parametrize("horizon", [LONG_AFTER, LONG_BEFORE])
def test_nothing_expired_when_an_older_record_is_still_there(horizon: datetime) -> None:
    """Kinesis keeps it for longer than the configuration says."""
    shard = FakeShard([record(1, arrived_s=-50), *LEFT])
    got, outcome = read(shard, window(0, 608, horizon=horizon, is_expected=True))
    assert (numbers(got), ends(outcome)) == ([6, 7], (None, None, None))
    got, outcome = read(shard, window(-40, 500, horizon=horizon, is_expected=True))
    assert (numbers(got), ends(outcome)) == ([], (None, None, None))


def test_oldest_record_is_asked_for_once_for_all_windows_of_a_shard() -> None:
    shard = FakeShard([record(1, arrived_s=-50), *LEFT])
    wanted = [window(start, start + 90, is_expected=True) for start in range(0, 500, 100)]
    for _, outcome in read_in_turn(shard, wanted):
        assert ends(outcome) == (None, None, None)
    assert sum(start == Start() for start in shard.starts) == 1


@pytest.mark.parametrize("horizon", [LONG_AFTER, LONG_BEFORE])
def test_expired_part_is_recorded_when_the_first_sequence_number_is_gone(
    horizon: datetime,
) -> None:
    got, outcome = read(FakeShard(LEFT), window(1, 900, **by_sequence(2, 7, horizon=horizon)))
    assert (numbers(got), ends(outcome)) == ([6, 7], (606, 1, 606))
    shard = FakeShard([record(1), *LEFT])  # it never was where its trace says
    got, outcome = read(shard, window(1, 900, **by_sequence(2, 7, horizon=horizon)))
    assert (numbers(got), ends(outcome)) == ([6, 7], (None, None, None))


@pytest.mark.parametrize("shard", [FakeShard([]), FakeShard([], is_open=False), FakeShard(TEN)])
@pytest.mark.parametrize("horizon", [LONG_AFTER, LONG_BEFORE])
def test_everything_is_expired_when_nothing_of_it_is_left(
    shard: FakeShard, horizon: datetime
) -> None:
    shard = replace(shard, is_gone=bool(shard.records))
    found, outcome = read(shard, window(0, 8, horizon=horizon, is_expected=True))
    assert (found, outcome.is_complete) == ([], True)
    assert ends(outcome) == (8, 0, 8)


def test_nothing_expired_when_the_shard_was_silent_and_the_time_is_young() -> None:
    outcome = read(FakeShard([record(900)]), window(0, 500))[1]
    assert (outcome.is_complete, outcome.expired_from) == (True, None)
    outcome = read(FakeShard([record(100)]), window(0, 500, horizon=LONG_AFTER))[1]
    assert ends(outcome) == (None, None, None)  # within the margin


def test_window_that_begins_in_the_page_at_hand_costs_no_call() -> None:
    shard = FakeShard([record(number) for number in range(2000)], page_size=10_000)
    wanted = [window(0, 99, **by_sequence(first, first + 5)) for first in range(0, 490, 10)]
    found = read_in_turn(shard, wanted)
    assert [numbers(got) for got, _ in found] == [
        list(range(first, first + 6)) for first in range(0, 490, 10)
    ]
    assert all(outcome.is_complete for _, outcome in found)
    assert (len(shard.calls), len(shard.starts)) == (1, 1)


@given(
    cuts=st.lists(st.tuples(st.integers(0, 59), st.integers(0, 20)), max_size=8),
    page_size=st.integers(1, 30),
    expired=st.sets(st.integers(0, 30)),
    is_open=st.booleans(),
    first=st.integers(0, 20),
)
def test_page_at_hand_changes_nothing_of_what_is_found(
    cuts: list[tuple[int, int]],
    page_size: int,
    expired: set[int],
    is_open: bool,
    first: int,
) -> None:
    """Whatever windows come in whatever order, from a shard of which the beginning is gone."""
    wanted = [
        window(0, 99, **by_sequence(start, start + length, horizon=T0 + timedelta(days=1)))
        for start, length in cuts
    ]
    records = [record(number) for number in range(first, 60)]
    refusals = [IteratorExpiredError() if n in expired else None for n in range(31)]
    shard = FakeShard(records, page_size=page_size, is_open=is_open, refusals=refusals)
    alone = [read(FakeShard(records, page_size=page_size, is_open=is_open), w) for w in wanted]
    for (got, outcome), (expected, told) in zip(read_in_turn(shard, wanted), alone, strict=True):
        assert (numbers(got), outcome.is_complete) == (numbers(expected), told.is_complete)
        assert (outcome.expired_from, outcome.expired_to) == (told.expired_from, told.expired_to)


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize(("size", "page_size"), [(10, 1), (2**20, 10), (300_000, 1)])
def test_calls_and_bytes_stay_below_the_share(share: float, size: int, page_size: int) -> None:
    records = [record(number, content=b"x" * size) for number in range(40)]
    shard = FakeShard(records, page_size=page_size)
    found, _ = read(shard, window(0, 99), share=share)
    assert len(found) == 40
    for first, (since, _) in enumerate(shard.calls):
        for last in range(first + 1, len(shard.calls)):
            until = shard.calls[last][0]
            calls, brought = last - first, sum(b for _, b in shard.calls[first:last])
            assert calls <= 5 * share * (until - since) + 1e-6
            assert brought <= 2 * 2**20 * share * (until - since) + 1e-6


class Foreign(FakeShard):
    """Of which no record has that number: Kinesis says that it encodes another shard."""

    def iterator(self, shard_id: str, start: Start) -> str:
        if start.sequence_number is not None:
            self.starts.append(start)
            raise PlaceGoneError("it encodes another shard")
        return super().iterator(shard_id, start)


@pytest.mark.parametrize("number", [8001, 500_001])
def test_a_place_on_another_shard_is_looked_for_at_its_time_and_not_through_all_of_the_shard(
    number: int,
) -> None:
    """A trace that names a wrong shard; record by record, or to the end, that takes hours."""
    shard = Foreign([record(n) for n in range(0, 400_000, 2)], page_size=10_000)
    place = sequence(number)
    wanted = window(8001 - 120, 8001 + 300, start_sequence=place, end_sequence=place)
    outcome = read(shard, wanted)[1]
    assert (outcome.is_complete, outcome.expired_from) == (True, None)
    assert (len(shard.calls) < 6, outcome.records < 21_000) == (True, True)
