"""Aggregates of the KPL, written by Google's protobuf and read by our decoder."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.backfill.rules.aggregated_records import MAGIC, UserRecord, user_records, users_of
from shardaudit.model.get_records import StoredRecord
from tests.builders import T0
from tests.kpl import AGGREGATE, aggregate, framed


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


@pytest.mark.parametrize(
    ("content", "users"),
    [
        (b"", [(0, "outer", b"")]),
        (b"one", [(0, "outer", b"one")]),
        (MAGIC + b"short", [(0, "outer", MAGIC + b"short")]),
        (
            aggregate([("a", b"1"), ("b", b""), ("a", b"1")]),
            [(0, "a", b"1"), (1, "b", b""), (2, "a", b"1")],
        ),
        (aggregate([]), []),
    ],
)
def test_users_of_a_record_have_its_number_and_arrival_and_a_place_of_their_own(
    content: bytes, users: list[tuple[int, str, bytes]]
) -> None:
    found = users_of(StoredRecord("49", "outer", T0, content))
    assert found == [UserRecord("49", place, key, T0, one) for place, key, one in users]
