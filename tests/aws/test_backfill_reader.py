"""The backfill's reader on our stand-in and on kinesis-local, an independent one."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.backfill.rules.aggregated_records import UserRecord
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import ReadWindow
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.aws.kinesis_local import kinesis_local, missing_tool
from tests.aws.streams import Stream
from tests.kpl import aggregate
from tests.unit.simulate.kinesis import name

pytestmark = [
    pytest.mark.aws,
    pytest.mark.skipif(missing_tool() is not None, reason=f"needs {missing_tool()} on the PATH"),
]


@pytest.fixture(scope="module", params=["ours", "kinesis-local"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    server = kinesis_stand_in if request.param == "ours" else kinesis_local
    with server() as address:
        yield address


def stream(url: str, called: str) -> Stream:
    return Stream(endpoint_client(url), called)


def read(url: str, of: Stream, shard: int, **fields: object) -> list[UserRecord]:
    values: dict[str, object] = {
        "window_id": "w",
        "shard_id": name(shard),
        "start": datetime.now(UTC) - timedelta(hours=1),
        "end": datetime.now(UTC) + timedelta(hours=1),
        "horizon": datetime(2020, 1, 1, tzinfo=UTC),
    }
    wanted = ReadWindow(**values | fields)  # type: ignore[arg-type] # the test's choice
    pages = ShardPages(StreamAddress(of.name, "us-east-1", url))
    pages.check_stream()
    reader = WindowReader(pages, wanted, Pace(1.0))
    found = [record for batch in reader.batches() for record in batch]
    assert (reader.outcome.is_complete, reader.outcome.error) == (True, None)
    assert reader.outcome.expired_from is None
    return found


def test_times_cut_what_arrived_between_them(url: str) -> None:
    events = stream(url, "cut-by-time")
    events.make(1)
    events.put(30)
    since = events.moment()
    time.sleep(0.05)
    middle = events.put(20)
    until = events.moment()
    time.sleep(0.05)
    events.put(30)
    found = read(url, events, 0, start=since, end=until)
    assert [record.sequence_number for record in found][:20] == middle
    assert len(found) in (20, 21)  # the record that told the moment may be on its edge


def test_sequence_numbers_cut_exactly(url: str) -> None:
    events = stream(url, "cut-by-number")
    events.make(1)
    numbers = events.put(300)
    found = read(url, events, 0, start_sequence=numbers[17], end_sequence=numbers[211])
    assert [record.sequence_number for record in found] == numbers[17:212]


def test_nothing_is_lost_or_doubled_when_the_stream_was_resharded(url: str) -> None:
    events = stream(url, "resharded")
    events.reshard()
    found = [record for shard in range(5) for record in read(url, events, shard)]
    assert len(found) == 120 + 3
    assert len({(r.sequence_number, r.sub_sequence) for r in found}) == 120 + 3


def test_aggregates_are_split(url: str) -> None:
    events = stream(url, "aggregated")
    events.make(1)
    users = [(f"key-{i}", f"record {i}".encode()) for i in range(100)]
    content = aggregate(users, hash_keys=True)
    events.client.put_record(StreamName=events.name, Data=content, PartitionKey="a")
    events.put(5)
    found = read(url, events, 0)
    assert [(r.partition_key, r.content) for r in found[:100]] == users
    assert [r.sub_sequence for r in found[:100]] == list(range(100))
    assert len(found) == 105
