"""Holes without traces, and silences: plain values."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.audit.rules.hours import HOUR, Hole, Hour, holes, silence_lengths, slot

DAY = datetime(2026, 11, 19, tzinfo=UTC)


def hours(*numbers: int, sent: int = 5, landed: int = 5) -> list[Hour]:
    return [Hour(DAY + n * HOUR, sent, landed) for n in numbers]


def test_a_hole_is_where_rows_landed_without_a_trace_between_hours_with_traces() -> None:
    hole = Hole(12, 60, is_open=False)
    found = holes([*hours(14, 15, 0, 1), *hours(*range(2, 14), sent=0)], HOUR)
    assert found == {DAY + n * HOUR: hole for n in range(2, 14)}


def test_a_hole_at_the_end_is_open_and_before_the_first_trace_there_is_none() -> None:
    found = holes([*hours(0, 1, sent=0), *hours(2), *hours(3, 4, 6, sent=0)], HOUR)
    assert found == {DAY + n * HOUR: Hole(4, 15, is_open=True) for n in (3, 4, 6)}


def test_a_stretch_in_which_nothing_landed_is_no_hole() -> None:
    assert holes([*hours(0, 9), *hours(3, 4, sent=0, landed=0)], HOUR) == {}
    assert holes([], HOUR) == {}


def test_two_holes_are_told_apart() -> None:
    found = holes([*hours(0, 3, 5), *hours(1, 2, 4, sent=0)], HOUR)
    assert [found[DAY + n * HOUR].hours for n in (1, 2, 4)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("active", "silence", "usual"),
    [((0, 1, 2, 14), 11, 0), ((0, 6, 12, 20), 7, 5), ((0, 6, 12, 18), 5, 5), ((0, 9), 8, 0)],
)
def test_a_silence_is_told_beside_the_longest_other_one(
    active: Sequence[int], silence: int, usual: int
) -> None:
    last = DAY + active[-1] * HOUR
    assert silence_lengths(hours(*active), HOUR)[last] == (silence, usual)
    assert silence_lengths(hours(0), HOUR) == {}


def test_an_hour_of_which_an_earlier_audit_alone_knows_ends_no_silence() -> None:
    gone = Hour(DAY + 5 * HOUR, 0, 0, sent_before=5)
    assert silence_lengths([*hours(0, 12), gone], HOUR) == {DAY + 12 * HOUR: (11, 0)}


def test_a_long_bucket_is_the_slot() -> None:
    assert slot(timedelta(minutes=1)) == HOUR
    width = slot(6 * HOUR)
    told = [Hour(DAY, 1, 1), Hour(DAY + 6 * HOUR, 0, 9), Hour(DAY + 18 * HOUR, 1, 1)]
    assert holes(told, width) == {DAY + 6 * HOUR: Hole(6, 9, is_open=False)}
    assert silence_lengths(told, width)[DAY + 18 * HOUR] == (6, 0)
