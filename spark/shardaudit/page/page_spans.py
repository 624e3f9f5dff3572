"""The bins of a map's columns, and those of which nothing is known."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from shardaudit.model.window import Window
from shardaudit.store.cell_grid import Bins, Segment

MAX_BINS = 200
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_NICE = (
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(_DAY * days for days in (1, 2, 7, 14, 28)),
)
_EPOCH = datetime.fromtimestamp(0, UTC)


def bins_of(window: Window, *, bucket: timedelta) -> Bins:
    """The finest readable bins that a screen holds, of whole buckets, over the whole window."""
    # One bin less than fits: the window need not begin where a bin does.
    least = (window.end - window.start) / (MAX_BINS - 1)
    widths = (width for width in (bucket, *_NICE) if width % bucket == timedelta(0))
    width = next((w for w in widths if w >= bucket and w >= least), _NICE[-1])
    start = window.start - (window.start - _EPOCH) % width
    return Bins(start, width, -((start - window.end) // width))


def unseen_bins(bins: Bins, segments: Iterable[Segment], window: Window) -> frozenset[int]:
    """The bins of which some part of the window belongs to no audit: nothing is known there."""
    seen = sorted((segment.start, segment.end) for segment in segments)
    unseen = set()
    for index in range(bins.count):
        at = max(bins.at(index), window.start)
        end = min(bins.at(index) + bins.width, window.end)
        for start, stop in seen:
            if start <= at < stop:
                at = stop
        if at < end:
            unseen.add(index)
    return frozenset(unseen)
