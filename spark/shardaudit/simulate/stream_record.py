"""A record on its way into a stream, and out of it again."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Put:
    """A record to be put. The hash key is decimal text and chooses the shard."""

    partition_key: str
    hash_key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Ack:
    """The stream's answer to a put: where the record is."""

    shard_id: str
    sequence_number: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was read."""

    shard_id: str
    sequence_number: str
    arrived_at: datetime
    content: bytes
