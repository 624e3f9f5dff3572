"""A line says what its trace does, whatever is in it, though few fields go through the encoder."""

import json
from collections.abc import Callable, Sized
from enum import Enum
from typing import Any  # of what no Kinesis answered

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.producer.packed_lines import UNFIT, PackedLines
from shardaudit.producer.trace_queue import TraceColumns, TraceRun
from tests.builders import unpacked_lines
from tests.unit.producer.puts import TELLER


class Shard(str, Enum):  # noqa: UP042 - as text it is "Shard.FIRST", in JSON "first"
    FIRST = "first"


HOSTILE = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"]), max_size=5)
TEXTS = st.sampled_from(["m0", '","', "\\", "\x7f", "\x00", "\ud800", "é"]) | HOSTILE
ODD = st.sampled_from([None, 7, b"x", Shard.FIRST])
TRACES = st.lists(
    st.tuples(
        TEXTS,
        TEXTS | st.integers(0, 2**63),
        TEXTS | ODD,
        TEXTS,
        st.lists(TEXTS, max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=4,
)
NAMES = ("message_id", "sent_at", "shard_id", "sequence_number", "parent_ids")


@given(TRACES, st.booleans())
def test_line_says_what_the_trace_does(traces: list[tuple[Any, ...]], has_parents: bool) -> None:
    columns = [list(column) for column in zip(*traces, strict=True)]
    if not has_parents:
        columns[-1] = []
    packed = PackedLines(TELLER)
    occasion = ("events", "2026-11-24T12:00:00.000Z", 1, None)
    unfit = packed.add([TraceRun(7, TraceColumns._make([occasion, *columns]))])
    lines = list(map(json.loads, unpacked_lines(packed.content())))
    for number, (trace, line) in enumerate(zip(traces, lines, strict=True), 7):
        assert line["session_seq"] == number
        said = dict(zip(NAMES, trace, strict=True))
        if isinstance(said["shard_id"], str):
            parents = said.pop("parent_ids") if has_parents else ()
            assert {name: line[name] for name in NAMES[:4]} == {n: said[n] for n in NAMES[:4]}
            assert line.get("parent_ids", []) == list(parents)
        else:
            assert (line["gap"], line["reason"]) == (1, UNFIT)
    assert (packed.traces + unfit, packed.lines) == (len(traces), len(traces))
    assert unfit == sum("gap" in line for line in lines)


@pytest.mark.parametrize("encode", [msgspec.json.encode, json.dumps])  # whichever is there
def test_what_is_no_longer_when_encoded_stands_in_json_as_it_is(
    encode: Callable[[str], Sized],
) -> None:
    for character in map(chr, range(128)):
        if len(encode(character)) == len(f'"{character}"'):
            assert json.loads(f'"{character}"') == character
