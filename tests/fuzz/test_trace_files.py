"""Files of traces, as hostile as they come: nothing is raised, no good line is lost."""

import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.adapters.files.loose_traces import LOOSE
from shardaudit.model.input_columns import TRACE_COLUMNS
from shardaudit.model.trace_line import attributes_in, read_object, trace_fields
from tests.builders import trace_line
from tests.fuzz.hostile import BOUNDED, LINE, VALUE, packed

COLUMNS = {name: name for name in TRACE_COLUMNS}
GOOD = [json.dumps(trace_line(n, message_id=f"good-{n}", attributes={"n": n})) for n in range(4)]
Rows = list[dict[str, Any]]  # Any: whatever Arrow holds


def read(content: bytes) -> Rows:
    """The rows of a file, each batch sound to its last byte."""
    rows: Rows = []
    for batch in json_batches(io.BytesIO(content), "x", COLUMNS):
        assert batch.schema == LOOSE
        batch.validate(full=True)
        rows += batch.to_pylist()
    return rows


def good_ids(rows: Rows) -> list[str]:
    """The ids of the good lines that were found as they were written."""
    return [
        row["message_id"]
        for row in rows
        if str(row["message_id"]).startswith("good-")
        and row["fault"] is row["attributes_fault"] is None
        and row["attributes"] == [("n", row["message_id"].removeprefix("good-"))]
    ]


@st.composite
def mixed(draw: st.DrawFn) -> bytes:
    """Hostile lines with all good ones among them, in their order."""
    lines = draw(st.lists(LINE, max_size=6))
    for text in GOOD:
        lines.insert(draw(st.integers(0, len(lines))), text.encode())
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return end.join(lines) + draw(st.sampled_from([b"", end]))


@BOUNDED
@given(st.data())
def test_every_good_line_is_found_among_hostile_ones(data: st.DataObject) -> None:
    content = data.draw(mixed())
    rows = read(data.draw(packed(content)))
    assert sorted(good_ids(rows)) == [f"good-{n}" for n in range(4)]
    numbers = [row["line"] for row in rows]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(range(1, content.count(b"\n") + 2))


@BOUNDED
@given(st.data())
def test_nothing_is_raised_by_a_file_with_bytes_turned_over(data: st.DataObject) -> None:
    content = bytearray(data.draw(packed(data.draw(mixed()))))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    rows = read(bytes(content[: data.draw(st.integers(0, len(content)))]))
    assert all(row["fault"] for row in rows if row["line"] is None)


@BOUNDED
@given(LINE, VALUE)
def test_a_line_is_its_fields_or_a_reason(line: bytes, value: object) -> None:
    trace, fault = read_object(line)
    assert (fault is None) or trace == {}
    fields = trace_fields(trace, line, COLUMNS)
    json.dumps(fields._asdict(), ensure_ascii=False).encode()  # no half of a surrogate pair
    texts, reason = attributes_in(json.dumps(value))
    assert (texts is None) == (reason is not None)
