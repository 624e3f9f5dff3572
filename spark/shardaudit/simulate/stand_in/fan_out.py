"""Enhanced fan-out: consumers registered and listed, records pushed to them event by event.

Events are framed as AWS does (application/vnd.amazon.eventstream): lengths, their CRC, headers,
payload, the CRC of all.
"""

import json
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.record_operations import start_position
from shardaudit.simulate.stand_in.requests import (
    ApiError,
    Request,
    Response,
    in_use,
    invalid_argument,
    invalid_field,
    not_found,
)
from shardaudit.simulate.stand_in.served_stream import Consumer, ConsumerStatus, ServedStream
from shardaudit.simulate.stand_in.shard import ServedShard
from shardaudit.simulate.stand_in.shard_listing import child_facts

MAX_CONSUMERS = 20  # Kinesis quota, of a stream
PAGE_CONSUMERS = 100  # Kinesis API: the default of MaxResults

EVENTS = "application/vnd.amazon.eventstream"
EVENT_RECORDS = 500  # of ours; Kinesis pushes as many as it has at hand
BYTES_PER_S = 2 * 2**20  # Kinesis quota, of each consumer and shard
TAKE_OVER_MS = 5000  # Kinesis API: before that a second subscription is refused
HEARTBEAT_S = 0.2  # Kinesis says every few seconds that there is nothing new
_TEXT = 7  # a header's type


def register_stream_consumer(account: Account, request: Request) -> Response:
    """RegisterStreamConsumer."""
    stream, name = account.stream(request), request.text("ConsumerName")
    with stream.lock:
        there = consumers_of(account, stream)
        if any(one.name == name for one in there):
            raise in_use(f"Consumer {name} of stream {stream.name} already exists.")
        if len(there) >= MAX_CONSUMERS:
            raise ApiError("LimitExceededException", f"{stream.name} has {MAX_CONSUMERS} consumers")
        now_ms = account.now_ms()
        arn = f"{stream.arn}/consumer/{name}:{now_ms // 1000}"
        consumer = Consumer(name, arn, now_ms, account.transition_end_ms())
        stream.consumers.append(consumer)
    return {"Consumer": _facts(consumer)}


def describe_stream_consumer(account: Account, request: Request) -> Response:
    """DescribeStreamConsumer, by ARN or by stream and name."""
    stream, consumer = _asked_for(account, request)
    return {"ConsumerDescription": {**_facts(consumer), "StreamARN": stream.arn}}


def list_stream_consumers(account: Account, request: Request) -> Response:
    """ListStreamConsumers, by name, in pages."""
    stream = account.stream(request)
    after = request.optional_text("NextToken") or ""
    limit = request.optional_whole("MaxResults", at_least=1, at_most=10_000) or PAGE_CONSUMERS
    with stream.lock:
        there = sorted(consumers_of(account, stream), key=lambda one: one.name)
    left = [one for one in there if one.name > after]
    page: dict[str, object] = {"Consumers": [_facts(one) for one in left[:limit]]}
    return page | {"NextToken": left[limit - 1].name} if len(left) > limit else page


def deregister_stream_consumer(account: Account, request: Request) -> Response:
    """DeregisterStreamConsumer: it is DELETING for a moment."""
    _, consumer = _asked_for(account, request)
    consumer.status = ConsumerStatus.DELETING
    consumer.busy_until_machine_ms = account.transition_end_ms()
    return {}


def active_consumer(account: Account, arn: str) -> tuple[ServedStream, Consumer]:
    """The consumer of that ARN, which may subscribe."""
    stream, consumer = _of_arn(account, arn)
    if consumer.status is not ConsumerStatus.ACTIVE:
        raise in_use(f"Consumer {arn} is not ACTIVE, instead in state {consumer.status}")
    return stream, consumer


def consumers_of(account: Account, stream: ServedStream) -> list[Consumer]:
    """Those that there are; CREATING and DELETING end by themselves, by the machine's clock."""
    machine_ms = account.machine_ms()
    with stream.lock:
        for one in list(stream.consumers):
            if machine_ms < one.busy_until_machine_ms:
                continue
            if one.status is ConsumerStatus.DELETING:
                stream.consumers.remove(one)
            one.status = ConsumerStatus.ACTIVE
        return list(stream.consumers)


def _asked_for(account: Account, request: Request) -> tuple[ServedStream, Consumer]:
    arn = request.optional_text("ConsumerARN")
    if arn is not None:
        return _of_arn(account, arn)
    if not (request.has("StreamARN") and request.has("ConsumerName")):
        raise invalid_argument("Provide ConsumerARN, or StreamARN and ConsumerName.")
    stream, name = account.stream(request), request.text("ConsumerName")
    for consumer in consumers_of(account, stream):
        if consumer.name == name:
            return stream, consumer
    raise not_found(f"Consumer {name} of stream {stream.name} not found.")


