"""A stream in plain Python: producers, shards that forget, consumers with faults, and a sink.

What is true of a message stands here; what the product says of it, the tests compare with it. Each
shard is a history of its own; time, retention and what people do are common to all.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from shardaudit.model.stream_page import StoredRecord
from tests.builders import T0, Line, sequence, shard

S, MIN, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Message:
    """One acknowledged message."""

    message_id: str
    shard_id: str
    number: int
    sent_at: datetime
    acked_at: datetime

    @property
    def trace(self) -> Line:
        """The line of its producer's log."""
        return {
            "message_id": self.message_id,
            "shard_id": self.shard_id,
            "sequence_number": sequence(self.number),
            "sent_at": self.sent_at.isoformat(),
            "acked_at": self.acked_at.isoformat(),
        }

    @property
    def record(self) -> StoredRecord:
        """What the stream keeps of it."""
        content = self.message_id.encode()
        return StoredRecord(sequence(self.number), "key", self.acked_at, content)

    def row(self, landed_at: datetime) -> Line:
        """What the sink has of it."""
        return {
            "message_id": self.message_id,
            "shard_id": self.shard_id,
            "sequence_number": sequence(self.number),
            "sent_at": self.sent_at,
            "landed_at": landed_at,
        }


@dataclass
class Shard:
    """A shard and its consumer. `position`: how many of its records the consumer has read."""

    shard_id: str
    messages: list[Message] = field(default_factory=list)
    position: int = 0
    is_running: bool = True
    is_producing: bool = True


@dataclass
class World:
    """All that is true. `sink`: the landing times of each message."""

    random: Random
    now: datetime = T0
    retention: timedelta = 24 * HOUR
    begins_at: datetime = T0 - 365 * 24 * HOUR
    shards: list[Shard] = field(default_factory=list)
    sink: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    messages: dict[str, Message] = field(default_factory=dict)
    to_log: list[Message] = field(default_factory=list)
    to_land: list[Line] = field(default_factory=list)
    ticks: int = 0

    @classmethod
    def of(cls, seed: int, *, shards: int) -> "World":
        """A world in which nothing has happened yet."""
        return cls(Random(seed), shards=[Shard(shard(n)) for n in range(shards)])  # noqa: S311

    def go_on(self, length: timedelta) -> None:
        """Time passes; producers write, consumers read, records leave the stream."""
        since, self.now = self.now, self.now + length
        for one in self.shards:
            self._produce(one, since)
            self._consume(one)
        self.begins_at = max(self.begins_at, self.now - self.retention)

    def keep(self, retention: timedelta) -> None:
        """The stream keeps records for that long from now on; what has left it stays away."""
        self.retention = retention
        self.begins_at = max(self.begins_at, self.now - retention)

    def kept(self, shard_id: str) -> list[StoredRecord]:
        """The records of a shard that the stream still has."""
        (one,) = [one for one in self.shards if one.shard_id == shard_id]
        records = [message.record for message in one.messages]
        return [record for record in records if record.arrived_at >= self.begins_at]

    def land(self, message: Message) -> Line:
        """One more row of a message; no two land at the same time."""
        self.ticks += 1
        landed_at = self.now - S + self.ticks * timedelta(microseconds=1)
        self.sink[message.message_id].append(landed_at)
        return message.row(landed_at)

    def remove_copies(self, message_id: str) -> list[datetime]:
        """Takes all rows of a message but the first out of the sink: when they had landed."""
        first, *others = self.sink[message_id]
        self.sink[message_id] = [first]
        return others

    def all_consumers(self, *, resume: bool) -> None:
        """Every other stopped consumer goes on for good; the rest stay where they are."""
        for number, one in enumerate(self.shards):
            one.is_running = one.is_running or (resume and number % 2 == 0)

    def _produce(self, one: Shard, since: datetime) -> None:
        chance = self.random
        if chance.random() < 0.15:
            one.is_producing = not one.is_producing
        count = chance.randrange(5) if one.is_producing else 0
        span_s = (self.now - since).total_seconds()
        acked = sorted(since + timedelta(seconds=span_s * chance.random()) for _ in range(count))
        for acked_at in acked:
            held_back = chance.choice([0, 0, 0, 0, 1, 400, 20_000, 90_000])
            number = len(one.messages) + 1
            message = Message(
                f"{one.shard_id[-3:]}-{number}",
                one.shard_id,
                number,
                acked_at - timedelta(seconds=held_back) - S / 4,
                acked_at,
            )
            one.messages.append(message)
            self.messages[message.message_id] = message
            self.to_log.append(message)

    def _consume(self, one: Shard) -> None:
        chance = self.random
        dice = chance.random()
        if dice < 0.15:
            one.is_running = not one.is_running
        elif dice < 0.25:  # goes back to an older checkpoint
            one.position = max(0, one.position - chance.randrange(4))
        if not one.is_running:
            return
        upto = len(one.messages)
        if chance.random() < 0.2:  # behind by some
            upto = max(one.position, upto - chance.randrange(3))
        for message in one.messages[one.position : upto]:
            is_kept = message.acked_at >= self.begins_at
            if is_kept and chance.random() > 0.12:  # else a hole
                row = self.land(message)
                has_time = chance.random() > 0.05
                self.to_land.append(row if has_time else {**row, "sent_at": None})
        one.position = upto
