"""The eras of a stream's cells: by day, by window, as they are stored."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from shardaudit.model.config.eras import (
    CellShape,
    Eras,
    always,
    eras_of_values,
    first_free_day,
    newest_eras,
)
from shardaudit.model.window import Window

OLD, NEW, LAST = CellShape(60, 1.0), CellShape(300, 0.5), CellShape(3600, 0.5)
FIRST = datetime(2026, 11, 23, tzinfo=UTC)
ERAS = Eras(OLD, ((date(2026, 11, 23), NEW), (date(2026, 11, 25), LAST)))
HOUR, DAY, TICK = timedelta(hours=1), timedelta(days=1), timedelta.resolution


def test_a_message_is_of_the_era_of_its_day() -> None:
    times = [FIRST - 9000 * DAY, FIRST - TICK, FIRST, FIRST + 2 * DAY - TICK, FIRST + 2 * DAY]
    assert [ERAS.at(at) for at in times] == [OLD, OLD, NEW, NEW, LAST]
    assert ERAS.last_start(FIRST) == FIRST - timedelta(minutes=1)
    assert ERAS.end_of(FIRST) == FIRST + timedelta(minutes=5)


def test_a_window_is_cut_at_the_days_on_which_another_shape_begins() -> None:
    window = Window(FIRST - HOUR, FIRST + 2 * DAY + HOUR / 2)
    parts = [Window(window.start, FIRST), Window(FIRST, FIRST + 2 * DAY)]
    parts.append(Window(FIRST + 2 * DAY, window.end))
    assert ERAS.parts(window) == list(zip(parts, (OLD, NEW, LAST), strict=True))
    assert ERAS.aligned(window) == Window(window.start, window.end + HOUR / 2)
    assert (ERAS.within(parts[0]), ERAS.within(parts[1])) == (Eras(OLD), Eras(NEW))
    assert ERAS.within(window) == ERAS


def test_across_an_edge_are_the_cells_of_an_hour_or_the_next_where_both_sample_alike() -> None:
    minute, five, edge = timedelta(minutes=1), timedelta(minutes=5), FIRST
    for rate, n in ((NEW.sample_rate, 12), (OLD.sample_rate, 1)):
        eras = Eras(OLD, ((FIRST.date(), replace(NEW, sample_rate=rate)),))
        before, after = Window(edge - DAY, edge), Window(edge, edge + DAY)
        nearest = 5 * n if n > 1 else 1
        [(near, across)] = eras.beside(before)
        assert (near, across) == (
            Window(edge - nearest * minute, edge),
            [edge + five * at for at in range(n)],
        )
        [(near, across)] = eras.beside(after)
        assert (near, across) == (
            Window(edge, edge + n * five),
            [edge - minute * (at + 1) for at in range(nearest)],
        )
        assert eras.beside(Window(edge + 2 * HOUR, edge + DAY)) == []


def test_buckets_of_any_era_are_covered_by_their_own_width() -> None:
    starts = [FIRST - timedelta(minutes=1), FIRST, FIRST + timedelta(minutes=30)]
    wide = Window(FIRST - timedelta(minutes=1), FIRST + timedelta(minutes=5))
    late = Window(starts[2], starts[2] + timedelta(minutes=5))
    assert ERAS.covering(starts) == [wide, late]


def test_what_is_stored_of_one_era_is_what_always_was() -> None:
    one = {"bucket_s": 60, "sample_rate": 1.0}
    assert Eras(OLD).as_values() == one
    assert always(timedelta(minutes=1)) == eras_of_values(one) == Eras(OLD)
    said = ERAS.said_after(Eras(OLD))
    assert eras_of_values(said.as_values()) == said


def test_the_newest_is_what_was_said_last_whatever_the_clock_says() -> None:
    said = [Eras(OLD)]
    for later in (ERAS.until(date(2026, 11, 24)), ERAS.until(date(2026, 11, 23))):
        said.append(later.said_after(said[-1]))
    batches = [("sink", 7, said[0]), ("traces", 2, said[1]), ("traces", 3, said[2])]
    rows = [
        {"side": side, "number": number, "inputs": json.dumps({"shape": of.as_values()})}
        for side, number, of in batches
    ]
    assert newest_eras(rows) == said[2] == Eras(OLD, (), 2)
    assert newest_eras([]) is None


def test_another_shape_may_begin_on_a_day_of_which_nothing_can_have_been_read() -> None:
    now = FIRST + 10 * HOUR
    cases = [([], DAY, 25), ([], HOUR, 24), ([date(2026, 11, 28)], DAY, 29)]
    for days, ahead, first in cases:
        assert first_free_day(now, days, ahead=ahead) == date(2026, 11, first)
    note = "bucket 3600s, sample_rate 0.5 from 2026-11-25 on (UTC, by sent_at)"
    assert ERAS.note(now) == f"{note}; bucket 300s, sample_rate 0.5 until then"
    assert ERAS.note(now + 2 * DAY) is None
