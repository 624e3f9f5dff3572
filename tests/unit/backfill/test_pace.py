"""A reader of one shard stays below its share of 5 calls and 2 MB a second."""

import pytest

from shardaudit.backfill.rules.pace import Pace
from tests.unit.backfill.shards import Time

MB = 10**6


def paced(share: float) -> tuple[Pace, Time]:
    clock = Time()
    return Pace(share, clock=clock.now, sleep=clock.sleep), clock


@pytest.mark.parametrize(
    ("share", "size_bytes", "seconds"),
    [
        (1.0, 0, 0.2),  # an empty page costs a call
        (1.0, 2 * MB, 1.0),
        (1.0, 10 * MB, 5.0),
        (0.5, 0, 0.4),
        (0.5, 2 * MB, 2.0),
    ],
)
def test_the_next_call_waits_for_what_the_last_one_brought(
    share: float, size_bytes: int, seconds: float
) -> None:
    pace, clock = paced(share)
    pace.wait()
    assert clock.at == 0.0  # the first call is free
    pace.called(size_bytes)
    pace.wait()
    assert clock.at == pytest.approx(seconds)


def test_time_that_a_call_took_itself_is_not_waited_for_again() -> None:
    pace, clock = paced(1.0)
    pace.called(2 * MB)
    clock.sleep(0.75)
    pace.wait()
    assert clock.at == pytest.approx(1.0)


def test_a_long_rest_lets_nobody_catch_up() -> None:
    pace, clock = paced(1.0)
    clock.sleep(100.0)
    for _ in range(2):
        pace.called(2 * MB)
        pace.wait()
    assert clock.at == pytest.approx(102.0)


def test_a_throttled_shard_is_left_alone_for_longer() -> None:
    pace, clock = paced(1.0)
    pace.pause(3.0)
    assert clock.at == 3.0
