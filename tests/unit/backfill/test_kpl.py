"""Aggregates of the KPL, written by Google's protobuf and read by our decoder."""

import hashlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.backfill.rules.reading import MAGIC, user_records

_FIELDS = {
    "Tag": [("key", 1, 9, 2, ""), ("value", 2, 9, 1, "")],
    "Record": [
        ("partition_key_index", 1, 4, 2, ""),
        ("explicit_hash_key_index", 2, 4, 1, ""),
        ("data", 3, 12, 2, ""),
        ("tags", 4, 11, 3, ".kpl.Tag"),
    ],
    "AggregatedRecord": [
        ("partition_key_table", 1, 9, 3, ""),
        ("explicit_hash_key_table", 2, 9, 3, ""),
        ("records", 3, 11, 3, ".kpl.Record"),
    ],
}


def _message() -> Any:  # Any: a class made at run time
    file = descriptor_pb2.FileDescriptorProto(name="kpl.proto", package="kpl", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if of:
                added.type_name = of
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("kpl.AggregatedRecord"))


AGGREGATE = _message()


def aggregate(records: list[tuple[str, bytes]], *, hash_keys: bool = False) -> bytes:
    message = AGGREGATE()
    keys = sorted({key for key, _ in records})
    message.partition_key_table.extend(keys)
    if hash_keys:
        message.explicit_hash_key_table.append("5")
    for key, content in records:
        one = message.records.add(partition_key_index=keys.index(key), data=content)
        if hash_keys:
            one.explicit_hash_key_index = 0
            one.tags.add(key="k", value="v")
    return framed(message.SerializeToString())


def framed(body: bytes) -> bytes:
    return bytes(MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest())


def test_record_that_names_no_key_or_no_data_has_the_first_key_and_none() -> None:
    """So a protobuf reader fills what was left out."""
    message = AGGREGATE()
    message.partition_key_table.extend(["a", "b"])
    message.records.add(data=b"content")
    message.records.add(partition_key_index=1)
    content = framed(message.SerializePartialToString())
    assert user_records("outer", content) == [("a", b"content"), ("b", b"")]


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=5), st.binary(max_size=400)), max_size=200),
    st.booleans(),
)
def test_every_user_record_comes_out_in_its_order(
    records: list[tuple[str, bytes]], hash_keys: bool
) -> None:
    assert user_records("outer", aggregate(records, hash_keys=hash_keys)) == records


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        MAGIC,
        MAGIC + b"short",
        aggregate([("a", b"1")])[:-1] + b"x",
        MAGIC + b"\x0f\xff" + hashlib.md5(b"\x0f\xff", usedforsecurity=False).digest(),
        MAGIC + b"\x1a\x7f" + hashlib.md5(b"\x1a\x7f", usedforsecurity=False).digest(),
    ],
)
def test_what_is_no_aggregate_stays_as_it_is(content: bytes) -> None:
    assert user_records("key", content) == [("key", content)]


@given(st.binary(max_size=60))
def test_no_content_makes_it_fail(body: bytes) -> None:
    content = MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()
    assert user_records("key", content) is not None
