"""What waits before the window, from night to night."""

from datetime import UTC, datetime, timedelta

from shardaudit.model.waiting import Waiting, still_waiting, waiting_from_json
from shardaudit.model.window import Window

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


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


def test_what_comes_beside_it_waits_since_it_came() -> None:
    first = still_waiting([span(0, 10)], Waiting(), as_of=T0)
    both = still_waiting([span(5, 15)], first, as_of=T0 + DAY)
    assert both.spans == ((span(5, 10), T0), (span(10, 15), T0 + DAY))
    waits = Waiting()
    for night in range(8):  # each leaves 120 minutes, all of them done by the next one
        left = [span(10 * n + night, 10 * n + night + 1) for n in range(120)]
        waits = still_waiting(left, waits, as_of=T0 + night * DAY)
    assert (waits.since, waits.length) == (T0 + 7 * DAY, 120 * MINUTE)


def test_it_is_overdue_in_half_of_the_time_in_which_it_can_be_recovered() -> None:
    ends = T0 + 5 * MINUTE
    late = still_waiting([span(0, 5)], Waiting(), as_of=ends + HOUR)
    hours = [n for n in range(30) if late.is_overdue(as_of=ends + n * HOUR, kept=24 * HOUR)]
    assert hours == list(range(13, 24))
    # A window of seven days, a stream that keeps a day: nothing that waits can be recovered.
    old = still_waiting([span(0, 5)], Waiting(), as_of=ends + 7 * DAY)
    assert not any(old.is_overdue(as_of=ends + n * DAY, kept=DAY) for n in range(7, 20))
    young = ((span(11500, 11505), T0 + 8 * DAY), *old.spans)  # and one that is gone
    assert not Waiting(spans=young).is_overdue(as_of=T0 + 8 * DAY, kept=DAY)


def test_of_many_spans_the_nearest_are_kept_as_one() -> None:
    many = still_waiting([span(n, n + 1) for n in range(0, 9000, 10)], Waiting(), as_of=T0)
    assert (many.length, len(many.spans), many.since) == (900 * MINUTE, 500, T0)
