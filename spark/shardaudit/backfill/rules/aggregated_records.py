"""The records that users put, out of one of Kinesis: one, or those of an aggregate of the KPL.

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
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from shardaudit.model.get_records import StoredRecord

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES = 16
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types
_KEYS, _RECORDS = 1, 3  # fields of AggregatedRecord
_KEY_INDEX, _DATA = 1, 3  # fields of Record

KeyAndContent = tuple[str, bytes]


class UserRecord(NamedTuple):
    """One record as its producer put it; `sub_sequence` tells those of an aggregate apart."""

    sequence_number: str
    sub_sequence: int
    partition_key: str
    arrived_at: datetime
    content: bytes


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
