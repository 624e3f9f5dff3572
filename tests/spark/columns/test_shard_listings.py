"""Which shards took no records any more when a window began."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.audit.window_ledger import closed_shards

BY = datetime(2026, 11, 20, tzinfo=UTC)
OPEN, CLOSED, UNKNOWN = True, False, None


@pytest.mark.parametrize(
    ("listed", "is_closed"),
    [
        ([(-2, OPEN)], False),
        ([(-2, UNKNOWN)], False),
        ([(-2, CLOSED)], True),
        ([(0, CLOSED)], True),
        ([(1, CLOSED)], False),  # it may have taken records in the window
        ([(-3, OPEN), (-2, CLOSED), (5, CLOSED)], True),
        ([(-3, OPEN), (1, CLOSED)], False),
        ([(-3, CLOSED), (-2, OPEN)], False),  # the stream was made anew
        ([(-3, CLOSED), (-2, OPEN), (-1, CLOSED)], True),
        ([(-3, CLOSED), (2, OPEN), (3, CLOSED)], False),
        ([(-3, CLOSED), (-2, UNKNOWN)], True),
    ],
)
def test_shard_is_closed_by_a_time_when_it_was_listed_so_and_not_as_open_since(
    listed: list[tuple[int, bool | None]], is_closed: bool
) -> None:
    said = [("a", is_open, BY + timedelta(hours=hours)) for hours, is_open in listed]
    others = [("b", OPEN, BY - timedelta(hours=4))]
    assert closed_shards([*said[::-1], *others], by=BY) == ({"a"} if is_closed else set())
