"""Which audit speaks for which time of a map."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.window import Window
from shardaudit.page.page_reading import (
    MAX_BINS,
    bins_of,
    unseen_bins,
)
from shardaudit.store.cell_grid import AuditSpan, Segment, newest_segments

START = datetime(2026, 11, 1, tzinfo=UTC)
H = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def span(audit_id: str, start: int, end: int, *, as_of: int) -> AuditSpan:
    looked = START + as_of * H
    return AuditSpan(
        audit_id, Window(START + start * H, START + end * H), (looked, looked, audit_id)
    )


def test_the_newest_audit_wins_where_two_overlap() -> None:
    found = newest_segments(
        [span("night", 0, 24, as_of=25), span("after-backfill", 6, 8, as_of=30)],
        Window(START, START + 24 * H),
    )
    assert found == (
        Segment("night", START, START + 6 * H),
        Segment("after-backfill", START + 6 * H, START + 8 * H),
        Segment("night", START + 8 * H, START + 24 * H),
    )


def test_a_time_that_no_audit_saw_is_in_no_segment_and_its_bins_are_unseen() -> None:
    window = Window(START, START + 24 * H)
    bins = bins_of(window, bucket=MINUTE)
    segments = newest_segments([span("a", 0, 10, as_of=11), span("b", 12, 24, as_of=25)], window)
    unseen = unseen_bins(bins, segments, window)
    assert {bins.at(i) for i in unseen} == {START + 10 * H + n * 10 * MINUTE for n in range(12)}


audits = st.lists(
    st.tuples(st.integers(-5, 30), st.integers(1, 20), st.integers(0, 50)).map(
        lambda t: span(f"{t}", t[0], t[0] + t[1], as_of=t[2])
    ),
    max_size=8,
)


@given(audits)
def test_each_hour_belongs_to_the_newest_audit_that_saw_it(found: list[AuditSpan]) -> None:
    window = Window(START, START + 24 * H)
    segments = newest_segments(found, window)
    for hour in range(24):
        at = START + hour * H
        speaking = [s.audit_id for s in segments if s.start <= at < s.end]
        saw = [a for a in found if a.window.covers(at)]
        newest = [max(saw, key=lambda a: a.looked).audit_id] if saw else []
        assert speaking == newest


@given(
    st.integers(1, 60 * 24 * 40),
    st.integers(0, 10_000),
    st.sampled_from([timedelta(seconds=15), MINUTE, 5 * MINUTE, 4 * H]),
)
def test_bins_are_whole_cells_cover_the_window_and_fit_a_screen(
    minutes: int, offset: int, bucket: timedelta
) -> None:
    window = Window(START + offset * MINUTE, START + (offset + minutes) * MINUTE)
    bins = bins_of(window, bucket=bucket)
    assert bins.width % bucket == timedelta(0)
    assert bins.count <= MAX_BINS
    assert bins.start <= window.start < bins.start + bins.width
    assert bins.end - bins.width < window.end <= bins.end


@pytest.mark.parametrize(
    ("hours", "width"), [(24, 10 * MINUTE), (24 * 7, H), (1, MINUTE), (24 * 30, 6 * H)]
)
def test_bins_are_times_that_a_person_reads(hours: int, width: timedelta) -> None:
    assert bins_of(Window(START, START + hours * H), bucket=MINUTE).width == width
