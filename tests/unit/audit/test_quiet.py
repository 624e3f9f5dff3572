"""The rule of silence: what is as usual is not told, what is not is told within days."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.audit.rules.quiet import (
    DAY_HOURS,
    WEEK_HOURS,
    doubtful_silences,
    inherited,
    resharded,
)
from tests.history import EPOCH, History, Question, Trace
from tests.oracle_quiet import record_begins, silent_spans
from tests.unit.audit.silences import HOURS, REGULAR, histories, hours_until_told, told

HOUR = timedelta(hours=1)
BUSY = list(range(3 * WEEK_HOURS))


@pytest.mark.parametrize("kind", REGULAR)
def test_no_silence_of_a_regular_shard_is_told(kind: str) -> None:
    found = [told(active) for active in histories(kind, Random(20261121), 40)]  # noqa: S311 - no secret
    assert [silences for silences in found if silences] == []


@pytest.mark.parametrize(
    ("kind", "half", "nearly_all"),
    [("but weekends", 4, 52), ("steady", 12, 24), ("low nights", 24, 48), ("office hours", 24, 96)],
)
def test_outage_of_both_sides_is_told(kind: str, half: int, nearly_all: int) -> None:
    random = Random(20261122)  # noqa: S311 - no secret
    delays = []
    for active in histories(kind, random, 20):
        stop = random.choice([h for h in active if 3 * WEEK_HOURS < h < 5 * WEEK_HOURS]) + 1
        delays.append(hours_until_told(active, stop) or HOURS)
    delays.sort()
    assert delays[len(delays) // 2] <= half
    assert delays[len(delays) * 9 // 10 - 1] <= nearly_all


@pytest.mark.parametrize(
    ("silent", "doubted", "is_told"), [(0, False, False), (1, True, False), (3, True, False),
                                       (4, True, True)],
)  # fmt: skip
def test_busy_shard_is_doubted_at_once_and_told_after_four_hours(
    silent: int, *, doubted: bool, is_told: bool
) -> None:
    found = doubtful_silences(BUSY, until=3 * WEEK_HOURS + silent, born=0)
    assert (bool(found), any(s.is_told for s in found)) == (doubted, is_told)


def test_silence_that_ended_is_told_when_it_was_long_and_not_doubted_when_it_was_not() -> None:
    again = 3 * WEEK_HOURS + 10
    for silent, is_told in ((3, False), (4, True)):
        active = [*range(again - silent), *range(again, again + DAY_HOURS)]
        found = doubtful_silences(active, until=again + DAY_HOURS, born=0)
        assert [(s.start, s.end, s.is_told) for s in found] == [(again - silent, again, True)] * (
            is_told
        )


def test_new_shard_is_doubted_after_a_busy_day_and_told_after_three() -> None:
    assert doubtful_silences(list(range(7)), until=DAY_HOURS + WEEK_HOURS, born=0) == []
    day = list(range(DAY_HOURS))
    [doubted] = doubtful_silences(day, until=DAY_HOURS + 71, born=0)
    [found] = doubtful_silences(day, until=DAY_HOURS + 72, born=0)
    assert (doubted.is_told, found.is_told) == (False, True)


def test_new_shard_with_quiet_nights_is_doubted_by_day_and_not_by_night() -> None:
    active = [day * DAY_HOURS + hour for day in range(3) for hour in range(6, 22)]
    active += [3 * DAY_HOURS + hour for hour in range(6, 11)]
    night, noon = 3 * DAY_HOURS + 6, 3 * DAY_HOURS + 12
    assert doubtful_silences(active[:-5], until=night, born=6) == []
    [found] = doubtful_silences(active, until=noon, born=6)
    assert (found.start, found.is_told) == (3 * DAY_HOURS + 11, False)


def test_what_a_person_called_quiet_is_so_for_its_time_alone() -> None:
    stop = 3 * WEEK_HOURS
    active = [*range(stop), *range(stop + 9, stop + 50)]
    until = stop + 50 + 20
    first, second = doubtful_silences(active, until=until, born=0)
    assert (first.is_told, second.missed, second.is_told) == (True, 20, True)
    said = doubtful_silences(active, until=until, born=0, is_quiet=lambda hour: hour < stop + 9)
    assert [(s.start, s.is_told) for s in said] == [(stop + 50, True)]
    said = doubtful_silences(BUSY, until=until, born=0, is_quiet=lambda hour: hour < stop + 4)
    assert [(s.start, s.end, s.is_told) for s in said] == [(stop + 4, until, True)]


def test_shard_that_pauses_at_random_is_told_after_a_week_at_most() -> None:
    busy = [day * DAY_HOURS + hour for day in (0, 3, 4, 8, 9, 14, 16, 20) for hour in range(12)]
    active = [*busy, *(3 * WEEK_HOURS + hour for hour in busy)]
    last = active[-1] + 1
    [found] = [s for s in doubtful_silences(active, until=last + WEEK_HOURS, born=0) if s.lasts]
    assert found.is_told


@st.composite
def stretches(draw: st.DrawFn) -> list[int]:
    """Hours with messages: stretches of activity and of silence, and some of every day alike."""
    hours, at = set(), 0
    for _ in range(draw(st.integers(1, 8))):
        length = draw(st.sampled_from([1, 5, DAY_HOURS, 3 * DAY_HOURS, WEEK_HOURS, 2 * WEEK_HOURS]))
        every = draw(st.sampled_from([1, 1, 2, 7]))
        hours |= set(range(at, at + length, every))
        at += length + draw(st.sampled_from([0, 1, 3, 4, 7, 10, 30, 75, WEEK_HOURS]))
    return sorted(hours)


@given(stretches(), st.integers(-3, 80))
def test_rule_is_that_of_the_oracle(active: list[int], later: int) -> None:
    until = max(1, active[-1] + later)
    question = Question(EPOCH, EPOCH + HOUR, EPOCH + until * HOUR, settle_grace=timedelta(0))
    history = History(
        traces=tuple(Trace(str(h), "shard-0", str(h), EPOCH + h * HOUR) for h in active)
    )
    known = [hour for hour in active if hour <= until]
    mine = doubtful_silences(known, until=until, born=record_begins(set(known)))
    # The oracle tells each silence twice: of the shard, and of the stream, which is that shard.
    theirs = {((s.end - EPOCH) // HOUR, s.told) for s in silent_spans(history, question, {})}
    assert {(silence.end, silence.is_told) for silence in mine} == theirs


def test_a_pause_of_the_first_week_says_nothing_of_what_is_usual() -> None:
    paused_once = [*range(100), *range(101, 200)]
    [silence] = doubtful_silences(paused_once, until=204, born=0)
    assert (silence.start, silence.end, silence.missed, silence.is_told) == (200, 204, 4, True)


def test_a_reshard_closes_no_more_shards_than_it_can() -> None:
    """The last hours of the shards that fell silent, the first ones of those that began."""
    cases: dict[str, tuple[dict[str, int], dict[str, int], set[str]]] = {
        "a split": ({"a": 10}, {"b": 10, "c": 11}, {"a"}),
        "a merge": ({"a": 10, "b": 10}, {"c": 11}, {"a", "b"}),
        "a split, and an outage of nine": (
            dict.fromkeys("abcdefghij", 10),
            {"k": 11, "l": 11},
            set(),
        ),
        "nobody began": ({"a": 10}, {"b": 8, "c": 12}, set()),
        "a merge, and later an outage": ({"a": 10, "b": 10, "d": 20}, {"c": 11}, {"a", "b"}),
    }
    for name, (ended, born, closed) in cases.items():
        assert resharded(ended, dict.fromkeys(ended, 0) | born) == closed, name


def test_a_child_inherits_the_last_day_of_those_whose_place_it_took() -> None:
    """The hours of the shards; of a child, what it inherits."""
    day = list(range(100, 130))
    cases: dict[str, tuple[dict[str, list[int]], list[int]]] = {
        "a split": ({"1": day, "3": [130, 131]}, day[-24:]),
        "a merge": ({"1": [100, 102], "2": [101], "3": [103]}, [100, 101, 102]),
        "no message between two splits": ({"0": [7, 8], "3": [9]}, [7, 8]),
        "a parent whose clock is ahead": ({"1": [7, 50], "3": [8, 9]}, [7]),
        "a child whose clock is behind": ({"1": [700], "3": [8, 701]}, [700]),
        "long after": ({"1": [7], "3": [50]}, []),
        "a parent of no message": ({"3": [9]}, []),
        "a child of many hours": ({"1": day, "3": list(range(130, 138))}, day[-24:]),
        "and of a device's old ones": ({"1": day, "3": [*range(7, 15), 130, 131]}, day[-24:]),
    }
    for name, (hours, taken) in cases.items():
        born = {shard: min([h for h in own if h >= 100] or own) for shard, own in hours.items()}
        found = inherited(hours, born, {"1": ["0"], "3": ["1", "2"]})
        assert found.get("3", []) == taken, name
