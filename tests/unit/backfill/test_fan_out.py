"""The reader through enhanced fan-out: what it brings is what GetRecords brings."""

import re
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest

from shardaudit.adapters.aws.kinesis import StreamRefusedError
from shardaudit.adapters.aws.kinesis_fan_out import (
    FanOutPages,
    consumer_name,
    registered_consumer,
    remove_consumers,
)
from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.backfill.rules.aggregated_records import UserRecord
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import ReadOutcome, ReadWindow
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.simulate.stand_in.server import StandIn
from tests.unit.simulate.kinesis import FIRST, START, Kinesis, Machine, name, put_by_second

LATER = START + timedelta(days=3)
MINE = consumer_name("/warehouse", "events-0123456789ab")
Found = tuple[list[UserRecord], ReadOutcome]


@pytest.fixture
def address(server: StandIn) -> StreamAddress:
    return StreamAddress("s", "us-east-1", server.url)


def window(**fields: object) -> ReadWindow:
    values: dict[str, object] = {
        "window_id": "w",
        "shard_id": FIRST,
        "start": START,
        "end": LATER,
        "horizon": START - timedelta(days=1),
    }
    return ReadWindow(**values | fields)  # type: ignore[arg-type] # the test's choice


def read(
    pages: ShardPages | FanOutPages, machine: Machine, wanted: list[ReadWindow]
) -> Iterator[Found]:
    """What the windows bring, one after the other; pauses are time that passes."""

    def sleep(seconds: float) -> None:
        machine.go_on(seconds=seconds)

    pace = Pace(1.0, clock=lambda: 0.0, sleep=sleep)
    page = None
    with closing(pages):
        for one in wanted:
            reader = WindowReader(pages, one, pace, at_hand=page)
            records = [record for batch in reader.batches() for record in batch]
            yield records, reader.outcome
            page = reader.last_page


def both_ways(address: StreamAddress, machine: Machine, *wanted: ReadWindow) -> list[Found]:
    """What fan-out brings, after it was found to be what GetRecords brings."""
    with registered_consumer(address, MINE, left_over=[MINE]) as arn:
        pushed = list(read(FanOutPages(address, arn), machine, list(wanted)))
    asked = list(read(ShardPages(address), machine, list(wanted)))
    assert [records for records, _ in pushed] == [records for records, _ in asked]
    for (_, one), (_, other) in zip(pushed, asked, strict=True):
        assert (one.is_complete, one.error) == (True, None)
        assert (one.expired_from, one.expired_to) == (other.expired_from, other.expired_to)
    return pushed


