"""What bites: values, lines and files that are valid for somebody and hostile for others."""

import gzip
import json
import os
from typing import Any

import zstandard
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from shardaudit.model.input_columns import TRACE_COLUMNS
from tests.builders import trace_line

# How many cases each test tries; `make fuzz` asks for many more than `make test`.
CASES = int(os.environ.get("SHARDAUDIT_CASES", "60"))
BOUNDED = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    derandomize=CASES < 1000,
)

TEXTS = [
    "",
    "\0",
    "a\0b",
    "=cmd()",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "+1",
    "-1",
    "\t=1",
    "\ufeff=1",
    "\uff1dcmd()",
    "\u202egpj.exe",
    "\u2066x\u2069",
    "\u200f\u061c",
    "\x1b[2J\x1b]0;x\x07",
    "\x9b31m",
    "a\r\nb",
    "a\u2028b\u2029c\x85d",
    "a\vb\fc\x1cd\x1de\x1ef",
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "{{7*7}}{% raw %}",
    "%s%n%(x)s{0.__class__}",
    "[red]x[/red]",
    "<!channel> <https://x|y>",
    "`x` $(x) ; rm",
    "../../etc/passwd",
    "--config=/x",
    "\U0001f600" * 50,
    "\ufdd0\uffff",
    "e\u0301" * 20,
    "_sa_x",
    "shardaudit-canary/x",
    "NaN",
    "1e999",
    "9" * 5000,
    "2026-11-20T12:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30T00:00:00Z",
    "٢٠٢٦-11-20T12:00:00Z",
]
TEXT = st.sampled_from(TEXTS) | st.text(max_size=8)
_NUMBERS = [0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, 10**14, 1e300]
NUMBER = st.sampled_from(_NUMBERS) | st.integers() | st.floats(allow_nan=False)
Json = Any  # whatever JSON holds


def _deep(levels: int, inner: Json) -> Json:
    for _ in range(levels):
        inner = {"a": inner} if levels % 2 else [inner]
    return inner


DEEP = st.builds(_deep, st.sampled_from([3, 99, 100, 101, 253, 254, 255, 400]), NUMBER)
VALUE: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT | DEEP,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
# As they are written: what no writer of JSON would make.
_RAW_VALUES = [
    *("NaN", "-Infinity", "1e999", "-1e-999", "9" * 5000, "0." + "9" * 5000, "1E+00000400", "-0"),
    *(r'"\ud800"', r'"\udc00\ud800"', r'"\u0000"', '"\0"', "'x'", "01", "1.", "tru", '"\\x"'),
    *("[" * 3000 + "]" * 3000, '{"a":' * 1500 + "1" + "}" * 1500, '{"a":1,"a":2}'),
]
_MANY_KEYS = "{" + ",".join(f'"k{i}":{i}' for i in range(50_000)) + "}"
_RAW_VALUE = st.integers(0, 400).flatmap(
    lambda n: st.just(_MANY_KEYS) if n == 400 else st.sampled_from(_RAW_VALUES)
)
_KEYS = st.sampled_from([*TRACE_COLUMNS, "message_id", "attributes", "other", "_sa_x"])


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A trace in which some values were replaced by what is not JSON, or hardly."""
    fields: dict[str, str] = {key: json.dumps(value) for key, value in trace_line(5).items()}
    for key in draw(st.lists(_KEYS, max_size=3)):
        fields[key] = draw(_RAW_VALUE | VALUE.map(json.dumps))
    pairs = [f"{json.dumps(key)}:{value}" for key, value in fields.items()]
    if draw(st.booleans()):
        pairs.append(draw(st.sampled_from(pairs)))  # a doubled key
    return ("{" + ",".join(pairs) + "}").encode("utf-8", "surrogatepass")


@st.composite
def torn(draw: st.DrawFn) -> bytes:
    """A line with some of its bytes replaced, dropped or doubled; it stays one line."""
    line = bytearray(draw(written()))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(line)))
        size = draw(st.integers(0, 4))
        line[at : at + size] = draw(st.binary(max_size=4))
    return bytes(line).replace(b"\n", b"\xff")


OBJECT = st.fixed_dictionaries({}, optional={name: VALUE for name in TRACE_COLUMNS})
LINE: st.SearchStrategy[bytes] = st.one_of(
    written(),
    torn(),
    OBJECT.map(lambda value: json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")),
    st.binary(max_size=40).map(lambda some: some.replace(b"\n", b"")),
    st.sampled_from([b"", b" \t\r", b"[]", b"null", b"\xef\xbb\xbf{}", b"\0" * 100, b"\xff\xfe"]),
)


def _in_two(pack: Any, content: bytes, at: int) -> bytes:  # Any: a function of bytes
    return bytes(pack(content[:at]) + pack(content[at:]))


@st.composite
def packed(draw: st.DrawFn, content: bytes) -> bytes:
    """The content, whole, as somebody may have packed it: a good line in it must be found."""
    at = draw(st.integers(0, len(content)))
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00size"  # as pzstd writes before each frame
    ways = [
        lambda: content,
        lambda: b"\xef\xbb\xbf" + content,
        lambda: gzip.compress(content, 1),
        lambda: _in_two(gzip.compress, content, at),
        lambda: gzip.compress(b"") + gzip.compress(content, 1) + b"\0" * 512,
        lambda: zstandard.compress(content),
        lambda: _in_two(zstandard.compress, content, at),
        lambda: skippable + zstandard.compress(content),
        lambda: _in_two(lambda part: skippable + zstandard.compress(part), content, at),
    ]
    return draw(st.sampled_from(ways))()
