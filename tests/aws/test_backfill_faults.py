"""Nothing is lost or doubled when everything goes wrong at once, on two independent servers."""

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
from tests.faulty_kinesis import EMPTY, EXPIRED, THROTTLED, Faults, faulty_kinesis
from tests.kpl import aggregate
from tests.unit.simulate.kinesis import name

pytestmark = [
    pytest.mark.aws,
    pytest.mark.skipif(missing_tool() is not None, reason=f"needs {missing_tool()} on the PATH"),
]

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module", params=["ours", "kinesis-local"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    server = kinesis_stand_in if request.param == "ours" else kinesis_local
    with server() as address:
        yield address


def unhurried() -> Pace:
    """A pace that waits in no time: how fast it is, is not asked here."""
    return Pace(1.0, clock=lambda: 0.0, sleep=lambda _: None)


def window(shard: int, **fields: object) -> ReadWindow:
    at = datetime.now(UTC)
    values: dict[str, object] = {
        "window_id": "w",
        "shard_id": name(shard),
        "start": at - HOUR,
        "end": at + HOUR,
        "horizon": datetime(2020, 1, 1, tzinfo=UTC),
    }
    return ReadWindow(**values | fields)  # type: ignore[arg-type] # the test's choice


def read(proxy: str, stream: str, wanted: ReadWindow) -> list[UserRecord]:
    pages = ShardPages(StreamAddress(stream, "us-east-1", proxy))
    reader = WindowReader(pages, wanted, unhurried())
    found = [record for batch in reader.batches() for record in batch]
    assert (reader.outcome.is_complete, reader.outcome.error) == (True, None)
    assert reader.outcome.expired_from is None
    return found


def fill(stream: Stream, aggregates: int) -> list[bytes]:
    """The contents of 120 records and of so many aggregates of 20, in no order."""
    contents = []
    for n in range(aggregates):
        users = [(f"user-{i}", f"aggregated {stream.name} {n} {i}".encode()) for i in range(20)]
        content = aggregate(users, hash_keys=False)
        stream.client.put_record(StreamName=stream.name, Data=content, PartitionKey=f"a{n}")
        contents += [inner for _, inner in users]
    before = stream._put  # noqa: SLF001 - which numbers come now
    stream.put(120)
    return contents + [str(n).encode().ljust(10, b".") for n in range(before, before + 120)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_record_comes_once_when_the_stream_is_resharded_while_calls_fail(
    url: str, seed: int
) -> None:
    events = Stream(endpoint_client(url), f"faults-{seed}")
    events.make(3)
    put = fill(events, aggregates=6)

    def reshard() -> None:
        events.split(0)
        events.settle()
        events.merge(1, 2)
        events.settle()
        put.extend(fill(events, aggregates=3))

    faults = Faults(seed=seed, at_call={3: reshard})
    found = []
    with faulty_kinesis(url, faults) as proxy:
        for shard in range(6):
            found += read(proxy, events.name, window(shard))
    assert sorted(one.content for one in found) == sorted(put)
    assert len({(one.sequence_number, one.sub_sequence) for one in found}) == len(found)
    assert not faults.at_call
    calls = faults.happened["GetRecords"]
    assert 0.2 < faults.happened[THROTTLED] / calls < 0.5
    assert min(faults.happened[EXPIRED], faults.happened[EMPTY]) > 3


def test_places_are_kept_to_when_arrival_times_are_told_out_of_order(url: str) -> None:
    events = Stream(endpoint_client(url), "out-of-order")
    events.make(1)
    numbers = events.put(400)
    wanted = window(0, start_sequence=numbers[50], end_sequence=numbers[349])
    with faulty_kinesis(url, Faults(jitter_s=600)) as proxy:
        found = read(proxy, events.name, wanted)
    assert [one.sequence_number for one in found] == numbers[50:350]
    arrivals = [one.arrived_at for one in found]
    assert arrivals != sorted(arrivals)