def _of_arn(account: Account, arn: str) -> tuple[ServedStream, Consumer]:
    stream = account.stream_named(arn.partition("/")[2].partition("/")[0])
    for consumer in consumers_of(account, stream):
        if consumer.arn == arn:
            return stream, consumer
    raise not_found(f"Consumer {arn} not found.")


def _facts(consumer: Consumer) -> dict[str, object]:
    return {
        "ConsumerName": consumer.name,
        "ConsumerARN": consumer.arn,
        "ConsumerStatus": consumer.status,
        "ConsumerCreationTimestamp": consumer.created_ms / 1000,
    }


@dataclass(slots=True)
class Subscription:
    """One call's stream of events, from a place in a shard on."""

    account: Account
    stream: ServedStream
    shard: ServedShard
    consumer: Consumer
    position: int
    began_ms: int

    def frames(self) -> Iterator[bytes]:
        """The events, as they are sent; ends with the shard, the subscription or a newer one."""
        yield frame({":message-type": "event", ":event-type": "initial-response"}, "{}")
        until_ms = self.began_ms + self.account.control.switches.subscription_s * 1000
        while True:
            if self.consumer.subscribed_ms[self.shard.shard_id] != self.began_ms:
                yield _refusal(in_use("Another subscription has taken over."))
                return
            event, size_bytes, is_end = self._event()
            yield frame({":message-type": "event", ":event-type": "SubscribeToShardEvent"}, event)
            if is_end or self.account.machine_ms() >= until_ms:
                return
            if not size_bytes:
                time.sleep(HEARTBEAT_S)
            elif self.account.control.switches.throttle:
                time.sleep(size_bytes / BYTES_PER_S)

    def _event(self) -> tuple[str, int, bool]:
        """The next event as JSON text, its bytes, and whether the shard ends with it."""
        now_ms = self.account.now_ms()
        with self.stream.lock:
            self.shard.trim(self.stream.horizon_ms(now_ms))
            page = self.shard.page(self.position, limit=EVENT_RECORDS, now_ms=now_ms, empty=False)
            is_end = page.is_last and not self.shard.is_open
            children = self.stream.children(self.shard.shard_id) if is_end else []
        self.position = page.position
        facts: dict[str, object] = {"MillisBehindLatest": page.behind_ms}
        if is_end:
            facts["ChildShards"] = [child_facts(child) for child in children]
        else:
            facts["ContinuationSequenceNumber"] = str(max(0, page.position - 1))
        text = f'{json.dumps(facts)[:-1]},"Records":[{",".join(page.records)}]}}'
        return text, page.size_bytes, is_end


def subscribe_to_shard(account: Account, request: Request) -> Subscription:
    """SubscribeToShard."""
    stream, consumer = active_consumer(account, request.text("ConsumerARN"))
    start = request.optional_part("StartingPosition")
    if start is None:
        raise invalid_field("startingPosition", "not be null")
    now_ms, machine_ms = account.now_ms(), account.machine_ms()
    with stream.lock:
        shard = stream.shard(request.text("ShardId"), now_ms)
        position = start_position(
            start.text("Type"), start, shard, number="SequenceNumber", now_ms=now_ms
        )
        before = consumer.subscribed_ms.get(shard.shard_id)
        if before is not None and machine_ms - before < TAKE_OVER_MS:
            raise in_use(f"Another active subscription exists for this consumer: {consumer.arn}")
        consumer.subscribed_ms[shard.shard_id] = machine_ms
    return Subscription(account, stream, shard, consumer, position, machine_ms)


def frame(headers: dict[str, str], payload: str) -> bytes:
    """One message of an event stream."""
    encoded = b"".join(
        struct.pack(f"!B{len(name)}sBH", len(name), name.encode(), _TEXT, len(value))
        + value.encode()
        for name, value in {**headers, ":content-type": "application/json"}.items()
    )
    content = payload.encode()
    prelude = struct.pack("!II", 16 + len(encoded) + len(content), len(encoded))
    head = prelude + struct.pack("!I", zlib.crc32(prelude))
    message = head + encoded + content
    return message + struct.pack("!I", zlib.crc32(message))


def _refusal(error: ApiError) -> bytes:
    said = json.dumps({"message": error.text})
    return frame({":message-type": "exception", ":exception-type": error.code}, said)
