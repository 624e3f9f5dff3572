"""A stream in plain Python: producers, shards that forget, consumers with faults, and a sink.

What is true of a message stands here; what the product says of it, the tests compare with it. Each
shard is a history of its own, but for retries that go to its neighbour; time, retention and what
people do are common to all.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from shardaudit.model.get_records import StoredRecord
from tests.builders import SINK_DDL, T0, Line, sequence, shard

S, MIN, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ROWS_DDL = f"{SINK_DDL}, row_number bigint"


@dataclass(frozen=True, slots=True)
class Message:
    """One acknowledged attempt to send a message."""

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
    def key(self) -> str:
        """What no other attempt has."""
        return f"{self.shard_id}/{self.number}"

    @property
    def record(self) -> StoredRecord:
        """What the stream keeps of it."""
        return StoredRecord(sequence(self.number), "key", self.acked_at, self.key.encode())


@dataclass(frozen=True, slots=True)
class Delivery:
    """One row of the sink. `lacks`: what is NULL in it."""

    number: int
    message: Message
    landed_at: datetime
    lacks: str | None

    @property
    def line(self) -> Line:
        """The row."""
        row = {
            "message_id": self.message.message_id,
            "shard_id": self.message.shard_id,
            "sequence_number": sequence(self.message.number),
            "sent_at": self.message.sent_at,
            "landed_at": self.landed_at,
            "row_number": self.number,
        }
        return row if self.lacks is None else {**row, self.lacks: None}


@dataclass
class Shard:
    """A shard and its consumer. `position`: how many of its records the consumer has read."""

    shard_id: str
    messages: list[Message] = field(default_factory=list)
    position: int = 0
    is_running: bool = True
    is_producing: bool = True


Attempt = tuple[datetime, str, str, datetime]  # acked_at, shard, message, sent_at


@dataclass
class World:
    """All that is true.

    `attempts` and `sink`: of each message; `vanished`: those of which the lake dropped the rows
    when the stream had none of their cells any more.
    """

    random: Random
    now: datetime = T0
    retention: timedelta = 24 * HOUR
    begins_at: datetime = T0 - 365 * 24 * HOUR
    shards: dict[str, Shard] = field(default_factory=dict)
    attempts: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    sink: dict[str, list[Delivery]] = field(default_factory=lambda: defaultdict(list))
    vanished: set[str] = field(default_factory=set)
    to_retry: list[Attempt] = field(default_factory=list)
    to_log: list[Message] = field(default_factory=list)
    to_land: list[Line] = field(default_factory=list)
    rows: int = 0

    @classmethod
    def of(cls, seed: int, *, shards: int) -> "World":
        """A world in which nothing has happened yet."""
        names = [shard(n) for n in range(shards)]
        return cls(Random(seed), shards={name: Shard(name) for name in names})  # noqa: S311

    def has_landed(self, message_id: str) -> bool:
        """Whether it is in the sink, or was until it could leave it."""
        return bool(self.sink[message_id]) or message_id in self.vanished

    def go_on(self, length: timedelta) -> None:
        """Time passes; producers write, consumers read, records leave the stream."""
        since, self.now = self.now, self.now + length
        attempts = [made for one in self.shards.values() for made in self._produce(one, since)]
        attempts += self.to_retry
        self.to_retry = [made for made in attempts if made[0] > self.now]
        for made in sorted(attempts):
            if made[0] <= self.now:
                self._acknowledge(*made)
        for one in self.shards.values():
            self._consume(one)
        self.begins_at = max(self.begins_at, self.now - self.retention)

    def keep(self, retention: timedelta) -> None:
        """The stream keeps records for that long from now on; what has left it stays away."""
        self.retention = retention
        self.begins_at = max(self.begins_at, self.now - retention)

    def kept(self, shard_id: str) -> list[StoredRecord]:
        """The records of a shard that the stream still has."""
        records = [message.record for message in self.shards[shard_id].messages]
        return [record for record in records if record.arrived_at >= self.begins_at]

    def attempt(self, key: str) -> Message:
        """Of a key."""
        shard_id, number = key.split("/")
        return self.shards[shard_id].messages[int(number) - 1]

    def land(self, message: Message, *, lacks: str | None = None) -> Line:
        """One more row of a message; no two land at the same time."""
        self.rows += 1
        landed_at = self.now - S + self.rows * timedelta(microseconds=1)
        row = Delivery(self.rows, message, landed_at, lacks)
        self.sink[message.message_id].append(row)
        return row.line

    def remove(self, rows: Iterable[Delivery]) -> None:
        """Takes rows out of the sink."""
        for row in rows:
            self.sink[row.message.message_id].remove(row)

    def copies(self, message_ids: Iterable[str]) -> list[Delivery]:
        """All rows of the messages but the first."""
        return [row for one in message_ids for row in self.sink[one][1:]]

    def all_consumers(self, *, resume: bool) -> None:
        """Every other stopped consumer goes on for good; the rest stay where they are."""
        for number, one in enumerate(self.shards.values()):
            one.is_running = one.is_running or (resume and number % 2 == 0)

    def _produce(self, one: Shard, since: datetime) -> list[Attempt]:
        chance = self.random
        if chance.random() < 0.15:
            one.is_producing = not one.is_producing
        count = chance.randrange(5) if one.is_producing else 0
        span_s = (self.now - since).total_seconds()
        made: list[Attempt] = []
        for n in range(count):
            acked_at = since + timedelta(seconds=span_s * chance.random())
            held_back = chance.choice([0, 0, 0, 0, 1, 400, 20_000, 90_000])
            sent_at = acked_at - timedelta(seconds=held_back) - S / 4
            message_id = f"{one.shard_id[-3:]}-{self.now:%d%H%M%S}-{n}"
            made.append((acked_at, one.shard_id, message_id, sent_at))
            if chance.random() < 0.15:
                made.append(self._again(one, made[-1]))
        return made

    def _again(self, one: Shard, first: Attempt) -> Attempt:
        """The message sent once more, mostly stamped anew, at times to the next shard."""
        acked_at, _, message_id, sent_at = first
        later = acked_at + timedelta(seconds=self.random.choice([1, 30, 660, 1500]))
        names = list(self.shards)
        beside = names[(names.index(one.shard_id) + 1) % len(names)]
        # What was stamped over a day apart counts twice, by the rules.
        is_anew = self.random.random() < 0.7 and later - sent_at < 23 * HOUR
        where = self.random.choice([one.shard_id, beside])
        return later, where, message_id, later - S / 4 if is_anew else sent_at

    def _acknowledge(
        self, acked_at: datetime, shard_id: str, message_id: str, sent_at: datetime
    ) -> None:
        number = len(self.shards[shard_id].messages) + 1
        message = Message(message_id, shard_id, number, sent_at, acked_at)
        self.shards[shard_id].messages.append(message)
        self.attempts[message_id].append(message)
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
                lacks = chance.choice([None] * 37 + ["sent_at", "shard_id", "landed_at"])
                self.to_land.append(self.land(message, lacks=lacks))
        one.position = upto
