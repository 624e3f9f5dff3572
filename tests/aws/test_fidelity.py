"""The same questions to our stand-in and to kinesis-local: the answers must be the same.

Not asked, as kinesis-local is known to be wrong or silent there: AT_TRIM_HORIZON (it returns every
shard), trimming, throttling, a malformed iterator (it answers 500), a split at a range's very start
(it allows an empty shard), and volumes (it is quadratic).
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.aws.kinesis_local import kinesis_local, missing_tool
from tests.aws.streams import Stream
from tests.unit.simulate.kinesis import FIRST, code_of, name

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

pytestmark = [
    pytest.mark.aws,
    pytest.mark.skipif(missing_tool() is not None, reason=f"needs {missing_tool()} on the PATH"),
]

HOUR = timedelta(hours=1)


def numbers_and_routes(stream: Stream) -> object:
    stream.make(2)
    ranges = [int(s["HashKeyRange"]["EndingHashKey"]) for s in stream.shards()]
    records = [{"Data": b"x", "PartitionKey": f"key {i}"} for i in range(50)]
    acks = stream.client.put_records(StreamName=stream.name, Records=records)["Records"]  # type: ignore[arg-type] # a literal loses its TypedDict
    hashes = [
        int(hashlib.md5(r["PartitionKey"].encode(), usedforsecurity=False).hexdigest(), 16)  # type: ignore[attr-defined] # a text
        for r in records
    ]
    routed = [
        ack["ShardId"] == name(int(h > ranges[0])) for ack, h in zip(acks, hashes, strict=True)
    ]
    in_order = {
        shard: [int(a["SequenceNumber"]) for a in acks if a["ShardId"] == shard]
        for shard in (name(0), name(1))
    }
    return (
        all(routed),
        [numbers == sorted(numbers) for numbers in in_order.values()],
        {len(ack["SequenceNumber"]) for ack in acks},
        [len(stream.get(stream.iterator("TRIM_HORIZON", shard))["Records"]) for shard in in_order],
    )


def starts(stream: Stream) -> object:
    stream.make(1)
    numbers = stream.put(5)
    between = stream.moment()
    numbers += stream.put(5)
    latest = stream.iterator("LATEST")
    after = stream.moment()
    exact = stream.get(
        stream.iterator("AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[5]), limit=1
    )["Records"][0]["ApproximateArrivalTimestamp"]
    return (
        stream.contents("TRIM_HORIZON"),
        stream.contents("AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[7]),
        stream.contents("AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[7]),
        stream.contents("AT_TIMESTAMP", Timestamp=between - HOUR),
        stream.contents("AT_TIMESTAMP", Timestamp=between),
        stream.contents("AT_TIMESTAMP", Timestamp=exact),
        stream.contents("AT_TIMESTAMP", Timestamp=after),
        list(stream.pages(latest)),
        code_of(
            lambda **more: {"": stream.iterator("AT_TIMESTAMP", FIRST, **more)},
            Timestamp=after + HOUR,
        ),
    )


def empty_then_put(stream: Stream) -> object:
    stream.make(1)
    at = stream.moment()
    iterator = stream.iterator("AT_TIMESTAMP", Timestamp=at)
    first = stream.get(iterator)
    stream.put(3)
    return (
        len(first["Records"]),
        len(stream.get(iterator)["Records"]),
        len(stream.get(first["NextShardIterator"])["Records"]),
    )


def lineage(stream: Stream) -> object:
    stream.reshard()
    return [
        (
            shard["ShardId"],
            shard.get("ParentShardId"),
            shard.get("AdjacentParentShardId"),
            "EndingSequenceNumber" in shard["SequenceNumberRange"],
            sorted(set(stream.contents("TRIM_HORIZON", shard["ShardId"])))[:1],
        )
        for shard in stream.shards()
    ], sum(len(stream.contents("TRIM_HORIZON", shard["ShardId"])) for shard in stream.shards())


def ends(stream: Stream) -> object:
    _, _, after = stream.reshard()
    pages = [stream.get(stream.iterator("TRIM_HORIZON", name(shard))) for shard in (0, 2, 3, 4)]
    late = stream.get(stream.iterator("AT_TIMESTAMP", name(0), Timestamp=after))
    return [
        (
            page.get("NextShardIterator") is None,
            [(c["ShardId"], c["ParentShards"]) for c in page.get("ChildShards", [])],
            page["MillisBehindLatest"],
        )
        for page in [*pages, late]
    ], len(late["Records"])


def filters(stream: Stream) -> object:
    stream.pause_seconds = stream.shard_time_seconds
    before, between, after = stream.reshard()
    moments = [before, between, after]
    return (
        stream.numbers({"Type": "FROM_TRIM_HORIZON"}),
        stream.numbers({"Type": "AT_LATEST"}),
        [stream.numbers({"Type": "AT_TIMESTAMP", "Timestamp": at}) for at in moments],
        [stream.numbers({"Type": "FROM_TIMESTAMP", "Timestamp": at}) for at in moments],
        stream.numbers({"Type": "AFTER_SHARD_ID", "ShardId": name(1)}),
    )


def pages_of_shards(stream: Stream) -> object:
    stream.make(3)
    page = stream.client.list_shards(StreamName=stream.name, MaxResults=2)
    rest = stream.client.list_shards(NextToken=page["NextToken"], MaxResults=2)
    both = code_of(stream.client.list_shards, StreamName=stream.name, NextToken=page["NextToken"])
    return [len(page["Shards"]), len(rest["Shards"]), "NextToken" in rest, both]


def doubled(stream: Stream) -> object:
    stream.make(2)
    stream.client.update_shard_count(
        StreamName=stream.name, TargetShardCount=4, ScalingType="UNIFORM_SCALING"
    )
    stream.settle()
    return ["EndingSequenceNumber" in s["SequenceNumberRange"] for s in stream.shards()]


def behind(stream: Stream) -> object:
    stream.make(1)
    stream.put(3)
    stream.moment()
    stream.moment()
    first = stream.get(stream.iterator("TRIM_HORIZON"), limit=3)
    last = stream.get(first["NextShardIterator"])
    return first["MillisBehindLatest"] > 0, last["MillisBehindLatest"]


def binary(stream: Stream) -> object:
    stream.make(1)
    content = bytes.fromhex("f3899ac2") + bytes(range(256))
    stream.client.put_record(
        StreamName=stream.name, Data=content, PartitionKey="a", ExplicitHashKey="5"
    )
    record = stream.get(stream.iterator("TRIM_HORIZON"))["Records"][0]
    return record["Data"], record["PartitionKey"]


def retention(stream: Stream) -> object:
    stream.make(1)
    increase = stream.client.increase_stream_retention_period
    decrease = stream.client.decrease_stream_retention_period
    steps = [(increase, 168), (increase, 48), (increase, 8761), (decrease, 24), (decrease, 1)]
    codes = []
    for change, hours in steps:
        codes.append(code_of(change, StreamName=stream.name, RetentionPeriodHours=hours))
        stream.settle()
    return codes


def refusals(stream: Stream) -> object:
    stream.make(3)
    client, s = stream.client, stream.name
    start: Callable[..., Mapping[str, object]] = client.get_shard_iterator
    at_zero = {"ShardId": FIRST, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = stream.iterator("TRIM_HORIZON")
    return [
        code_of(start, StreamName="none", **at_zero),
        code_of(start, StreamName=s, ShardId=name(9), ShardIteratorType="LATEST"),
        code_of(start, StreamName=s, ShardId=FIRST, ShardIteratorType="AT_TIMESTAMP"),
        code_of(client.get_records, ShardIterator=iterator, Limit=10_001),
        code_of(client.create_stream, StreamName=s, ShardCount=1),
        code_of(client.describe_stream_summary, StreamName="none"),
        code_of(client.list_shards, StreamName="none"),
        code_of(client.put_record, StreamName="none", Data=b"x", PartitionKey="p"),
        code_of(
            client.split_shard,
            StreamName=s,
            ShardToSplit=FIRST,
            NewStartingHashKey=str(2**128 - 1),
        ),
        code_of(client.split_shard, StreamName=s, ShardToSplit=name(9), NewStartingHashKey="9"),
        code_of(
            client.merge_shards, StreamName=s, ShardToMerge=FIRST, AdjacentShardToMerge=name(2)
        ),
    ]


QUESTIONS: list[Callable[[Stream], object]] = [
    numbers_and_routes,
    starts,
    empty_then_put,
    lineage,
    ends,
    filters,
    pages_of_shards,
    doubled,
    behind,
    binary,
    retention,
    refusals,
]


@pytest.fixture(scope="module")
def ours() -> "Iterator[KinesisClient]":
    with kinesis_stand_in() as url:
        client = endpoint_client(url)
        yield client
        client.close()


@pytest.fixture(scope="module")
def theirs() -> "Iterator[KinesisClient]":
    with kinesis_local() as url:
        client = endpoint_client(url)
        yield client
        client.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_both_answer_alike(
    ours: "KinesisClient", theirs: "KinesisClient", question: Callable[[Stream], object]
) -> None:
    stream = question.__name__
    other = Stream(theirs, stream)
    other.shard_time_seconds = 1.1  # it compares whole seconds
    assert question(Stream(ours, stream)) == question(other)
