"""Windows: cut into parts, and joined to few."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.window import Window, joined

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
Span = tuple[int, int]
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 9)).map(lambda at: (at[0], at[0] + at[1])),
    max_size=12,
)


def window(span: Span) -> Window:
    return Window(T0 + span[0] * MINUTE, T0 + span[1] * MINUTE)


def spans_of(windows: list[Window]) -> list[Span]:
    return [((one.start - T0) // MINUTE, (one.end - T0) // MINUTE) for one in windows]


def test_spans_that_touch_or_overlap_are_one() -> None:
    given_spans = [(8, 9), (0, 3), (3, 5), (1, 2), (4, 6)]
    assert spans_of(joined(map(window, given_spans))) == [(0, 6), (8, 9)]


def test_the_gaps_that_cost_least_are_filled_of_equal_ones_the_last() -> None:
    apart = [(0, 1), (3, 4), (5, 6), (16, 17), (19, 20), (22, 23)]
    assert spans_of(joined(map(window, apart), most=4)) == [(0, 1), (3, 6), (16, 17), (19, 23)]
    assert spans_of(joined(map(window, apart), most=2)) == [(0, 6), (16, 23)]
    assert spans_of(joined(map(window, apart), most=1)) == [(0, 23)]


@given(SPANS, st.integers(1, 12))
def test_few_windows_cover_what_all_spans_cover_and_do_not_touch(
    given_spans: list[Span], most: int
) -> None:
    minutes = {n for start, end in given_spans for n in range(start, end)}
    exact = spans_of(joined(map(window, given_spans)))
    assert {n for start, end in exact for n in range(start, end)} == minutes
    few = spans_of(joined(map(window, given_spans), most=most))
    assert len(few) == min(most, len(exact))
    assert minutes <= {n for start, end in few for n in range(start, end)}
    assert all(end < start for (_, end), (start, _) in pairwise(few))


def test_parts_are_of_one_length_but_the_last() -> None:
    assert spans_of(window((0, 7)).parts(3 * MINUTE)) == [(0, 3), (3, 6), (6, 7)]
    assert spans_of(window((0, 6)).parts(3 * MINUTE)) == [(0, 3), (3, 6)]
    assert spans_of(window((0, 2)).parts(3 * MINUTE)) == [(0, 2)]
