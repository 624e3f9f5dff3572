"""Calls and bytes of a real reader on a real clock: never above the share."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import ReadWindow
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.model.get_records import Start, StreamPage
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.aws.streams import Stream
from tests.unit.simulate.kinesis import FIRST

pytestmark = pytest.mark.aws

RECORDS, SIZE = 40, 30_000
WINDOWS = 4


class Measured:
    """The client, with the time and the bytes of each call."""

    def __init__(self, pages: ShardPages) -> None:
        self._pages = pages
        self.calls: list[tuple[float, int]] = []

    def iterator(self, shard_id: str, start: Start) -> str:
        return self._pages.iterator(shard_id, start)

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        at = time.monotonic()
        page = self._pages.page(iterator, limit=limit)
        self.calls.append((at, page.size_bytes))
        return page

    def beside(self) -> "Measured":
        return self


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_several_windows_of_a_shard_stay_below_its_share(share: float) -> None:
    with kinesis_stand_in() as url:
        events = Stream(endpoint_client(url), "s")
        events.make(1)
        numbers = events.put(RECORDS, size=SIZE)
        StandInControl(url).change({"throttle": True})
        measured = Measured(ShardPages(StreamAddress("s", "us-east-1", url)))
        pace = Pace(share)
        step = RECORDS // WINDOWS
        found = 0
        for first in range(0, RECORDS, step):
            wanted = ReadWindow(
                window_id=str(first),
                shard_id=FIRST,
                start=datetime.now(UTC) - timedelta(hours=1),
                end=datetime.now(UTC) + timedelta(hours=1),
                horizon=datetime(2020, 1, 1, tzinfo=UTC),
                start_sequence=numbers[first],
                end_sequence=numbers[first + step - 1],
            )
            reader = WindowReader(measured, wanted, pace)
            found += sum(len(batch) for batch in reader.batches())
            # At the full share a call may meet the second of the one before: it is made again.
            assert reader.outcome.calls == 1 or share == 1.0
        pace.wait()
        end = time.monotonic()
    assert found == RECORDS
    ends = [at for at, _ in measured.calls[1:]] + [end]
    for first in range(len(ends)):
        for last in range(first, len(ends)):
            seconds = ends[last] - measured.calls[first][0]
            size = sum(size for _, size in measured.calls[first : last + 1])
            assert (last - first + 1) / seconds <= 5 * share
            assert size / seconds <= 2 * 2**20 * share
