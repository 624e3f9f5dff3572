import base64
import hashlib
from datetime import timedelta

import pytest

from shardaudit.simulate.stand_in_process import StandInControl
from tests.unit.simulate.kinesis import FIRST, START, Kinesis, Machine, name, refused


def test_records_come_back_in_the_order_of_put_when_read_from_the_start(kinesis: Kinesis) -> None:
    kinesis.create()
    numbers = kinesis.put(700)
    page = kinesis.get(kinesis.iterator("TRIM_HORIZON"))
    assert [record["SequenceNumber"] for record in page["Records"]] == numbers
    assert [int(number) for number in numbers] == sorted(int(number) for number in numbers)
    assert {len(number) for number in numbers} == {56}
    assert page["Records"][0]["ApproximateArrivalTimestamp"] == START


def test_a_record_is_in_the_shard_of_its_keys_md5_when_no_hash_key_is_given(
    kinesis: Kinesis,
) -> None:
    kinesis.create(3)
    ranges = {
        shard["ShardId"]: (
            int(shard["HashKeyRange"]["StartingHashKey"]),
            int(shard["HashKeyRange"]["EndingHashKey"]),
        )
        for shard in kinesis.shards()
    }
    for i in range(30):
        key = f"key {i}"
        answer = kinesis.client.put_record(StreamName="s", Data=b"x", PartitionKey=key)
        low, high = ranges[answer["ShardId"]]
        assert low <= int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(), 16) <= high


def test_the_hash_key_wins_when_it_is_given(kinesis: Kinesis) -> None:
    kinesis.create(4)
    answer = kinesis.client.put_record(
        StreamName="s", Data=b"x", PartitionKey="a", ExplicitHashKey=str(2**128 - 1)
    )
    assert answer["ShardId"] == name(3)


def test_every_byte_comes_back_when_the_data_is_binary(kinesis: Kinesis) -> None:
    kinesis.create()
    content = b"\xf3\x89\x9a\xc2" + bytes(range(256)) * 3
    kinesis.client.put_record(StreamName="s", Data=content, PartitionKey='a"\n\u20ac')
    record = kinesis.get(kinesis.iterator("TRIM_HORIZON"))["Records"][0]
    assert record["Data"] == content
    assert record["PartitionKey"] == 'a"\n\u20ac'


def test_a_batch_is_refused_when_it_is_too_large(kinesis: Kinesis) -> None:
    kinesis.create()
    entry = {"Data": b"x", "PartitionKey": "p"}
    with refused("ValidationException"):
        kinesis.client.put_records(StreamName="s", Records=[entry] * 501)  # type: ignore[list-item] # a literal loses its TypedDict
    big = {"Data": b"x" * 2**20, "PartitionKey": "p"}
    with refused("InvalidArgumentException"):
        kinesis.client.put_records(StreamName="s", Records=[big] * 11)  # type: ignore[list-item] # as above
    with refused("ValidationException"):
        kinesis.client.put_record(StreamName="s", Data=b"x" * (2**20 + 1), PartitionKey="p")


@pytest.mark.slow
def test_a_page_holds_ten_thousand_records_when_no_limit_is_given(kinesis: Kinesis) -> None:
    kinesis.create()
    kinesis.put(10_500)
    pages = list(kinesis.pages(kinesis.iterator("TRIM_HORIZON")))
    assert [len(page) for page in pages] == [10_000, 500]


@pytest.mark.slow
def test_a_page_holds_ten_mebibytes_when_records_are_large(kinesis: Kinesis) -> None:
    kinesis.create()
    for _ in range(3):
        kinesis.put(8, size=2**20)
    pages = list(kinesis.pages(kinesis.iterator("TRIM_HORIZON")))
    assert [len(page) for page in pages] == [10, 10, 4]


def test_a_limit_is_refused_when_it_is_above_ten_thousand(kinesis: Kinesis) -> None:
    kinesis.create()
    with refused("InvalidArgumentException"):
        kinesis.get(kinesis.iterator("TRIM_HORIZON"), limit=10_001)


