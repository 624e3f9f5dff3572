"""Where a message's id and time are taken from, and how they are added to a payload."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple  # Any: of JSON

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.input_columns import CANARY
from shardaudit.producer.message_fields import FieldSource, MessageFields
from shardaudit.producer.prepared_records import PutRecord

NO_OBJECT = "the payload is no JSON object"
NO_ID = "the message id is missing, or no text"
NO_TIME = "sent_at is missing, or no time with a zone"
NO_TIME_OF_ISO = "is not an ISO 8601 time with a zone, nor epoch milliseconds"
TOO_LATE = "sent_at is over a day ahead"
OWN = f"begins with {CANARY}, which is shardaudit's own"
TOO_LONG = "message_id is longer than 1024 bytes"
NOW = "2026-11-24T12:00:01.000Z"
AT = "2026-11-24T12:00:00Z"
KEYS = st.text(max_size=4).filter(lambda key: key not in ("message_id", "sent_at"))
OBJECTS = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    ),
    max_size=3,
)


PAYLOADS = [
    *('{"a":1}', "{}", '{ "a":1}', '{"message_id":"m"}', '{"sent_at":"2026"}', '{"a":"\\ud800"}'),
    *('{"message_id":"m","sent_at":"t"}', '{"message_id":"é","sent_at":7}', '{"message_id":7}'),
    *(f'{{"message_id":"{"é" * 512}"}}', f'{{"message_id":"{"é" * 513}"}}'),
    *('{"message_id":""}', '{"message_id":null,"sent_at":"t"}', '{"sent_at":1.5}', "[]"),
]


class Found(NamedTuple):
    record: PutRecord
    message_id: str
    sent_at: str | int
    fault: str | None


def prepared(fields: MessageFields, record: PutRecord) -> Found:
    """The only record, and what is found in it."""
    [put], [message_id], [sent_at], _, faults = fields.prepared([record], NOW)
    return Found(put, message_id, sent_at, faults.get(0))


@given(OBJECTS, st.sampled_from(["", " \n"]), st.booleans())
def test_both_are_added_and_all_else_stays_when_a_payload_has_neither(
    payload: dict[str, Any], blank: str, as_text: bool
) -> None:
    text = blank + json.dumps(payload, ensure_ascii=False)
    record = {"Data": text if as_text else text.encode(), "PartitionKey": "k"}
    before = dict(record)
    found = prepared(MessageFields(), record)
    assert found.fault is None
    content = found.record["Data"]
    assert type(content) is type(record["Data"])
    put = json.loads(content)
    assert put == payload | {"message_id": found.message_id, "sent_at": found.sent_at}
    assert found.record["PartitionKey"] == "k"
    assert record == before
    assert found.sent_at == NOW


@pytest.mark.parametrize("text", ["{}", "{ \n}", "\t{\r}", ' { "a":1}', '{\n"}":1}', '{"{":1}'])
@pytest.mark.parametrize("kind", [str, str.encode, lambda text: bytearray(text.encode())])
def test_payload_stays_one_object_when_it_has_blanks(text: str, kind: Callable[..., Any]) -> None:
    found = prepared(MessageFields(), {"Data": kind(text)})
    added = {"message_id": found.message_id, "sent_at": NOW}
    assert json.loads(found.record["Data"]) == json.loads(text) | added


@given(st.lists(st.sampled_from(PAYLOADS), min_size=1, max_size=3), st.sampled_from([str, bytes]))
def test_call_is_prepared_as_its_records_are_one_by_one(
    payloads: list[str], kind: type[str] | type[bytes]
) -> None:
    contents = [one if kind is str else one.encode() for one in payloads]
    records: list[PutRecord] = [{"Data": content, "PartitionKey": "k"} for content in contents]
    told = []
    for call in (records, [*records, {"Data": None}]):
        put, ids, times, _, faults = MessageFields().prepared(call, NOW)
        faults.pop(len(records), None)
        shown = str(([column[: len(records)] for column in (put, ids, times)], faults))
        told.append(re.sub("[0-9a-f]{32}", "new", shown))
    assert told[0] == told[1]


def test_ids_of_calls_are_each_another() -> None:
    fields = MessageFields()
    ids = [
        one for _ in range(3) for one in fields.prepared([{"Data": "{}"}] * 300, NOW).message_ids
    ]
    assert (len(set(ids)), {len(one) for one in ids}) == (900, {32})


def test_what_is_there_stays_when_only_one_is_added() -> None:
    record = {"Data": b'{"message_id": 17, "price": 1.50}'}
    found = prepared(MessageFields(), record)
    assert found.message_id == "17"
    rest = b'"message_id": 17, "price": 1.50}'
    assert found.record["Data"] == b'{"sent_at":"%s",' % str(found.sent_at).encode() + rest


@pytest.mark.parametrize(
    ("message_id", "sent_at", "expected"),
    [
        ("meta.id", "meta.at", ("a", AT)),
        ("number", "ms", ("7", 1795183200000)),
        (lambda record: record["PartitionKey"], "ms", ("key", 1795183200000)),
        (
            "meta.id",
            lambda _: datetime(2026, 11, 24, tzinfo=UTC),
            ("a", "2026-11-24T00:00:00+00:00"),
        ),
    ],
)
def test_they_are_taken_from_where_the_caller_says(
    message_id: FieldSource, sent_at: FieldSource, expected: tuple[str, object]
) -> None:
    payload = {"meta": {"id": "a", "at": AT}, "number": 7, "ms": 1795183200000}
    record = {"Data": json.dumps(payload), "PartitionKey": "key"}
    found = prepared(MessageFields(message_id, sent_at), record)
    assert (found.message_id, found.sent_at) == expected
    assert found.record is record


def test_payload_is_not_read_when_both_are_functions() -> None:
    record = {"Data": b"\x00\xff", "PartitionKey": "key"}
    found = prepared(MessageFields(lambda r: r["PartitionKey"], lambda _: AT), record)
    assert (found.message_id, found.fault) == ("key", None)


@pytest.mark.parametrize(
    ("data", "message_id", "sent_at", "fault"),
    [
        (b"no json", None, None, NO_OBJECT),
        (b"[1]", None, None, NO_OBJECT),
        (b"\xff\xfe", "id", "at", NO_OBJECT),
        (17, None, None, "the record could not be read: AttributeError"),
        ('{"a": 1}'.encode("utf-16"), None, None, NO_OBJECT),
        (b'{"message_id": null}', None, None, NO_ID),
        (b"{}", "meta.id", None, NO_ID),
        (b'{"meta": 1}', "meta.id", None, NO_ID),
        (b'{"id": 1.5}', "id", None, NO_ID),
        (b'{"id": true}', "id", None, NO_ID),
        (b'{"id": "a"}', "id", "at", NO_TIME),
        (b'{"id": "a"}', "id", lambda _: datetime(2026, 1, 1), NO_TIME),  # noqa: DTZ001 - the fault
        (b'{"message_id": ""}', None, None, NO_ID),
        (b'{"sent_at": "", "message_id": "a"}', None, None, NO_TIME),
        (b'{"message_id": "%s"}' % (b"a" * 1025), None, None, TOO_LONG),
        ('{"message_id": "%s"}' % ("é" * 513), None, None, TOO_LONG),
        (b'{"id": "a"}', "id", lambda _: "2026-11-24T12:00:00", f"sent_at {NO_TIME_OF_ISO}"),
        (b'{"message_id": "a", "sent_at": 1795183200}', None, None, "sent_at is before 2000"),
        (b'{"message_id": "a", "sent_at": 1795183200000000}', None, None, TOO_LATE),
        (f'{{"message_id": "{CANARY}x"}}', None, None, f"message_id {OWN}"),
        (b'{"message_id": "\\ud83d"}', None, None, "message_id holds half of a surrogate pair"),
        (b"{}", lambda r: r["no such key"], AT, "the record could not be read: KeyError"),
    ],
)
def test_record_goes_as_it_is_when_it_cannot_be_traced(
    data: object, message_id: FieldSource, sent_at: FieldSource, fault: str
) -> None:
    record = {"Data": data, "PartitionKey": "k"}
    found = prepared(MessageFields(message_id, sent_at), record)
    assert found.record is record
    assert found.fault == fault


@pytest.mark.parametrize("held", [{"a": 1}, {"message_id": "a"}])
def test_time_of_a_clock_that_was_not_set_yet_is_not_added(held: dict[str, object]) -> None:
    """However many are put at once, and alike."""
    records = [{"Data": json.dumps(held).encode()} for _ in range(3)]
    prepared = MessageFields().prepared(records, "1970-01-01T00:05:00.000Z")
    assert (prepared.records, {*prepared.faults.values()}) == (records, {"sent_at is before 2000"})
