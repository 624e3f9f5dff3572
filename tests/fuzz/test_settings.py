"""Configurations, as hostile as they come: settings, or one sentence for a person."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import ConfigError
from shardaudit.report.plain import harmless
from tests.fuzz.hostile import BOUNDED, TEXT

WHOLE = """\
warehouse = "lake"
expectations = "suites"
engine = "embedded"
[aws]
region = "eu-central-1"
endpoint_url = "http://127.0.0.1:4566"
endpoints = { s3 = "http://127.0.0.1:9000" }
[spark]
"spark.driver.memory" = "2g"
[embedded]
memory = "1GiB"
shared_machine = true
[notify]
slack = "slack_default"
http = "http_default"
[streams.events]
stream_name = "events"
retention = "168h"
bucket = "60s"
settle_grace = "10m"
sample_rate = 0.5
tolerance = 0.01
traces = { path = "logs", format = "json", columns = { message_id = "id" } }
sink = { path = "s3a://bucket/sink", format = "parquet", columns = { sent_at = "at" } }
positions = { source = "kcl", table = "leases" }
[streams.events.backfill]
mode = "append"
read_share = 0.5
approve = "always"
"""
_TOML: st.SearchStrategy[object] = st.recursive(
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | TEXT
    | st.datetimes()
    | st.sampled_from(["10m", "0s", "999999999d", "1GiB", "0B", "file:///x", "s3a://", "http://a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)


def _paths(table: Mapping[str, object], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where a value stands in the tables."""
    found: list[tuple[str, ...]] = []
    for key, value in table.items():
        found.append((*above, key))
        if isinstance(value, dict):
            found += _paths(value, (*above, key))
    return found


PATHS = _paths(tomllib.loads(WHOLE))


def _text(value: object) -> str:
    """The value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{_key(k)} = {_text(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case str():
            return _key(value)
        case int() | float():
            return repr(value)
    return str(value)


def _key(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return escaped.encode(errors="replace").decode()


@st.composite
def changed(draw: st.DrawFn) -> str:
    """The configuration with some of its values replaced, added or taken away."""
    whole = tomllib.loads(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        *above, key = draw(st.sampled_from(PATHS))
        table: object = whole
        for name in above:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict):
            action = draw(st.sampled_from(["replace", "take", "add"]))
            if action == "take":
                table.pop(key, None)
            else:
                table[key if action == "replace" else draw(TEXT)] = draw(_TOML)
    return "\n".join(f"{_key(name)} = {_text(value)}" for name, value in whole.items())


@st.composite
def torn(draw: st.DrawFn) -> bytes:
    """The configuration with some bytes replaced."""
    content = bytearray(WHOLE.encode())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 6))] = draw(st.binary(max_size=6))
    return bytes(content)


_NESTED = st.sampled_from([b"a = " + b"[" * 5000, b"a = " + b"{ b = " * 5000, b"\xff", b"\0"])


@BOUNDED
@given(content=changed().map(str.encode) | torn() | _NESTED)
def test_a_configuration_is_read_or_refused_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "shardaudit.toml"
    file.write_bytes(content)
    try:
        load_settings(file)
    except ConfigError as error:
        assert str(file) in str(error)
        assert len(harmless(str(error))) < 50_000


def test_the_configuration_that_is_changed_is_a_good_one(tmp_path: Path) -> None:
    file = tmp_path / "shardaudit.toml"
    file.write_text(WHOLE)
    assert load_settings(file).streams.keys() == {"events"}
    with pytest.raises(ConfigError):
        load_settings(tmp_path / "nothing.toml")
