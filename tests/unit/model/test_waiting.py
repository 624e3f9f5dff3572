"""What waits before the window, from night to night."""

from datetime import UTC, datetime, timedelta

from shardaudit.model.waiting import Waiting, still_waiting, waiting_from_json
from shardaudit.model.window import Window

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def span(start: int, end: int) -> Window:
    return Window(T0 + start * MINUTE, T0 + end * MINUTE)


def test_what_waits_keeps_the_night_that_first_left_it() -> None:
    first = still_waiting([span(0, 5), span(3, 8), span(20, 21)], Waiting(), as_of=T0)
    assert (first.length, first.since) == (9 * MINUTE, T0)
    later = still_waiting([span(4, 8), span(30, 31)], first, as_of=T0 + DAY)
    assert later.spans == ((span(4, 8), T0), (span(30, 31), T0 + DAY))
    assert waiting_from_json(later.as_json()) == later
    last = still_waiting([span(30, 31)], later, as_of=T0 + 2 * DAY)
    assert (last.length, last.since) == (MINUTE, T0 + DAY)
    assert still_waiting([], last, as_of=T0 + 3 * DAY) == Waiting() == waiting_from_json(None)


def test_of_many_spans_the_nearest_are_kept_as_one() -> None:
    many = still_waiting([span(n, n + 1) for n in range(0, 1000, 10)], Waiting(), as_of=T0)
    assert (many.length, len(many.spans)) == (100 * MINUTE, 50)
