"""What is to be read of a shard, what came of it, and the records in it.

A decoder of our own for one message of three fields: the workers of a cluster then need no
protobuf, whose generated classes would bind us to its version; a test holds it to that library.
*Source*: aggregation-format.md of amazon-kinesis-producer: magic bytes, a protobuf
`AggregatedRecord`, the MD5 of that message.

    message AggregatedRecord { repeated string partition_key_table = 1;
                               repeated string explicit_hash_key_table = 2;
                               repeated Record records = 3; }
    message Record { uint64 partition_key_index = 1; optional uint64 explicit_hash_key_index = 2;
                     bytes data = 3; repeated Tag tags = 4; }
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from shardaudit.model.stream_page import Start, StoredRecord, StreamPage

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES = 16
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types
_KEYS, _RECORDS = 1, 3  # fields of AggregatedRecord
_KEY_INDEX, _DATA = 1, 3  # fields of Record

KeyAndContent = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What to read: between two sequence numbers (inclusive) where they are known, else by arrival.

    `horizon`: what arrived before it is older than the retention. `is_expected`: acknowledged
    messages are known to have arrived in the window.
    """

    window_id: str
    shard_id: str
    start: datetime
    end: datetime
    horizon: datetime
    start_sequence: str | None = None
    end_sequence: str | None = None
    is_expected: bool = False


class ShardClient(Protocol):
    """What reading needs of Kinesis."""

    def iterator(self, shard_id: str, start: Start) -> str:
        """A shard iterator.

        Raises:
            PlaceGoneError: the shard or the sequence number is not there.
            ThrottledError: ask again later.
        """

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        """What GetRecords brings.

        Raises:
            IteratorExpiredError: the iterator is too old.
            ThrottledError: ask again later.
        """

    def beside(self) -> "ShardClient":
        """A client for a question while this one is in the middle of a shard."""


class UserRecord(NamedTuple):
    """One record as its producer put it; `sub_sequence` tells those of an aggregate apart."""

    sequence_number: str
    sub_sequence: int
    partition_key: str
    arrived_at: datetime
    content: bytes


@dataclass(slots=True)
class ReadOutcome:
    """What came of it. Unless `is_complete`, a part was not read, and `error` says why.

    `begins_at`: when the oldest record arrived that the shard still has, at most the window's end;
    None when that is not later than what is wanted. `expired_from` and `expired_to` say what of the
    window left the stream: what lies before `begins_at`, where something is known to have been.
    """

    window_id: str
    records: int = 0
    calls: int = 0
    size_bytes: int = 0
    expired_from: datetime | None = None
    expired_to: datetime | None = None
    begins_at: datetime | None = None
    is_complete: bool = False
    error: str | None = None


@dataclass
class OldestRecord:
    """The oldest record of a shard, as it was when first asked for; None when there was none.

    Later there may be less: what went since then looks as if it had never been, and its window is
    left to the next run.
    """

    record: StoredRecord | None = None
    is_known: bool = False

    def once(self, ask: Callable[[], StoredRecord | None]) -> StoredRecord | None:
        """What came of asking for the first time."""
        if not self.is_known:
            self.record, self.is_known = ask(), True
        return self.record


def users_of(record: StoredRecord) -> list[UserRecord]:
    """The records that users put, one unless it is an aggregate, with their place and arrival."""
    number, partition_key, arrived_at, content = record
    if not content.startswith(MAGIC):  # nearly all: this is the inner loop
        return [UserRecord(number, 0, partition_key, arrived_at, content)]
    return [
        UserRecord(number, sub_sequence, key, arrived_at, inner)
        for sub_sequence, (key, inner) in enumerate(user_records(partition_key, content))
    ]


def user_records(partition_key: str, content: bytes) -> list[KeyAndContent]:
    """The (partition key, content) of each user record: one, unless it is an aggregate.

    What has the magic bytes and not the digest is a user's own record, as in Amazon's libraries.
    No record is left out because its hash key lies outside the shard: the audit wants all of them.
    """
    message, digest = content[len(MAGIC) : -_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    # MD5 is what the format says; it guards against chance, not against people.
    is_aggregate = (
        content.startswith(MAGIC)
        and len(content) >= len(MAGIC) + _DIGEST_BYTES
        and hashlib.md5(message, usedforsecurity=False).digest() == digest
    )
    if not is_aggregate:
        return [(partition_key, content)]
    try:
        return list(_aggregated(message))
    except (IndexError, UnicodeDecodeError):  # the digest fits and the message is none
        return [(partition_key, content)]


def _aggregated(message: bytes) -> Iterator[KeyAndContent]:
    keys, records = [], []
    for number, value in _fields(message):
        if number == _KEYS and isinstance(value, bytes):
            keys.append(value.decode())
        elif number == _RECORDS and isinstance(value, bytes):
            records.append(value)
    for record in records:
        inner = dict(_fields(record))
        index, content = inner.get(_KEY_INDEX, 0), inner.get(_DATA, b"")
        if isinstance(index, bytes) or isinstance(content, int):
            raise IndexError
        yield keys[index], content


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) as they stand in a protobuf message."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield tag >> 3, value
            continue
        if kind == _LENGTH:
            size, place = _varint(message, place)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise IndexError
        if place + size > len(message):
            raise IndexError
        yield tag >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return value, place