def test_windows_by_time_and_by_number_bring_their_records(
    address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    numbers = put_by_second(kinesis, machine, 30)
    found = both_ways(
        address,
        machine,
        window(start=START + timedelta(seconds=5), end=START + timedelta(seconds=9)),
        window(start_sequence=numbers[11], end_sequence=numbers[13]),
        window(start_sequence=numbers[2], end_sequence=numbers[2]),
        window(start=START + timedelta(seconds=30)),
    )
    assert [len(records) for records, _ in found] == [4, 3, 1, 0]


def test_all_comes_once_when_subscriptions_end_again_and_again(
    server: StandIn, address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(2300)
    server.account.control.change({"subscription_s": 0})
    ((records, outcome),) = both_ways(address, machine, window())
    assert len(records) == 2300
    assert outcome.calls > 5


def test_parent_and_children_are_read_to_their_ends(
    address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    put_by_second(kinesis, machine, 4)
    kinesis.split(0)
    machine.go_on(seconds=1)
    kinesis.put(30)
    found = both_ways(address, machine, *[window(shard_id=name(shard)) for shard in range(3)])
    counts = [len(records) for records, _ in found]
    assert (counts[0], sum(counts)) == (4, 34)


def test_trimmed_part_is_recorded(
    address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    numbers = put_by_second(kinesis, machine, 20)
    machine.at = START + timedelta(hours=24, seconds=9, milliseconds=400)  # calls take their time
    by_number = {"start_sequence": numbers[5], "end_sequence": numbers[12]}
    ((records, outcome),) = both_ways(address, machine, window(horizon=LATER, **by_number))
    assert len(records) == 3
    assert (outcome.expired_from, outcome.expired_to) == (START, START + timedelta(seconds=10))


def test_all_comes_through_when_calls_fail(
    server: StandIn, address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(1200)
    faults: list[dict[str, object]] = [
        {"operation": "SubscribeToShard", "error": error, "status": status}
        for error, status in (("LimitExceededException", 400), ("InternalFailure", 500))
    ]
    faults.append({"operation": "SubscribeToShard", "error": "x", "lose_answer": True})
    server.account.control.change({"faults": faults, "subscription_s": 0})
    ((records, _),) = both_ways(address, machine, window())
    assert len(records) == 1200


class CutOff(socketserver.ThreadingTCPServer):
    """A network before a server that fails once, in the middle of an answer."""

    daemon_threads = True

    def __init__(self, url: str, *, after_bytes: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passage)
        self.behind, self.left = urlsplit(url), [after_bytes]


class _Passage(socketserver.BaseRequestHandler):
    server: CutOff

    def handle(self) -> None:
        behind = self.server.behind
        left = self.server.left.pop() if self.server.left else sys.maxsize
        with socket.create_connection((behind.hostname, behind.port or 0)) as there:
            threading.Thread(target=self._ask, args=(there,), daemon=True).start()
            while left > 0 and (chunk := there.recv(min(left, 2**12))):
                self.request.sendall(chunk)
                left -= len(chunk)

    def _ask(self, there: socket.socket) -> None:
        with suppress(OSError):
            while chunk := self.request.recv(2**12):
                there.sendall(chunk)


@pytest.mark.parametrize("after_bytes", [150, 150_000])  # in the first answer, in an event
def test_all_comes_once_when_the_network_fails_on_the_way(
    server: StandIn,
    address: StreamAddress,
    kinesis: Kinesis,
    machine: Machine,
    after_bytes: int,
) -> None:
    kinesis.create()
    kinesis.put(1200)
    with (
        registered_consumer(address, MINE, left_over=[]) as arn,
        CutOff(server.url, after_bytes=after_bytes) as network,
    ):
        threading.Thread(target=network.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{network.server_address[1]}"
        pages = FanOutPages(replace(address, endpoint_url=url), arn)
        ((records, outcome),) = read(pages, machine, [window()])
        network.shutdown()
    assert [int(one.content.rstrip(b".")) for one in records] == list(range(1200))
    assert (outcome.is_complete, network.left) == (True, [])


def test_window_is_incomplete_and_not_expired_when_the_consumer_was_removed(
    server: StandIn, address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(1200)
    server.account.control.change({"subscription_s": 0})
    with registered_consumer(address, MINE, left_over=[]) as arn:
        pages = FanOutPages(address, arn)
        reader = WindowReader(pages, window(horizon=LATER), Pace(1.0, sleep=lambda _: None))
        batches = reader.batches()
        next(batches)
        remove_consumers(address, [MINE])
        machine.go_on(seconds=5)
        assert list(batches) == []
        pages.close()
    assert not reader.outcome.is_complete
    assert MINE in str(reader.outcome.error)
    assert reader.outcome.expired_from is None


def consumers(kinesis: Kinesis) -> list[str]:
    summary = kinesis.client.describe_stream_summary(StreamName="s")
    arn = summary["StreamDescriptionSummary"]["StreamARN"]
    found = kinesis.client.list_stream_consumers(StreamARN=arn)["Consumers"]
    return [one["ConsumerName"] for one in found]


def test_consumer_is_removed_also_when_the_reading_fails(
    address: StreamAddress, kinesis: Kinesis
) -> None:
    kinesis.create()
    with pytest.raises(ZeroDivisionError), registered_consumer(address, MINE, left_over=[]):
        assert consumers(kinesis) == [MINE]
        _ = 1 / 0
    assert consumers(kinesis) == []


def test_only_our_own_left_over_is_removed(address: StreamAddress, kinesis: Kinesis) -> None:
    kinesis.create()
    summary = kinesis.client.describe_stream_summary(StreamName="s")
    arn = summary["StreamDescriptionSummary"]["StreamARN"]
    another_plan = consumer_name("/warehouse", "events-ba9876543210")
    strangers = ["analytics", consumer_name("/elsewhere", "events-0123456789ab")]
    for one in (MINE, another_plan, *strangers):
        kinesis.client.register_stream_consumer(StreamARN=arn, ConsumerName=one)
    with registered_consumer(address, MINE, left_over=[MINE, another_plan]):
        assert consumers(kinesis) == sorted([MINE, *strangers])
    assert consumers(kinesis) == sorted(strangers)


def test_stream_that_is_not_there_is_refused(address: StreamAddress) -> None:
    with (
        pytest.raises(StreamRefusedError, match="check stream_name"),
        registered_consumer(address, MINE, left_over=[]),
    ):
        pass


def test_name_fits_kinesis_whatever_the_plan_is_called() -> None:
    long = consumer_name("s3a://lake/shardaudit", f"{'x' * 128}-0123456789ab")
    assert re.fullmatch(r"shardaudit-0123456789ab-[0-9a-f]{12}", long)


def test_time_is_kept_to_the_microsecond_in_a_place(
    address: StreamAddress, kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(1)
    at: datetime = machine.go_on(milliseconds=1)
    kinesis.put(1)
    ((records, _),) = both_ways(address, machine, window(start=at))
    assert len(records) == 1
