"""Lines of JSON as columns: each line is judged as if it stood alone, whatever stands around it."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.adapters.files.loose_traces import LOOSE
from shardaudit.model.input_columns import MAX_MS, TRACE_COLUMNS
from shardaudit.model.trace_line import (
    GAP,
    HEALTH,
    NUMBERS,
    PASSED_OVER,
    TEXTS,
    TIMES,
    read_object,
    trace_fields,
)
from tests.builders import Line, cut_off, jsonl, trace_line, write_lines

COLUMNS = {name: name for name in TRACE_COLUMNS}
Rows = list[dict[str, Any]]  # Any: whatever Arrow holds


def read(content: bytes, columns: dict[str, str] = COLUMNS, *, piece_lines: int = 500) -> Rows:
    rows: Rows = []
    file = io.BytesIO(content)
    for batch in json_batches(file, "x.jsonl", columns, piece_lines=piece_lines):
        assert batch.schema == LOOSE
        batch.validate(full=True)
        rows += batch.to_pylist()
    return rows


def test_all_fields_arrive_when_a_line_is_complete() -> None:
    line = trace_line(
        stream="s",
        location="edge",
        event="sent",
        attempt=2,
        producer_id="p",
        session="t",
        session_seq=7,
        sample_rate=0.5,
        acked_at=1795183200000,
        attributes={"row": 1, "gone": None, "deep": {"a": [1.50, True]}},
    )
    [row] = read(jsonl([line]))
    assert row == {
        "file": "x.jsonl",
        "line": 1,
        "raw": json.dumps(line),
        "fault": None,
        "message_id": "m0",
        "stream": "s",
        "shard_id": line["shard_id"],
        "sequence_number": line["sequence_number"],
        "location": "edge",
        "event": "sent",
        "producer_id": "p",
        "session": "t",
        "attempt": "2",
        "session_seq": "7",
        "sample_rate": "0.5",
        "sent_at_text": line["sent_at"],
        "acked_at_text": None,
        "sent_at_us": None,
        "acked_at_us": 1795183200000000,
        "attributes": [("row", "1"), ("gone", None), ("deep", '{"a":[1.5,true]}')],
        "attributes_fault": None,
    }


def test_lines_keep_their_numbers_when_some_are_blank_or_bad() -> None:
    lines: list[Line | str] = [trace_line(), "", "bad", " \t\r", trace_line(1), "[]", '{"_sa_x":1}']
    rows = read(b"\xef\xbb\xbf" + jsonl(lines))
    assert [(row["line"], row["message_id"], row["fault"]) for row in rows] == [
        (1, "m0", None),
        (3, None, "the line is not JSON"),
        (5, "m1", None),
        (6, None, "the line is not a JSON object"),
        (7, None, "a key begins with _sa_, which is reserved"),
    ]
    assert [row["raw"] for row in rows[1:4:2]] == ["bad", "[]"]


def test_what_a_log_tells_of_itself_is_no_trace() -> None:
    gap = {"gap": 12, "session": "s", "session_seq": 7, "reason": "the queue was full"}
    health = {"health": {"written": 3, "dropped": 12}, "session": "s"}
    lines: list[Line | str] = [trace_line(), json.dumps(gap), json.dumps(health), trace_line(1)]
    lines.append(json.dumps(gap | {"location": "router"}))
    lines += [trace_line(2, gap=1, health={"heart": "beats"}), '{"gap": "wide", "health": 1}']
    lines += [json.dumps(gap | {"gap": dropped}) for dropped in (0, -12, True)]
    rows = read(jsonl(lines))
    assert [(row["line"], row["message_id"], row["fault"]) for row in rows] == [
        (1, "m0", None),
        (2, None, "gap: 12 traces were dropped by the producer"),
        (4, "m1", None),
        (5, None, "gap: 12 traces were dropped by the location router"),
        (6, "m2", None),
        *((line, None, None) for line in (7, 8, 9, 10)),  # without an id, as any
    ]
    assert rows[1]["raw"] == json.dumps(gap)


@pytest.mark.parametrize("key", ["shard_id", "sequence_number"])
@pytest.mark.parametrize("more", [{"gap": 3}, {"health": {}}])
def test_trace_without_an_id_is_told_when_it_has_a_key_of_the_log(
    key: str, more: dict[str, Any]
) -> None:
    renamed = COLUMNS | {key: "place"}
    for name, columns in ((key, COLUMNS), ("place", renamed)):
        rows = read(jsonl([json.dumps(more | {name: "7"})]), columns)
        assert [(row["line"], row[key], row["fault"]) for row in rows] == [(1, "7", None)]


def test_good_lines_are_kept_when_others_are_not_utf8() -> None:
    *rows, _ = read(b"good\n\xff\xfe bad\nalso good \xc3\xa9\n{}\n")
    assert [(row["line"], row["raw"], row["fault"]) for row in rows] == [
        (1, "good", "the line is not JSON"),
        (2, "\ufffd\ufffd bad", "the line is not UTF-8"),
        (3, "also good é", "the line is not JSON"),
    ]


def test_damage_is_a_row_of_its_own_when_the_file_breaks_off(tmp_path: Path) -> None:
    path = cut_off(write_lines(tmp_path / "x.gz", [trace_line(i) for i in range(1000)]))
    *kept, damage = read(path.read_bytes())
    assert [row["message_id"] for row in kept] == [f"m{i}" for i in range(len(kept))]
    assert (damage["line"], damage["fault"]) == (None, "the gzip file breaks off")
    assert damage["raw"].startswith('{"message_id"')


def test_begin_of_a_line_is_shown_when_it_is_too_long() -> None:
    rows = read(b"x" * (8 * 2**20 + 1) + b"\n" + jsonl([trace_line()]))
    assert [(row["line"], row["raw"][:9], row["fault"]) for row in rows] == [
        (1, "x" * 9, "the line is longer than 8388608 bytes"),
        (2, '{"message', None),
    ]
    assert len(rows[0]["raw"]) == 4096


NO_LINES, ONE_ARRAY = "no line of the file is a JSON object", "the file is one JSON array"
_TRACES = jsonl([trace_line(0), trace_line(1)])
_LIST = [trace_line(0), trace_line(1)]
OTHER_FILES: list[tuple[str, bytes, int, str | None]] = [
    ("UTF-16", _TRACES.decode().encode("utf-16"), 3, NO_LINES),
    ("CSV", b"message_id,shard_id\nm0,shardId-0\n", 2, NO_LINES),
    ("log of a program", b"[main] INFO started\n\n[main] INFO stopped\n", 2, NO_LINES),
    ("array in one line", json.dumps(_LIST).encode(), 1, NO_LINES),
    ("array in one line that is too long", b"[" + b" " * 2**23 + b"]", 1, NO_LINES),
    ("array of a line each", b" [\r\n" + b",\n".join(_TRACES.splitlines()) + b"\n]", 0, ONE_ARRAY),
    ("array, indented, packed", gzip.compress(json.dumps(_LIST, indent=1).encode()), 0, ONE_ARRAY),
    ("a line that is read", b"started\n" + _TRACES + b"stopped\n", 4, None),
    ("an object that is no trace", b'started\n{"level": "info"}\n', 2, None),
    ("health alone, and a torn line", b'{"health": {}}\n{"mess', 1, None),
    ("a torn line alone", b'{"message_id": "m1", "str', 1, None),
    ("objects without line ends", b"".join(_TRACES.splitlines()), 1, NO_LINES),
    ("the same, torn", b"".join(_TRACES.splitlines())[:-9], 1, NO_LINES),
    ("a line with a bad escape", b'{"message_id": "\\x"}', 1, NO_LINES),
    ("an object of several lines", b'{"message_id": "m1",\n"shard_id": "s"}\n', 2, NO_LINES),
    ("an object that is too long", b'{"' + b" " * 2**23, 1, NO_LINES),
    ("blank", b"\n \n", 0, None),
    ("empty", b"", 0, None),
    ("gzip that breaks off", gzip.compress(b"no object\n")[:-4], 1, "the gzip file breaks off"),
]


@pytest.mark.parametrize(
    ("content", "lines", "damage"), [pytest.param(*case[1:], id=case[0]) for case in OTHER_FILES]
)
def test_file_is_damaged_as_a_whole_when_none_of_its_lines_is_an_object(
    content: bytes, lines: int, damage: str | None
) -> None:
    found = read(content)
    told = [row["fault"].partition(";")[0] for row in found if row["line"] is None]
    assert (told, len(found) - len(told)) == ([damage] if damage else [], lines)


def test_batches_stay_small_when_lines_are_short() -> None:
    content = b"{}\n" * 250_000
    sizes = [batch.num_rows for batch in json_batches(io.BytesIO(content), "x.jsonl", COLUMNS)]
    assert sizes == [100_000, 100_000, 50_000]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**22, 1e300, MAX_MS])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
LINES = st.fixed_dictionaries(
    {},
    optional={name: VALUES for name in (*TRACE_COLUMNS, GAP, HEALTH)}
    | {"_sa_x": st.just(1), "other": VALUES},
).map(json.dumps) | st.sampled_from(
    ["", " ", "x", "[]", "{}", '{"a":1e400}', r'{"a":"\ud83d"}', '{"gap":3}', '{"health":{}}']
)


@given(st.lists(LINES, max_size=12), st.sampled_from([1, 3, 500]))
def test_line_is_judged_as_if_alone_when_read_with_others(lines: list[str], size: int) -> None:
    rows = [row for row in read(jsonl(lines), piece_lines=size) if row["line"]]
    each = [judged_alone(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    alone = [row for row in each if row["fault"] != PASSED_OVER]
    assert [as_number(row, "sample_rate") for row in rows] == alone


def judged_alone(number: int, text: str) -> dict[str, Any]:
    """The row of a line by the rules alone."""
    line = text.encode()
    trace, fault = read_object(line)
    fields = trace_fields(trace, line, COLUMNS)
    row = {"file": "x.jsonl", "line": number, "raw": text, "fault": fault or fields.fault}
    row |= {name: fields.values[name] for name in TEXTS + NUMBERS}
    for name in TIMES:
        time = fields.values[name]
        row[f"{name}_text"] = None if isinstance(time, int) else time
        row[f"{name}_us"] = min(max(time, 0), MAX_MS) * 1000 if isinstance(time, int) else None
    row["attributes"] = None if fields.attributes is None else [*fields.attributes.items()]
    row["attributes_fault"] = fields.attributes_fault
    return as_number(row, "sample_rate")


def as_number(row: dict[str, Any], name: str) -> dict[str, Any]:
    """The row with one text as the number that it is: whole ones may have more digits."""
    try:
        return row | {name: float(row[name])}
    except (TypeError, ValueError):
        return row
