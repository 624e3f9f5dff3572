"""The reader and boto3 against our stand-in: reshard, trimming, throttling, faults, expiry."""

from datetime import datetime, timedelta

import botocore.session
import pytest
from botocore.loaders import Loader, create_loader

from shardaudit.adapters.aws import kinesis_pages
from shardaudit.adapters.aws.kinesis import StreamRefusedError
from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress, stream_client
from shardaudit.backfill.rules.aggregated_records import UserRecord
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import ReadOutcome, ReadWindow
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.simulate.stand_in.server import StandIn
from tests.unit.backfill.shards import Time
from tests.unit.simulate.kinesis import FIRST, START, Kinesis, Machine, name, put_by_second

LATER = START + timedelta(days=3)
NO_HORIZON = START - timedelta(days=1)


def read(server: StandIn, **fields: object) -> tuple[list[UserRecord], ReadOutcome]:
    """What a window of the stream brings; pauses move no clock but the pace's own."""
    values: dict[str, object] = {
        "window_id": "w",
        "shard_id": FIRST,
        "start": START,
        "end": LATER,
        "horizon": NO_HORIZON,
    }
    time = Time()
    pages = ShardPages(StreamAddress("s", "us-east-1", server.url))
    pace = Pace(1.0, clock=time.now, sleep=time.sleep)
    wanted = ReadWindow(**values | fields)  # type: ignore[arg-type] # the test's choice
    reader = WindowReader(pages, wanted, pace)
    return [record for batch in reader.batches() for record in batch], reader.outcome


def contents(found: list[UserRecord]) -> list[int]:
    return [int(record.content.rstrip(b".")) for record in found]


def test_both_ways_to_cut_bring_the_same_records(
    server: StandIn, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    numbers = put_by_second(kinesis, machine, 20)
    by_time = {"start": START + timedelta(seconds=5), "end": START + timedelta(seconds=9)}
    by_number = {"start_sequence": numbers[5], "end_sequence": numbers[8]}
    assert contents(read(server, **by_time)[0]) == [5, 6, 7, 8]
    assert contents(read(server, **by_number)[0]) == [5, 6, 7, 8]


def test_trimmed_part_is_recorded(server: StandIn, kinesis: Kinesis, machine: Machine) -> None:
    kinesis.create()
    numbers = put_by_second(kinesis, machine, 20)
    horizon: datetime = machine.go_on(hours=24) - timedelta(seconds=30)
    machine.at = START + timedelta(hours=24, seconds=10)
    by_number = {"start_sequence": numbers[5], "end_sequence": numbers[12]}
    found, outcome = read(server, horizon=horizon, **by_number)
    assert (contents(found), outcome.is_complete) == ([10, 11, 12], True)
    assert outcome.expired_from == START
    assert outcome.expired_to == START + timedelta(seconds=10)


def test_everything_comes_through_when_a_third_of_the_calls_fails(
    server: StandIn, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    put_by_second(kinesis, machine, 3)
    faults = [
        {"operation": operation, "error": error, "status": status}
        for operation, error, status in (
            ("GetRecords", "ProvisionedThroughputExceededException", 400),
            ("GetRecords", "InternalFailure", 500),
            ("GetShardIterator", "ProvisionedThroughputExceededException", 400),
            ("GetRecords", "ExpiredIteratorException", 400),
        )
    ]
    faults.append({"operation": "GetRecords", "error": "x", "lose_answer": True})
    server.account.control.change({"faults": faults, "empty_pages": 2})
    found, outcome = read(server)
    assert (contents(found), outcome.is_complete, outcome.error) == ([0, 1, 2], True, None)


def test_closed_parent_is_read_to_its_end_when_the_stream_was_split(
    server: StandIn, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    put_by_second(kinesis, machine, 4)
    kinesis.split(0)
    machine.go_on(seconds=1)
    kinesis.put(30)
    parent, outcome = read(server)
    assert (contents(parent), outcome.is_complete) == ([0, 1, 2, 3], True)
    children = [contents(read(server, shard_id=name(n))[0]) for n in (1, 2)]
    assert sorted(children[0] + children[1]) == list(range(4, 34))


def test_pages_of_10_mib_are_read_to_the_end(server: StandIn, kinesis: Kinesis) -> None:
    kinesis.create()
    for _ in range(4):
        kinesis.put(6, size=1_000_000, key="k")
    found, outcome = read(server)
    assert (contents(found), outcome.size_bytes > 24_000_000) == (list(range(24)), True)
    assert outcome.calls == 4


def test_shard_that_is_not_there_is_gone(server: StandIn, kinesis: Kinesis) -> None:
    kinesis.create()
    found, outcome = read(server, shard_id=name(7), horizon=LATER)
    assert (found, outcome.expired_from, outcome.expired_to) == ([], START, LATER)


def test_window_is_incomplete_when_it_is_forbidden(server: StandIn, kinesis: Kinesis) -> None:
    kinesis.create()
    fault = {"operation": "GetRecords", "error": "AccessDeniedException", "status": 400}
    server.account.control.change({"faults": [fault]})
    outcome = read(server)[1]
    assert not outcome.is_complete
    assert "AccessDenied" in str(outcome.error)


def test_stream_that_is_not_there_is_told_before_anything_is_read(server: StandIn) -> None:
    with pytest.raises(StreamRefusedError, match="check stream_name"):
        ShardPages(StreamAddress("no-such", "us-east-1", server.url)).check_stream()


def test_what_botocore_knows_of_services_is_read_once_for_all_clients(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Loader] = []

    def counted(*args: str | None) -> Loader:
        made.append(create_loader(*args))
        return made[-1]

    monkeypatch.setattr(botocore.session, "create_loader", counted)
    kinesis_pages._descriptions.cache_clear()  # noqa: SLF001 - as in a process that begins
    address = StreamAddress(stream_name="s", region="us-east-1", endpoint_url=server.url)
    clients = [stream_client(address) for _ in range(3)]
    assert [client.meta.endpoint_url for client in clients] == [server.url] * 3
    assert len(made) == 1


def test_a_client_without_a_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with pytest.raises(StreamRefusedError, match=r"set \[aws\] region"):
        stream_client(StreamAddress("events"))