def test_the_reader_learns_how_far_behind_it_is_when_more_records_follow(
    kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    for _ in range(3):
        kinesis.put(1)
        machine.go_on(seconds=2)
    first = kinesis.get(kinesis.iterator("TRIM_HORIZON"), limit=1)
    second = kinesis.get(first["NextShardIterator"], limit=1)
    third = kinesis.get(second["NextShardIterator"], limit=1)
    assert [page["MillisBehindLatest"] for page in (first, second, third)] == [4000, 2000, 0]


def test_each_kind_of_iterator_starts_where_kinesis_says(
    kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    numbers = kinesis.put(3)
    later = machine.go_on(minutes=1)
    numbers += kinesis.put(3)
    latest = kinesis.iterator("LATEST")
    machine.go_on(minutes=1)
    kinesis.put(2)
    assert kinesis.contents("TRIM_HORIZON") == list(range(8))
    assert kinesis.contents("AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[4])[0] == 4
    assert kinesis.contents("AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[4])[0] == 5
    assert kinesis.contents("AT_TIMESTAMP", Timestamp=later)[0] == 3
    assert kinesis.contents("AT_TIMESTAMP", Timestamp=later + timedelta(milliseconds=1))[0] == 6
    assert kinesis.contents("AT_TIMESTAMP", Timestamp=START - timedelta(days=9))[0] == 0
    assert [len(page) for page in kinesis.pages(latest)] == [2]


def test_a_timestamp_behind_all_records_brings_the_next_that_is_put(
    kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(3)
    iterator = kinesis.iterator("AT_TIMESTAMP", Timestamp=machine.go_on(hours=1))
    assert kinesis.get(iterator)["Records"] == []
    kinesis.put(1)
    assert list(kinesis.pages(iterator)) == [[3]]


@pytest.mark.parametrize(
    ("kind", "more", "code"),
    [
        ("AT_TIMESTAMP", {"Timestamp": START + timedelta(days=1)}, "InvalidArgumentException"),
        ("AT_TIMESTAMP", {}, "InvalidArgumentException"),
        ("AT_SEQUENCE_NUMBER", {}, "InvalidArgumentException"),
        ("AT_SEQUENCE_NUMBER", {"StartingSequenceNumber": "01"}, "ValidationException"),
        ("BY_HAND", {}, "ValidationException"),
    ],
)
def test_an_iterator_is_refused_when_its_start_makes_no_sense(
    kinesis: Kinesis, kind: str, more: dict[str, object], code: str
) -> None:
    kinesis.create()
    with refused(code):
        kinesis.iterator(kind, FIRST, **more)


def test_a_sequence_number_is_refused_when_it_is_of_another_shard(kinesis: Kinesis) -> None:
    kinesis.create(2)
    answer = kinesis.client.put_record(
        StreamName="s", Data=b"x", PartitionKey="a", ExplicitHashKey="0"
    )
    with refused("InvalidArgumentException"):
        kinesis.iterator(
            "AT_SEQUENCE_NUMBER", name(1), StartingSequenceNumber=answer["SequenceNumber"]
        )


def test_an_iterator_expires_when_five_minutes_have_passed(
    kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    iterator = kinesis.iterator("TRIM_HORIZON")
    machine.go_on(minutes=5)
    kinesis.get(iterator)
    machine.go_on(milliseconds=1)
    with refused("ExpiredIteratorException"):
        kinesis.get(iterator)


@pytest.mark.parametrize(
    "iterator", ["AAAA", "not base64", base64.b64encode(b'{"stream": "s"}').decode()]
)
def test_an_iterator_is_refused_when_it_is_none_of_ours(kinesis: Kinesis, iterator: str) -> None:
    kinesis.create()
    with refused("InvalidArgumentException"):
        kinesis.get(iterator)


def test_nothing_is_found_when_the_stream_or_the_shard_is_not_there(kinesis: Kinesis) -> None:
    with refused("ResourceNotFoundException"):
        kinesis.iterator("LATEST")
    kinesis.create()
    with refused("ResourceNotFoundException"):
        kinesis.iterator("LATEST", name(9))


def test_records_are_gone_when_the_retention_has_passed(kinesis: Kinesis, machine: Machine) -> None:
    kinesis.create()
    kinesis.put(2)
    machine.go_on(hours=1)
    kinesis.put(2)
    machine.go_on(hours=23, milliseconds=1)
    assert kinesis.contents("TRIM_HORIZON") == [2, 3]
    # Older than the horizon: Kinesis clamps without a word.
    assert kinesis.contents("AT_TIMESTAMP", Timestamp=START) == [2, 3]


def test_trimmed_records_stay_gone_when_the_retention_grows(
    kinesis: Kinesis, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(2)
    machine.go_on(hours=25)
    kinesis.put(1)
    kinesis.client.increase_stream_retention_period(StreamName="s", RetentionPeriodHours=168)
    assert kinesis.contents("TRIM_HORIZON") == [2]


def test_pages_are_empty_in_between_when_the_control_says_so(
    kinesis: Kinesis, control: StandInControl
) -> None:
    kinesis.create()
    kinesis.put(6)
    control.change({"empty_pages": 2})
    iterator, sizes = kinesis.iterator("TRIM_HORIZON"), []
    for _ in range(5):
        page = kinesis.get(iterator, limit=2)
        sizes.append(len(page["Records"]))
        iterator = page["NextShardIterator"]
    assert sizes == [2, 0, 2, 0, 2]


def test_puts_are_throttled_when_a_shard_takes_more_than_its_share(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    kinesis.create()
    control.change({"throttle": True})
    kinesis.put(1000)
    answer = kinesis.client.put_records(
        StreamName="s", Records=[{"Data": b"x", "PartitionKey": "p"}] * 2
    )
    assert answer["FailedRecordCount"] == 2
    assert answer["Records"][0]["ErrorCode"] == "ProvisionedThroughputExceededException"
    with refused("ProvisionedThroughputExceededException"):
        kinesis.client.put_record(StreamName="s", Data=b"x", PartitionKey="p")
    machine.go_on(seconds=1)
    kinesis.put(1)
    machine.go_on(seconds=1)
    big = kinesis.client.put_records(
        StreamName="s", Records=[{"Data": b"x" * 600_000, "PartitionKey": "p"}] * 2
    )
    assert big["FailedRecordCount"] == 1


@pytest.mark.slow
def test_reads_are_throttled_when_a_shard_gives_more_than_its_share(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    kinesis.create()
    for _ in range(2):
        kinesis.put(9, size=2**20)
    iterator = kinesis.iterator("TRIM_HORIZON")
    control.change({"throttle": True})
    kinesis.get(iterator)  # 10 MiB, so the next five seconds have no share
    machine.go_on(seconds=4.9)
    with refused("ProvisionedThroughputExceededException"):
        kinesis.get(iterator)
    machine.go_on(seconds=0.2)
    kinesis.get(iterator, limit=1)
    machine.go_on(seconds=1)
    latest = kinesis.iterator("LATEST", FIRST)
    for _ in range(5):
        kinesis.get(latest)
    with refused("ProvisionedThroughputExceededException"):
        kinesis.get(latest)
