"""Enhanced fan-out: a consumer of our own, to which Kinesis pushes 2 MB/s of each shard.

A subscription looks like pages: its next event is the next page, and where it ends, after five
minutes or in an error, another one begins behind the last event.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.eventstream import ParserError
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from shardaudit.adapters.aws.kinesis import StreamUnavailableError, kinesis_errors
from shardaudit.adapters.aws.kinesis_pages import (
    ShardPages,
    StreamAddress,
    gone_when,
    stored_records,
    stream_client,
    told_apart,
)
from shardaudit.model.errors import ShardauditError
from shardaudit.model.get_records import PlaceGoneError, Start, StreamPage, ThrottledError

if TYPE_CHECKING:  # the stubs are installed for development only
    from botocore.eventstream import EventStream
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import (
        StartingPositionTypeDef,
        SubscribeToShardEventStreamTypeDef,
        SubscribeToShardEventTypeDef,
    )

CONTROL_TRIES = 10  # of a call that registers, describes or removes: 5 and 20 a second are allowed
_POLLS, _PAUSE_S = 240, 0.5  # how often, and how far apart, a consumer's status is asked


def consumer_name(warehouse: str, plan_id: str) -> str:
    """What a plan's consumer is called: nobody else's, the same whenever the plan is run."""
    place = hashlib.sha256(warehouse.encode()).hexdigest()[:12]
    return f"shardaudit-{plan_id.rpartition('-')[2]}-{place}"


@contextmanager
def registered_consumer(
    address: StreamAddress, name: str, *, left_over: Collection[str]
) -> Iterator[str]:
    """The ARN of a new consumer, ACTIVE, that is removed when the block ends.

    Input:
        left_over: see `remove_consumers`.

    Raises:
        StreamRefusedError: no permission; says what Kinesis said.
        StreamUnavailableError: Kinesis did not answer, or the stream has no room for a consumer.
    """
    client = stream_client(address, tries=CONTROL_TRIES)
    stream_arn = remove_consumers(address, left_over)
    with kinesis_errors(address.stream_name):
        answer = client.register_stream_consumer(StreamARN=stream_arn, ConsumerName=name)
    arn = answer["Consumer"]["ConsumerARN"]
    try:
        with kinesis_errors(address.stream_name):
            _wait(client, stream_arn, until=lambda found: found.get(name) == "ACTIVE")
        yield arn
    finally:
        gone = client.exceptions.ResourceNotFoundException
        with kinesis_errors(address.stream_name), suppress(gone):
            client.deregister_stream_consumer(ConsumerARN=arn)


def remove_consumers(address: StreamAddress, names: Collection[str]) -> str:
    """Removes those consumers that are there, and waits until they are not: the stream's ARN.

    Input:
        names: all of them ours, of runs that may have died with their consumer.

    Raises:
        StreamRefusedError: no permission; says what Kinesis said.
        StreamUnavailableError: Kinesis did not answer.
    """
    client = stream_client(address, tries=CONTROL_TRIES)
    with kinesis_errors(address.stream_name):
        summary = client.describe_stream_summary(StreamName=address.stream_name)
        stream_arn = summary["StreamDescriptionSummary"]["StreamARN"]
        for name, status in _statuses(client, stream_arn).items():
            if name in names and status != "DELETING":
                client.deregister_stream_consumer(StreamARN=stream_arn, ConsumerName=name)
        _wait(client, stream_arn, until=lambda found: not found.keys() & names)
    return stream_arn


def _statuses(client: "KinesisClient", stream_arn: str) -> dict[str, str]:
    """The status of each consumer of the stream, by name."""
    pages = client.get_paginator("list_stream_consumers").paginate(StreamARN=stream_arn)
    return {
        one["ConsumerName"]: one["ConsumerStatus"] for page in pages for one in page["Consumers"]
    }


def _wait(
    client: "KinesisClient", stream_arn: str, *, until: Callable[[dict[str, str]], bool]
) -> None:
    for _ in range(_POLLS):
        if until(_statuses(client, stream_arn)):
            return
        time.sleep(_PAUSE_S)
    said = f"a consumer is still on its way after {_POLLS * _PAUSE_S:.0f} s"
    raise StreamUnavailableError(stream_arn.rpartition("/")[2], said)


class FanOutPages:
    """What Kinesis pushes to a consumer, one subscription at a time. `close` ends the last one."""

    def __init__(self, address: StreamAddress, consumer_arn: str) -> None:
        self._name, self._arn = address.stream_name, consumer_arn
        self._address = address
        self._beside: ShardPages | None = None
        self._client = stream_client(address)
        self._subscription: EventStream[SubscribeToShardEventStreamTypeDef] | None = None
        self._events: Iterator[SubscribeToShardEventStreamTypeDef] = iter(())
        self._place: str | None = None  # where the subscription goes on

    def iterator(self, shard_id: str, start: Start) -> str:
        """Subscribes there: the place of the first event.

        Raises:
            PlaceGoneError: the shard or the sequence number is not there.
            ThrottledError: a later try may work; within 5 seconds of the last one it never does.
            StreamRefusedError: no permission, no such consumer.
        """
        place = json.dumps([shard_id, start.sequence_number, start.is_after, _text(start.at)])
        self._subscribe(shard_id, start)
        self._place = place
        return place

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        """The next event; an empty page where the subscription is over.

        Raises: as `iterator`.
        """
        del limit  # Kinesis pushes what it has
        shard_id, sequence_number, is_after, at = json.loads(iterator)
        if self._subscription is None or iterator != self._place:
            instant = None if at is None else datetime.fromisoformat(at)
            self.iterator(shard_id, Start(sequence_number, is_after, instant))
        event = self._next_event()
        if event is None:
            return StreamPage((), iterator, is_level=False)
        behind = event.get("ContinuationSequenceNumber")
        self._place = None
        if behind and not event.get("ChildShards"):  # which it has at the end of a closed shard
            self._place = json.dumps([shard_id, behind, True, None])
        is_level = event["MillisBehindLatest"] == 0
        return StreamPage(stored_records(event["Records"]), self._place, is_level)

    def beside(self) -> ShardPages:
        """Single calls of GetRecords: a second subscription would end the first, and wait."""
        self._beside = self._beside or ShardPages(self._address)
        return self._beside

    def close(self) -> None:
        """Listens no longer."""
        if self._subscription is not None:
            self._subscription.close()
        if self._beside is not None:
            self._beside.close()
        self._subscription, self._events, self._beside = None, iter(()), None

    def _subscribe(self, shard_id: str, start: Start) -> None:
        self.close()
        try:
            with _told_apart(self._name, gone=gone_when(start)):
                answer = self._client.subscribe_to_shard(
                    ConsumerARN=self._arn, ShardId=shard_id, StartingPosition=_position(start)
                )
        except PlaceGoneError:
            self._check_consumer()  # Kinesis has one word for a shard and a consumer that are not
            raise
        self._subscription = answer["EventStream"]
        self._events = iter(self._subscription)

    def _next_event(self) -> "SubscribeToShardEventTypeDef | None":
        """None where the subscription is over."""
        try:
            with _told_apart(self._name, gone=set()):
                event = next(self._events, None)
        except ShardauditError:
            self.close()
            raise
        if event is None:
            self.close()
            return None
        return event["SubscribeToShardEvent"]

    def _check_consumer(self) -> None:
        with told_apart(self._name, gone=set()):
            self._client.describe_stream_consumer(ConsumerARN=self._arn)


@contextmanager
def _told_apart(stream_name: str, *, gone: set[str]) -> Iterator[None]:
    """As `told_apart`, also of the errors under a body that is still being sent."""
    try:
        with told_apart(stream_name, gone=gone):
            yield
    except (HTTPError, ParserError, ResponseParserError) as error:
        raise ThrottledError(f"Kinesis stream {stream_name}: {error}") from error


def _position(start: Start) -> "StartingPositionTypeDef":
    if start.at is not None:
        return {"Type": "AT_TIMESTAMP", "Timestamp": start.at}
    if start.sequence_number is None:
        return {"Type": "TRIM_HORIZON"}
    if start.is_after:
        return {"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": start.sequence_number}
    return {"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": start.sequence_number}


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
