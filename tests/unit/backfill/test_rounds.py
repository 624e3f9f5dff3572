"""How many windows are read and landed together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.backfill.rounds import first_round, in_rounds, next_limit
from shardaudit.backfill.rules.planned import StoredWindow
from tests.unit.backfill.windows import stored_window

LIMIT = 4000


def windows(*sizes: int) -> list[StoredWindow]:
    return [stored_window(window_id=str(n), estimated_bytes=b) for n, b in enumerate(sizes)]


class Stream:
    """Is read window by window; some of them fail."""

    def __init__(self, *failing: int) -> None:
        self.failing, self.read = {str(n) for n in failing}, list[str]()

    def __call__(self, these: list[StoredWindow]) -> int:
        for window in these:
            self.read.append(window.window_id)
            if window.window_id in self.failing:
                raise RuntimeError(f"window {window.window_id}")
        return LIMIT * len(these)


HUNDREDS = st.integers(1, 90).map(lambda n: 100 * n)


@given(sizes=st.lists(HUNDREDS, min_size=1, max_size=30), percent=st.integers(0, 100))
def test_every_window_is_in_one_round_in_order_and_no_round_is_too_large(
    sizes: list[int], percent: int
) -> None:
    """However full the shards are, as long as they are equally full."""
    waiting, limit, seen = windows(*sizes), LIMIT, []
    while waiting:
        these = first_round(waiting, max_bytes=limit)
        estimated = [window.estimated_bytes for window in these]
        read_bytes = percent * sum(estimated) // 100  # a whole number: nothing is cut off
        assert len(these) == 1 or read_bytes <= LIMIT
        seen += these
        waiting = waiting[len(these) :]
        limit = next_limit(limit, these, read_bytes=read_bytes, at_most=LIMIT)
    assert seen == windows(*sizes)


def test_rounds_grow_when_the_shards_are_nearly_empty_tenfold_at_most() -> None:
    assert next_limit(LIMIT, windows(4000), read_bytes=1, at_most=LIMIT) == 10 * LIMIT
    assert next_limit(LIMIT, windows(4000), read_bytes=800, at_most=LIMIT) == 5 * LIMIT
    assert next_limit(5 * LIMIT, windows(4000), read_bytes=4000, at_most=LIMIT) == LIMIT
    assert next_limit(LIMIT, windows(4000), read_bytes=0, at_most=LIMIT) == 10 * LIMIT


def test_a_round_that_fails_stops_no_other_and_fails_all_at_the_end() -> None:
    stream = Stream(0)
    with pytest.raises(RuntimeError, match="window 0"):
        in_rounds(windows(*[LIMIT] * 4), stream, max_bytes=LIMIT)
    assert stream.read == ["0", "1", "2", "3"]


def test_the_second_round_that_fails_ends_it() -> None:
    stream = Stream(0, 2)
    with pytest.raises(RuntimeError, match="window 2"):
        in_rounds(windows(*[LIMIT] * 4), stream, max_bytes=LIMIT)
    assert stream.read == ["0", "1", "2"]


def test_all_windows_are_read_in_their_order() -> None:
    stream = Stream()
    in_rounds(windows(*[LIMIT] * 30), stream, max_bytes=LIMIT)
    assert stream.read == [str(n) for n in range(30)]
