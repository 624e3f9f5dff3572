"""The consumers of enhanced fan-out: registered, listed, described and removed."""

from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.requests import (
    Answer,
    ApiError,
    Request,
    in_use,
    invalid_argument,
    not_found,
)
from shardaudit.simulate.stand_in.served_stream import Consumer, ConsumerStatus, Stream

MAX_CONSUMERS = 20  # Kinesis quota, of a stream
PAGE_CONSUMERS = 100  # Kinesis API: the default of MaxResults


def register_stream_consumer(account: Account, request: Request) -> Answer:
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


def describe_stream_consumer(account: Account, request: Request) -> Answer:
    """DescribeStreamConsumer, by ARN or by stream and name."""
    stream, consumer = _asked_for(account, request)
    return {"ConsumerDescription": {**_facts(consumer), "StreamARN": stream.arn}}


def list_stream_consumers(account: Account, request: Request) -> Answer:
    """ListStreamConsumers, by name, in pages."""
    stream = account.stream(request)
    after = request.optional_text("NextToken") or ""
    limit = request.optional_whole("MaxResults", at_least=1, at_most=10_000) or PAGE_CONSUMERS
    with stream.lock:
        there = sorted(consumers_of(account, stream), key=lambda one: one.name)
    left = [one for one in there if one.name > after]
    page: dict[str, object] = {"Consumers": [_facts(one) for one in left[:limit]]}
    return page | {"NextToken": left[limit - 1].name} if len(left) > limit else page


def deregister_stream_consumer(account: Account, request: Request) -> Answer:
    """DeregisterStreamConsumer: it is DELETING for a moment."""
    _, consumer = _asked_for(account, request)
    consumer.status = ConsumerStatus.DELETING
    consumer.busy_until_machine_ms = account.transition_end_ms()
    return {}


def active_consumer(account: Account, arn: str) -> tuple[Stream, Consumer]:
    """The consumer of that ARN, which may subscribe."""
    stream, consumer = _of_arn(account, arn)
    if consumer.status is not ConsumerStatus.ACTIVE:
        raise in_use(f"Consumer {arn} is not ACTIVE, instead in state {consumer.status}")
    return stream, consumer


def consumers_of(account: Account, stream: Stream) -> list[Consumer]:
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


def _asked_for(account: Account, request: Request) -> tuple[Stream, Consumer]:
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


def _of_arn(account: Account, arn: str) -> tuple[Stream, Consumer]:
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
