"""What waits before the window, from night to night."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.model.waiting import Waiting, WaitingSpan, still_waiting, waiting_from_json
from shardaudit.model.watermark import Held, Hold

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def span(start: int, end: int, why: Held = Held.UNAUDITED) -> Hold:
    return Hold(T0 + start * MINUTE, T0 + end * MINUTE, why)


def waits(hold: Hold, since: datetime) -> WaitingSpan:
    return WaitingSpan(hold.window, since, hold.end)


def test_what_waits_keeps_the_night_that_first_left_it() -> None:
    first = still_waiting([span(0, 5), span(3, 8), span(20, 21)], Waiting(), as_of=T0)
    assert (first.length, first.since) == (9 * MINUTE, T0)
    later = still_waiting([span(4, 8), span(30, 31)], first, as_of=T0 + DAY)
    assert later.spans == (waits(span(4, 8), T0), waits(span(30, 31), T0 + DAY))
    assert waiting_from_json(later.as_json()) == later
    lost = replace(later, given_up=((span(0, 4).window, T0),))
    assert waiting_from_json(lost.as_json()) == lost
    assert waiting_from_json('{"seconds": 0, "spans": []}') == Waiting()  # of an older audit
    last = still_waiting([span(30, 31)], later, as_of=T0 + 2 * DAY)
    assert (last.length, last.since) == (MINUTE, T0 + DAY)
    assert still_waiting([], last, as_of=T0 + 3 * DAY) == Waiting() == waiting_from_json(None)


def test_what_nights_missed_waits_since_it_was_sent() -> None:
    missed = Hold(T0, T0 + 4 * DAY, Held.UNAUDITED)
    week, as_of = 7 * DAY, T0 + 5 * DAY
    found = still_waiting([missed, span(0, 5)], Waiting(), as_of=as_of, is_night=True)
    assert (found.since, found.is_overdue(as_of=as_of, kept=week)) == (T0, True)
    part = still_waiting([missed], Waiting(), as_of=as_of)
    assert (part.since, part.is_overdue(as_of=as_of, kept=week)) == (as_of, False)


def test_what_comes_beside_it_waits_since_it_came() -> None:
    first = still_waiting([span(0, 10)], Waiting(), as_of=T0)
    both = still_waiting([span(5, 15)], first, as_of=T0 + DAY)
    assert both.spans == (waits(span(5, 10), T0), waits(span(10, 15), T0 + DAY))
    nightly = Waiting()
    for night in range(8):  # each leaves 120 minutes, all of them done by the next one
        left = [span(10 * n + night, 10 * n + night + 1) for n in range(120)]
        nightly = still_waiting(left, nightly, as_of=T0 + night * DAY)
    assert (nightly.since, nightly.length) == (T0 + 7 * DAY, 120 * MINUTE)


def test_it_is_overdue_in_half_of_the_time_in_which_it_can_be_recovered() -> None:
    ends = T0 + 5 * MINUTE
    late = still_waiting([span(0, 5)], Waiting(), as_of=ends + HOUR)
    hours = [n for n in range(30) if late.is_overdue(as_of=ends + n * HOUR, kept=24 * HOUR)]
    assert hours == list(range(13, 24))
    # A window of seven days, a stream that keeps a day: nothing that waits can be recovered.
    old = still_waiting([span(0, 5)], Waiting(), as_of=ends + 7 * DAY)
    assert not any(old.is_overdue(as_of=ends + n * DAY, kept=DAY) for n in range(7, 20))
    young = (waits(span(11500, 11505), T0 + 8 * DAY), *old.spans)  # and one that is gone
    assert not Waiting(spans=young).is_overdue(as_of=T0 + 8 * DAY, kept=DAY)


def test_what_was_held_back_for_days_is_overdue_as_long_as_the_stream_has_it() -> None:
    came = T0 + 7 * DAY
    both = [span(0, 20), span(5, 10, Held.CHANGED)]
    late = still_waiting(both, Waiting(), as_of=came)
    assert late.spans == (
        waits(span(0, 5), came),
        WaitingSpan(span(5, 10).window, came, came),
        waits(span(10, 20), came),
    )
    for _ in range(2):  # also when the next night leaves it again
        hours = [n for n in range(40) if late.is_overdue(as_of=came + n * HOUR, kept=DAY)]
        assert hours == list(range(12, 24))
        late = still_waiting(both, late, as_of=came + 2 * HOUR)


def test_of_many_spans_the_nearest_are_kept_as_one() -> None:
    many = still_waiting([span(n, n + 1) for n in range(0, 9000, 10)], Waiting(), as_of=T0)
    assert (many.length, len(many.spans), many.since) == (900 * MINUTE, 500, T0)
