"""Whatever reads a payload, the answer is that of Python's json, for every payload."""

import json
from typing import Any  # of JSON

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.producer.payload_keys import ABSENT, PayloadKeys

KEYS = ("message_id", "sent_at", "meta", "", 'a"b')
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=2) | st.sampled_from(KEYS), inner, max_size=2)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), VALUES, max_size=5)
# Pieces that mean something in JSON, or nothing in UTF-8.
PIECES = st.sampled_from(
    [*b'{}[]",:\\ \n\x0b\x00-+.eE0N/u', *map(ord, "tfn'"), 0xFF, 0xC3, 0xED, 0x7F]
).map(lambda one: bytes([one])) | st.sampled_from(
    [b"NaN", b"1e999", b'"message_id":1,', b"\\ud800", b"\\u0061", b"\xef\xbb\xbf", b"\xed\xa0\x80"]
)
CUTS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2), PIECES), max_size=3)


def by_json(content: bytes | str, keys: tuple[str, ...]) -> list[object]:
    try:
        payload = json.loads(content if isinstance(content, str) else content.decode())
    except (ValueError, RecursionError):
        return []
    return [payload.get(key, ABSENT) for key in keys] if isinstance(payload, dict) else []


def read(content: bytes | str, keys: tuple[str, ...]) -> list[object]:
    try:
        return [*PayloadKeys(keys).held(content)]
    except (ValueError, RecursionError):
        return []


@given(OBJECTS, CUTS, st.booleans(), st.booleans(), st.sampled_from([KEYS, KEYS[:2], KEYS[3:]]))
def test_keys_hold_what_json_says(
    payload: dict[str, Any],
    cuts: list[tuple[int, int, bytes]],
    as_text: bool,
    is_ascii: bool,
    keys: tuple[str, ...],
) -> None:
    content = json.dumps(payload, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    for at, removed, piece in cuts:
        content = content[:at] + piece + content[at + removed :]
    taken = content.decode(errors="surrogateescape") if as_text else content
    # By their text: NaN is not equal to itself, and 1 is to 1.0.
    assert repr(read(taken, keys)) == repr(by_json(taken, keys))


@pytest.mark.parametrize(
    "content",
    [
        b'{"x":"\xff"}',
        b'{"x\xff":1}',
        b'{"x":"\\u12G4"}',
        b'{"x":"\\q"}',
        b'{"x":"a\nb"}',
        b'{"x":01}',
        b'{"x":1.}',
        b'{"x":[1,]}',
        b'{"x":1}x',
        b"\xef\xbb\xbf{}",
        b'{"\\u006dessage_id":5}',
        b'{"message_id":1,"message_id":2}',
        b'{"message_id":123456789012345678901234567890}',
        b'{"message_id":"\\ud800"}',
        b'{"message_id":1e400,"x":Infinity}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_odd_payloads_hold_what_json_says(content: bytes) -> None:
    assert repr(read(content, KEYS[:2])) == repr(by_json(content, KEYS[:2]))
