"""The one parser of trace lines: what is refused and why, and what the fields of the others are."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.input_columns import TRACE_COLUMNS
from shardaudit.model.trace_line import Fields, attributes_in, read_object, trace_fields
from tests.builders import sequence, trace_line

COLUMNS = {name: name for name in TRACE_COLUMNS}
GOOD = json.dumps(trace_line())
NOT_JSON = "the line is not JSON"
NO_OBJECT = "the line is not a JSON object"
HALF = "the line holds half of a surrogate pair"
RESERVED = "a key begins with _sa_, which is reserved"
NO_ID = "message_id is neither a text nor a whole number"
NO_TEXT = "sequence_number is not a text: as a JSON number it may have lost digits"
TOO_DEEP = "a value is nested too deep"

Json = Any  # what the tests put into a line is any of JSON's values


def fields(line: str | bytes, **mapped: str) -> Fields:
    """What the parser makes of a line."""
    raw = line if isinstance(line, bytes) else line.encode()
    trace, fault = read_object(raw)
    found = trace_fields(trace, raw, COLUMNS | mapped)
    return found._replace(fault=fault or found.fault)


def extended(more: str) -> str:
    """A good line with more behind its last field."""
    return f"{GOOD[:-1]}, {more}}}"


def field(name: str, literal: str) -> Json:
    """The field that a literal becomes."""
    found = fields(extended(f'"{name}": {literal}'))
    assert found.fault is None, name
    return found.attributes if name == "attributes" else found.values[name]


REFUSED: list[tuple[str, str | bytes, str]] = [
    ("nothing", "", NOT_JSON),
    ("text", "hello", NOT_JSON),
    ("cut object", GOOD[:-1], NOT_JSON),
    ("cut in a text", '{"message_id": "x', NOT_JSON),
    ("garbage behind", GOOD + "]", NOT_JSON),
    ("comma behind", GOOD + ",", NOT_JSON),
    ("two objects", GOOD + GOOD, NOT_JSON),
    ("trailing comma", extended("").replace(", }", ",}"), NOT_JSON),
    ("single quotes", "{'message_id': 'x'}", NOT_JSON),
    ("bare key", '{message_id: "x"}', NOT_JSON),
    ("comment", extended('"v": 1 /* c */'), NOT_JSON),
    ("NaN", extended('"v": NaN'), NOT_JSON),
    ("-Infinity", extended('"v": -Infinity'), NOT_JSON),
    ("leading zero", extended('"v": 01'), NOT_JSON),
    ("plus", extended('"v": +1'), NOT_JSON),
    ("no digit behind the dot", extended('"v": 1.'), NOT_JSON),
    ("True", extended('"v": True'), NOT_JSON),
    ("unknown escape", extended(r'"v": "\x41"'), NOT_JSON),
    ("short escape", extended(r'"v": "\u12"'), NOT_JSON),
    ("capital escape", extended(r'"v": "\U0001F600"'), NOT_JSON),
    ("NUL behind", GOOD + "\0", NOT_JSON),
    ("NUL in a text", extended('"v": "\0"'), NOT_JSON),
    ("tab in a text", extended('"v": "\t"'), NOT_JSON),
    ("last control character", extended('"v": "\x1f"'), NOT_JSON),
    ("byte order mark", "\ufeff" + GOOD, NOT_JSON),
    ("form feed before", "\f" + GOOD, NOT_JSON),
    ("no-break space before", "\u00a0" + GOOD, NOT_JSON),
    ("line separator behind", GOOD + "\u2028", NOT_JSON),
    ("nested 1,025 deep", extended('"v": ' + "[" * 1025 + "]" * 1025), NOT_JSON),
    ("nested 10,000 deep", extended('"v": ' + '{"a":' * 10_000 + "1" + "}" * 10_000), NOT_JSON),
    ("opened a million times", "[" * 1_000_000, NOT_JSON),
    ("array", "[1, 2]", NO_OBJECT),
    ("array of an object", f"[{GOOD}]", NO_OBJECT),
    ("array and more", "[1] x", NOT_JSON),
    ("number", "12", NO_OBJECT),
    ("number beyond a double", "1e400", NO_OBJECT),
    ("null", "null", NO_OBJECT),
    ("text with quotes", '"message_id"', NO_OBJECT),
    ("half a pair, no object", r'"\ud83d"', NO_OBJECT),
    ("not UTF-8", b'{"message_id": "\xff"}', "the line is not UTF-8"),
    ("surrogate as UTF-8", b'{"message_id": "\xed\xa0\xbd"}', "the line is not UTF-8"),
    ("beyond Unicode", b'{"message_id": "\xf4\x90\x80\x80"}', "the line is not UTF-8"),
    ("first half", r'{"message_id": "\ud83d"}', HALF),
    ("other half", r'{"message_id": "x\uDE00"}', HALF),
    ("halves reversed", extended(r'"v": "\ude00\ud83d"'), HALF),
    ("first half twice", extended(r'"v": "\ud83d\ud83d\ude00"'), HALF),
    ("halves apart", extended(r'"v": "\ud83d \ude00"'), HALF),
    ("half in a key", extended(r'"\ud83d": 1'), HALF),
    ("half further within", extended(r'"v": [{"a": "\\\ud83d"}]'), HALF),
    ("half and no JSON", r'{"message_id": "\ud83d"', NOT_JSON),
    ("ours", extended('"_sa_x": 1'), RESERVED),
    ("ours, escaped", extended(r'"\u005fsa_x": 1'), RESERVED),
    ("ours and half a pair", extended(r'"_sa_x": "\ud83d"'), RESERVED),
    ("true as id", extended('"message_id": true'), NO_ID),
    ("fraction as id", extended('"message_id": 1.5'), NO_ID),
    ("1.0 as id", extended('"message_id": 1.0'), NO_ID),
    ("1e3 as id", extended('"message_id": 1e3'), NO_ID),
    ("1e400 as id", extended('"message_id": 1e400'), NO_ID),
    ("23 digits as id", extended('"message_id": 12345678901234567890123'), NO_ID),
    ("5,000 digits as id", extended('"message_id": ' + "1" * 5000), NO_ID),
    ("just no bigint as id", extended('"message_id": 9223372036854775808'), NO_ID),
    ("just no bigint below", extended('"message_id": -9223372036854775809'), NO_ID),
    ("array as id", extended('"message_id": ["m"]'), NO_ID),
    ("object as id", extended('"message_id": {}'), NO_ID),
    ("number as sequence number", extended('"sequence_number": 5'), NO_TEXT),
    ("false as sequence number", extended('"sequence_number": false'), NO_TEXT),
    ("array as sequence number", extended('"sequence_number": []'), NO_TEXT),
    ("255 deep", extended('"session": ' + "[" * 255 + "]" * 255), TOO_DEEP),
    (
        "255 deep in attributes",
        extended('"attributes": {"a": ' + "[" * 255 + "]" * 255 + "}"),
        TOO_DEEP,
    ),
]


@pytest.mark.parametrize(("line", "reason"), [pytest.param(*r[1:], id=r[0]) for r in REFUSED])
def test_line_is_refused_when_it_holds_no_trace(line: str | bytes, reason: str) -> None:
    found = fields(line)
    assert found.fault == reason
    assert {*found.values.values(), found.attributes, found.attributes_fault} == {None}


ACCEPTED = [
    ("as it is", GOOD),
    ("blanks around", f" \t{GOOD} \r"),
    ("carriage returns within", GOOD.replace(", ", ",\r")),
    ("key escaped", GOOD.replace("message_id", r"message\u005fid")),
    ("first of two is wrong", GOOD.replace('"m0"', '1.5, "message_id": "m0"')),
    ("unknown half, escaped", extended(r'"v": "\\ud83d"')),
    ("whole pair", extended(r'"v": "\ud83d\ude00"')),
    ("delete character", extended('"v": "\x7f"')),
    ("ours further within", extended('"v": {"_sa_x": 1}')),
    ("ours as value", extended('"v": "_sa_x"')),
    ("number beyond a double", extended('"v": 1e400')),
    ("long number", extended('"v": ' + "1" * 5000)),
    ("long fraction", extended('"v": 0.' + "1" * 5000)),
    ("long key", extended(f'"{"k" * 100_000}": 1')),
    ("8 MiB", extended(f'"v": "{"x" * 2**23}"')),
    ("nested 1,023 deep", extended('"v": ' + "[" * 1023 + "]" * 1023)),
]


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in ACCEPTED])
def test_trace_is_the_same_when_written_otherwise(line: str) -> None:
    assert fields(line) == fields(GOOD)
    assert fields(line).values["message_id"] == "m0"
    assert fields(line).values["sequence_number"] == sequence(0)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"x"', "x"),
        ('""', ""),
        (r'"\u0000"', "\0"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\ud83d"', r"\ud83d"),
        ("null", None),
        ("5", "5"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1.50", "1.5"),
        ("1e5", "100000.0"),
        ("1e-400", "0.0"),
        ("1e400", "1e400"),
        ("0.1234567890123456789", "0.12345678901234568"),
        ("true", "true"),
        ('[1, 2.50, "\\u00e9\\n\\/", null]', '[1,2.5,"é\\n/",null]'),
        ('{"a": {"b": 12345678901234567890123}}', '{"a":{"b":12345678901234567890123}}'),
        ('{"a": 1, "a": [1e400]}', '{"a":[1e400]}'),
    ],
)
def test_value_arrives_as_text_when_of_any_kind(literal: str, text: str | None) -> None:
    assert field("session", literal) == text
    assert field("attributes", f'{{"a.b": {literal}}}') == {"a.b": text}
    assert field("attributes", json.dumps(f'{{"a.b": {literal}}}')) == {"a.b": text}


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_whole_number_is_an_id_when_it_fits_a_bigint(number: int) -> None:
    assert field("message_id", str(number)) == str(number)


@pytest.mark.parametrize(
    ("literal", "time"),
    [
        ('"2026-11-20T12:00:00Z"', "2026-11-20T12:00:00Z"),
        ("1732060800000", 1732060800000),
        ("-1", -1),
        ("1732060800000.5", "1732060800000.5"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("true", "true"),
        ("null", None),
    ],
)
def test_time_is_a_text_or_milliseconds_when_given(literal: str, time: str | int | None) -> None:
    assert field("sent_at", literal) == time


@pytest.mark.parametrize(
    "literal",
    [
        '"x"',
        '""',
        '"null"',
        '"[{}]"',
        '"{} x"',
        "\"{'a': 1}\"",
        r'"{\"a\": \"\\ud83d\"}"',
        json.dumps('{"a":' + "[" * 300 + "]" * 300 + "}"),
        "true",
        "5",
        "1e400",
        "[]",
    ],
)
def test_attributes_are_told_wrong_and_the_rest_kept_when_they_are_no_object(literal: str) -> None:
    found = fields(extended(f'"attributes": {literal}'))
    assert (found.fault, found.values["message_id"]) == (None, "m0")
    assert (found.attributes, found.attributes_fault) == (None, "attributes is not an object")


def test_attributes_are_empty_when_the_object_is() -> None:
    assert field("attributes", "{}") == {}
    assert attributes_in(" {} ") == ({}, None)


def test_keys_are_taken_literally_when_mapped() -> None:
    odd = 'it\'s "t"'
    line = json.dumps(trace_line() | {"meta.id": "mapped", odd: "2026", "sent_at": "wrong"})
    mapped = {"message_id": "meta.id", "sent_at": odd, "acked_at": odd, "session": "message_id"}
    values = fields(line, **mapped).values
    assert [values[name] for name in mapped] == ["mapped", "2026", "2026", "m0"]


def test_nothing_is_given_when_the_object_is_empty() -> None:
    assert set(fields("{}").values.values()) == {None}
    assert fields("{}").fault is None


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.text().filter(lambda key: not key.startswith("_sa_"))


@given(st.dictionaries(KEYS, JSON), st.booleans(), st.sampled_from([None, 1]))
@pytest.mark.slow
def test_object_is_what_was_written_when_json_wrote_it(
    written: Mapping[str, Json], is_ascii: bool, indent: int | None
) -> None:
    line = json.dumps({"attributes": written}, ensure_ascii=is_ascii, indent=indent)
    found = fields(line.replace("\n", " "))
    assert found.fault is None
    assert found.attributes is not None
    assert found.attributes.keys() == written.keys()
    for key, text in found.attributes.items():
        if isinstance(written[key], str) or text is None:
            assert text == written[key]
        else:
            assert json.loads(text) == written[key]


def refused_constant(name: str) -> None:
    raise ValueError(name)


@given(st.text(alphabet='{}[]",:\\ud83e0159.+-_satrufln \t\r\0é😀\ufeff\u2028'))
def test_every_text_gets_one_answer_when_it_may_be_anything(text: str) -> None:
    found, fault = read_object(text.encode())
    try:
        expected = json.loads(text, parse_constant=refused_constant)
    except (ValueError, RecursionError):
        assert fault == NOT_JSON
        return
    assert (fault == NO_OBJECT) == (not isinstance(expected, dict))
    if fault is None:
        assert found.keys() == expected.keys()


ALIEN = "parent_ids is neither an id nor a list of ids"
PARENTS: list[tuple[str, str | None, str | None]] = [  # the JSON, the ids or why there are none
    ("null", None, None),
    ('"p"', '["p"]', None),
    ("7", '["7"]', None),
    ('["p","q","p"]', '["p","q"]', None),
    ('[7,"p"]', '["7","p"]', None),
    ("[]", None, None),
    ('""', None, ALIEN),
    ('["p",null]', None, ALIEN),
    ('["p",1.5]', None, ALIEN),
    ('{"id":"p"}', None, ALIEN),
    ("true", None, ALIEN),
    ('"m0"', None, "parent_ids names the message itself"),
    ('["p","m0"]', None, "parent_ids names the message itself"),
]


@pytest.mark.parametrize(("literal", "ids", "fault"), PARENTS)
def test_what_a_message_was_made_from_is_an_attribute(
    literal: str, ids: str | None, fault: str | None
) -> None:
    found = fields(extended(f'"parent_ids": {literal}, "attributes": {{"row": "1"}}'))
    assert found.attributes == {"row": "1"} | ({} if ids is None else {"parent_ids": ids})
    assert found.attributes_fault == fault


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ('"location": "producer"', None),
        ('"location": "writer"', "parent_ids at writer: the producer's traces alone have it"),
        ('"attributes": {"parent_ids": "x"}', "attributes has parent_ids of its own"),
    ],
)
def test_parents_are_of_the_producers_alone(more: str, fault: str | None) -> None:
    assert fields(extended(f'"parent_ids": "p", {more}')).attributes_fault == fault
