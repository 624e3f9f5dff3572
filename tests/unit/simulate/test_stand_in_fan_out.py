"""Enhanced fan-out of the stand-in, as boto3 sees it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import EventStreamError

from shardaudit.simulate.stand_in_process import StandInControl
from tests.unit.simulate.kinesis import START, Kinesis, Machine, code_of, name, refused

if TYPE_CHECKING:
    from mypy_boto3_kinesis.type_defs import SubscribeToShardEventTypeDef

AFTER_TAKE_OVER = 5.0


def arn(kinesis: Kinesis) -> str:
    summary = kinesis.client.describe_stream_summary(StreamName=kinesis.name)
    return summary["StreamDescriptionSummary"]["StreamARN"]


def register(kinesis: Kinesis, consumer: str = "c") -> str:
    answer = kinesis.client.register_stream_consumer(StreamARN=arn(kinesis), ConsumerName=consumer)
    return answer["Consumer"]["ConsumerARN"]


@contextmanager
def subscribed(
    kinesis: Kinesis, consumer: str, kind: str = "TRIM_HORIZON", *, shard: int = 0, **more: object
) -> "Iterator[Iterator[SubscribeToShardEventTypeDef]]":
    start = {"Type": kind, **more}
    answer = kinesis.client.subscribe_to_shard(
        ConsumerARN=consumer,
        ShardId=name(shard),
        StartingPosition=start,  # type: ignore[arg-type] # any of five forms
    )
    with closing(answer["EventStream"]) as stream:
        yield (event["SubscribeToShardEvent"] for event in stream)


def contents(events: "Iterator[SubscribeToShardEventTypeDef]") -> list[int]:
    """The numbers of the records, until an event brings none."""
    found = takewhile(lambda event: event["Records"], events)
    return [int(r["Data"].rstrip(b".")) for event in found for r in event["Records"]]


def test_consumer_lives_from_creating_to_gone(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    kinesis.create()
    control.change({"transition_s": 2})
    consumer = register(kinesis)
    assert consumer.startswith(f"{arn(kinesis)}/consumer/c:")
    describe = kinesis.client.describe_stream_consumer
    said = describe(StreamARN=arn(kinesis), ConsumerName="c")["ConsumerDescription"]
    assert (said["ConsumerARN"], said["ConsumerStatus"]) == (consumer, "CREATING")
    assert said["ConsumerCreationTimestamp"] == START
    with refused("ResourceInUseException"), subscribed(kinesis, consumer):
        pass
    machine.go_on(seconds=2)
    (listed,) = kinesis.client.list_stream_consumers(StreamARN=arn(kinesis))["Consumers"]
    assert (listed["ConsumerName"], listed["ConsumerStatus"]) == ("c", "ACTIVE")
    with refused("ResourceInUseException"):
        register(kinesis)
    kinesis.client.deregister_stream_consumer(ConsumerARN=consumer)
    assert describe(ConsumerARN=consumer)["ConsumerDescription"]["ConsumerStatus"] == "DELETING"
    machine.go_on(seconds=2)
    assert kinesis.client.list_stream_consumers(StreamARN=arn(kinesis))["Consumers"] == []
    assert code_of(describe, ConsumerARN=consumer) == "ResourceNotFoundException"


def test_stream_has_room_for_20_consumers_which_come_in_pages(kinesis: Kinesis) -> None:
    kinesis.create()
    names = [f"c{n:02d}" for n in range(20)]
    for consumer in names:
        register(kinesis, consumer)
    with refused("LimitExceededException"):
        register(kinesis, "one-too-many")
    pages = kinesis.client.get_paginator("list_stream_consumers").paginate(
        StreamARN=arn(kinesis), PaginationConfig={"PageSize": 7}
    )
    found = [[one["ConsumerName"] for one in page["Consumers"]] for page in pages]
    assert [len(page) for page in found] == [7, 7, 6]
    assert [one for page in found for one in page] == names


def test_events_bring_what_the_shard_has_and_what_comes_meanwhile(kinesis: Kinesis) -> None:
    kinesis.create()
    numbers = kinesis.put(1200)
    with subscribed(kinesis, register(kinesis)) as events:
        first = next(events)
        record = first["Records"][0]
        assert (record["SequenceNumber"], record["Data"]) == (numbers[0], b"0.........")
        assert (record["PartitionKey"], record["ApproximateArrivalTimestamp"]) == ("key-0", START)
        assert first["ContinuationSequenceNumber"] == first["Records"][-1]["SequenceNumber"]
        assert contents(events) == list(range(len(first["Records"]), 1200))
        kinesis.put(3)
        quiet = [len(event["Records"]) for event, _ in zip(events, range(4), strict=False)]
        assert sum(quiet) == 3


@pytest.mark.parametrize(
    ("kind", "first"), [("AT_SEQUENCE_NUMBER", 5), ("AFTER_SEQUENCE_NUMBER", 6)]
)
def test_subscription_begins_at_a_sequence_number(kinesis: Kinesis, kind: str, first: int) -> None:
    kinesis.create()
    numbers = kinesis.put(10)
    with subscribed(kinesis, register(kinesis), kind, SequenceNumber=numbers[5]) as events:
        assert contents(events) == list(range(first, 10))


def test_subscription_begins_at_a_time(kinesis: Kinesis, machine: Machine) -> None:
    kinesis.create()
    kinesis.put(5)
    at = machine.go_on(minutes=1)
    kinesis.put(5)
    with subscribed(kinesis, register(kinesis), "AT_TIMESTAMP", Timestamp=at) as events:
        assert contents(events) == list(range(5, 10))


def test_next_one_goes_on_where_a_subscription_was_over(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(1200)
    control.change({"subscription_s": 0})
    consumer = register(kinesis)
    with subscribed(kinesis, consumer) as events:
        (event,) = events
    found = len(event["Records"])
    assert 0 < found < 1200
    behind = event["ContinuationSequenceNumber"]
    with refused("ResourceInUseException"), subscribed(kinesis, consumer):
        pass
    machine.go_on(seconds=AFTER_TAKE_OVER)
    control.change({"subscription_s": 300})
    with subscribed(kinesis, consumer, "AFTER_SEQUENCE_NUMBER", SequenceNumber=behind) as events:
        assert contents(events) == list(range(found, 1200))


def test_subscription_ends_with_its_shard_and_names_the_children(kinesis: Kinesis) -> None:
    kinesis.create()
    kinesis.put(5)
    kinesis.split(0)
    with subscribed(kinesis, register(kinesis)) as events:
        (last,) = events
    assert len(last["Records"]) == 5
    assert [child["ShardId"] for child in last["ChildShards"]] == [name(1), name(2)]
    assert not last.get("ContinuationSequenceNumber")


def test_newer_subscription_takes_over(kinesis: Kinesis, machine: Machine) -> None:
    kinesis.create()
    kinesis.put(5)
    consumer = register(kinesis)
    with subscribed(kinesis, consumer) as older:
        next(older)
        machine.go_on(seconds=AFTER_TAKE_OVER)
        with subscribed(kinesis, consumer) as newer:
            assert contents(newer) == list(range(5))
            with pytest.raises(EventStreamError) as caught:
                list(older)
    assert caught.value.response["Error"]["Code"] == "ResourceInUseException"


def test_what_is_not_there_is_refused(kinesis: Kinesis) -> None:
    kinesis.create()
    consumer = register(kinesis)
    with refused("ResourceNotFoundException"), subscribed(kinesis, consumer, shard=7):
        pass
    with refused("ResourceNotFoundException"), subscribed(kinesis, f"{arn(kinesis)}/consumer/x:1"):
        pass
    with (
        refused("InvalidArgumentException"),
        subscribed(kinesis, consumer, "AT_SEQUENCE_NUMBER"),
    ):
        pass
