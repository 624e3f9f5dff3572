"""Times, lengths, sizes and numbers in sentences."""

from datetime import timedelta

import pytest

from shardaudit.model.words import at, byte_size, length, messages
from tests.builders import T0


def test_a_time_is_told_to_the_minute() -> None:
    assert at(T0.replace(hour=7, minute=5, second=59)) == f"{T0:%Y-%m-%d}T07:05Z"


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=12), "12 s"),
        (timedelta(seconds=61), "1 min"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(hours=1), "1 h 0 min"),
        (timedelta(hours=23, minutes=59), "23 h 59 min"),
        (timedelta(days=1), "1 d 0 h"),
        (timedelta(days=6, hours=22, minutes=59), "6 d 22 h"),
        (-timedelta(hours=2, minutes=3), "2 h 3 min"),
    ],
)
def test_a_length_is_told_in_its_two_largest_units(span: timedelta, said: str) -> None:
    assert length(span) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (3 * 2**19, "1.5 MiB"),
        (2**30, "1.0 GiB"),
        (5 * 2**41, "10.0 TiB"),
    ],
)
def test_a_size_is_told_in_its_largest_unit(number: int, said: str) -> None:
    assert byte_size(number) == said


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 messages"), (1, "1 message"), (1234, "1,234 messages")]
)
def test_a_number_has_its_noun(count: int, said: str) -> None:
    assert messages(count) == said
