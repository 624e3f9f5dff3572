"""SubscribeToShard: a shard's records pushed, event by event, until the subscription is over.

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
from shardaudit.simulate.stand_in.consumer_operations import active_consumer
from shardaudit.simulate.stand_in.record_operations import start_position
from shardaudit.simulate.stand_in.requests import ApiError, Request, in_use, invalid_field
from shardaudit.simulate.stand_in.served_stream import Consumer, Stream
from shardaudit.simulate.stand_in.shard import Shard
from shardaudit.simulate.stand_in.shard_listing import child_facts

EVENTS = "application/vnd.amazon.eventstream"
EVENT_RECORDS = 500  # of ours; Kinesis pushes as many as it has at hand
BYTES_PER_S = 2 * 2**20  # Kinesis quota, of each consumer and shard
TAKE_OVER_MS = 5000  # Kinesis API: before that a second subscription is refused
HEARTBEAT_S = 0.2  # Kinesis says every few seconds that there is nothing new
_TEXT = 7  # a header's type


@dataclass(slots=True)
class Subscription:
    """One call's stream of events, from a place in a shard on."""

    account: Account
    stream: Stream
    shard: Shard
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
