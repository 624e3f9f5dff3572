"""What is told of the numbers of sessions, against arithmetic with sets; no engine."""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardaudit.adapters.files.json_traces import all_json_batches
from shardaudit.adapters.files.parquet_traces import parquet_batches
from shardaudit.adapters.files.told_numbers import (
    parquet_numbers,
    with_told_numbers,
)
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.ingest.producer_numbers import SETTLED, lines_of
from shardaudit.ingest.trace_sessions import session_rows
from shardaudit.model.input_columns import TRACE_COLUMNS
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.trace_line import PASSED_OVER
from shardaudit.model.window import Window
from shardaudit.report.summary import HoleLine, ProducerLine

COLUMNS = {name: name for name in TRACE_COLUMNS}
T0 = datetime(2026, 11, 24, 12, tzinfo=UTC)
DAY = Window(T0 - timedelta(hours=12), T0 + timedelta(hours=12))
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("message_id", "shard_id", "producer_id", "session")]
    + [("sent_at", pa.timestamp("us", "UTC")), ("acked_at", pa.timestamp("ms", "UTC"))]
    + [("session_seq", pa.int64())]
)
Line = dict[str, Any]  # Any: JSON
File = list[Line]


def acked(number: int) -> datetime:
    return T0 + timedelta(seconds=number)


def trace(number: int, session: str = "s", **more: object) -> Line:
    own = {"message_id": f"{session}{number}", "shard_id": "shardId-0", "session": session}
    at = acked(number).isoformat()
    return own | {"session_seq": number, "sent_at": at, "acked_at": at, "producer_id": "p"} | more


def gap(first: int, count: int, session: str = "s") -> Line:
    return {"gap": count, "session_seq": first, "session": session, "producer_id": "p"}


def health(written: int, dropped: int = 0, queued: int = 0, session: str = "s") -> Line:
    counts = {"written": written, "dropped": dropped, "queued": queued, "bytes": 1}
    at = acked(written + dropped + queued).isoformat()
    return {"health": counts, "at": at, "session": session, "producer_id": "p"}


def whole(written: int, how: str, queued: int = 0) -> Line:
    line = health(written, queued=queued)
    return line | {"health": line["health"] | {how: True}}


def in_json(lines: File, most_rows: int = 200_000) -> list[str]:
    file = io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    batches = all_json_batches(file, "x", COLUMNS)
    return texts_of(with_told_numbers(batches, "x", COLUMNS, most_rows))


def parquet_of(lines: File) -> pa.NativeFile:
    times = ("sent_at", "acked_at")
    rows = [line | {at: datetime.fromisoformat(line[at]) for at in times} for line in lines]
    content = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), content, row_group_size=3)
    return pa.BufferReader(content.getvalue())


def in_parquet(lines: File) -> list[str]:
    """Row by row, where a file cannot be kept."""
    batches = parquet_batches(parquet_of(lines), "x", COLUMNS)
    return texts_of(with_told_numbers(batches, "x", COLUMNS))


def kept(lines: File, most_rows: int = 200_000) -> list[str]:
    columns = {name: name for name in SCHEMA.names}
    batches = parquet_numbers(parquet_of(lines), "x", columns, most_rows)
    rows = [row for b in batches for row in b.to_pylist()]
    return [row["raw"] for row in rows if row["raw"]]


def texts_of(batches: Iterable[pa.RecordBatch]) -> list[str]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [row["raw"] for row in rows if row["fault"] == PASSED_OVER]


def told(
    batches: Sequence[Sequence[File]],
    *,
    read: Callable[[File], list[str]] = in_json,
    window: Window = DAY,
    as_of: datetime = DAY.end,
    cut: int | None = None,
    heard: datetime | None = None,
) -> list[ProducerLine]:
    rows: list[Row] = []
    for number, files in enumerate(batches, 1):
        texts = [text for lines in files for text in read(lines)]
        of_batch = (f"events/traces/{number}", "events")
        rows += [
            dict(zip(TRACE_SESSIONS.names, (*of_batch, *row), strict=True))
            for row in session_rows(texts)
        ]
    return list(lines_of(rows, window, as_of=as_of, cut=cut, heard=heard))


def numbers(holes: Iterable[HoleLine]) -> set[tuple[str, int]]:
    return {(hole.session, n) for hole in holes for n in range(hole.first, hole.last + 1)}


@st.composite
def logs(draw: st.DrawFn, *, plain: bool) -> list[File]:
    """The files of some sessions as a producer writes them, in one order of all."""
    files: list[File] = []
    for session in draw(st.sampled_from(["a", "ab", "abc"])):
        end = 0
        for _ in range(draw(st.integers(1, 5))):
            lines: File = []
            for _ in range(draw(st.integers(1, 3))):
                size = draw(st.integers(1, 5))
                if not plain and draw(st.integers(0, 3)) == 0:
                    lines.append(gap(end, size, session))
                else:
                    streams = draw(st.sampled_from(["events", "others"]))
                    lines += [trace(n, session, stream=streams) for n in range(end, end + size)]
                end += size
            if not plain and draw(st.booleans()):
                lines.append(health(end, queued=draw(st.integers(0, 4)), session=session))
            files.append(lines)
    return files


@pytest.mark.parametrize("read", [in_json, in_parquet, kept])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_told_is_exactly_what_is_in_no_file_that_was_read(
    read: Callable[[File], list[str]], data: st.DataObject
) -> None:
    files = data.draw(logs(plain=read is not in_json))
    arrived = [file for file in files for _ in range(data.draw(st.sampled_from([0, 1, 1, 2])))]
    arrived = data.draw(st.permutations(arrived))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arrived)), max_size=3)))
    batches = [arrived[a:b] for a, b in pairwise([0, *cuts, len(arrived)])]

    came: set[tuple[str, int]] = set()
    dropped: set[tuple[str, int]] = set()
    known = dict.fromkeys("abc", 0)
    for line in (line for file in arrived for line in file):
        who = line["session"]
        if "health" in line:
            known[who] = max(known[who], line["health"]["written"] + line["health"]["queued"])
            continue
        first, count = line["session_seq"], line.get("gap", 1)
        given_ones = {(who, number) for number in range(first, first + count)}
        (dropped if "gap" in line else came).update(given_ones)
        known[who] = max(known[who], first + count)
    lacking = {(who, n) for who, end in known.items() for n in range(end)} - came - dropped

    found = told(batches, read=read)
    assert len(found) == bool(came | dropped | lacking)
    for one in found:
        counts = (one.came, one.dropped, one.lost, one.numbered, one.unnumbered)
        total = len(came) + len(dropped) + len(lacking)
        assert counts == (len(came), len(dropped), len(lacking), total, 0)
        assert numbers(one.holes) == lacking


def lacking_in(window: Window, *files: File, as_of: datetime = DAY.end) -> set[int]:
    lines = told([files], window=window, as_of=as_of)
    return {number for line in lines for _, number in numbers(line.holes)}


def test_a_hole_is_of_the_time_between_its_neighbours() -> None:
    files = [[trace(0)], [trace(100), trace(101)], [health(300, queued=50)]]
    minutes = [Window(acked(60 * n), acked(60 * n + 60)) for n in range(-1, 8)]
    found = [len(lacking_in(minute, *files)) for minute in minutes]
    # 1 to 99 were given from second 0 to 100, 102 to 349 from then to 350.
    assert found == [0, 99, 99 + 248, 248, 248, 248, 248, 0, 0]


def test_what_lacks_at_the_begin_is_of_the_time_of_what_came_first() -> None:
    hour = Window(acked(3600), acked(7200))
    assert len(lacking_in(hour, [trace(5000), trace(5001)])) == 5000
    assert lacking_in(Window(acked(0), acked(3600)), [trace(5000)]) == set()


@pytest.mark.parametrize("waited", [timedelta(0), SETTLED - timedelta(seconds=1), SETTLED])
def test_a_session_that_is_alive_has_lost_nothing(waited: timedelta) -> None:
    live = [[trace(n) for n in range(10)], [health(10, queued=5)]]
    lost = lacking_in(DAY, *live, as_of=acked(15) + waited)
    assert lost == (set(range(10, 15)) if waited == SETTLED else set())


def test_an_idle_session_says_the_same_each_minute_and_what_it_lost_is_told() -> None:
    later = [health(10, queued=5) | {"at": acked(60 * n).isoformat()} for n in range(1, 60)]
    files = [[trace(n) for n in range(10)], [health(10, queued=5)], *([line] for line in later)]
    assert lacking_in(DAY, *files, as_of=acked(3600)) == set(range(10, 15))


def test_sessions_that_began_before_numbers_were_kept_are_counted_from_there() -> None:
    first, later = [trace(500), health(400, session="t")], [trace(502), trace(600, "t")]
    [line] = told([[first], [later], [[trace(3, "u")]]], cut=1)
    assert numbers(line.holes) == {("s", 501), *(("u", n) for n in range(3))}


@pytest.mark.parametrize(
    ("end", "ended"),
    [
        ([health(10)], {("s", 10, acked(10))}),
        ([health(9), trace(10)], {("s", 11, acked(10))}),
        ([health(10, queued=2)], {("s", 12, acked(12))}),
        ([whole(10, "closed")], set()),
        ([whole(10, "flushed")], set()),
        ([whole(10, "flushed"), health(10) | {"at": acked(60).isoformat()}], set()),
        ([whole(10, "flushed"), trace(10)], {("s", 11, acked(10))}),
        ([whole(10, "flushed", queued=1)], {("s", 11, acked(11))}),
        ([trace(10)], set()),  # a log that says nothing of itself
    ],
)
def test_a_session_that_nobody_closed_has_ended_when_it_was_last_heard_of(
    end: File, ended: set[tuple[str, int, datetime]]
) -> None:
    files = [[trace(n) for n in range(10)], end]
    for batches in ([files], [files[:1], files[1:]], [files[1:], files[:1]]):
        [line] = told(batches)
        assert {(one.session, one.known, one.at) for one in line.broken} == ended
        assert line.broken_off == len(ended)


@pytest.mark.parametrize(
    ("window", "as_of", "heard", "count"),
    [
        (DAY, acked(9) + SETTLED, None, 1),
        (DAY, acked(8) + SETTLED, None, 0),
        (DAY, DAY.end, acked(9) + SETTLED, 1),
        (DAY, DAY.end, acked(8) + SETTLED, 0),  # nobody was heard of since: files are late
        (Window(acked(10), acked(99)), DAY.end, None, 0),
        (Window(acked(0), acked(9)), DAY.end, None, 0),
    ],
)
def test_a_session_has_ended_in_one_window_once_its_files_must_have_come(
    window: Window, as_of: datetime, heard: datetime | None, count: int
) -> None:
    lines = told([[[trace(0), health(9)]]], window=window, as_of=as_of, heard=heard)
    assert sum(line.broken_off for line in lines) == count


def test_numbers_that_are_not_consecutive_are_told_as_such_and_nothing_else_of_them() -> None:
    odd = [trace(3 * n, acked_at=acked(n).isoformat()) for n in range(1001)]
    [line] = told([[odd, [trace(0, "t"), trace(2, "t")]]])
    assert (line.unnumbered, numbers(line.holes)) == (1, {("t", 1)})
    [line] = told([[odd[:500]], [odd[500:]]])  # of each batch
    assert (line.unnumbered, line.lost) == (0, 2000)


def test_drops_are_counted_however_many_gaps_there_are() -> None:
    flapping = [line for n in range(0, 6000, 3) for line in (trace(n), gap(n + 1, 2))]
    [line] = told([[flapping], [flapping], [[gap(6000, 7)]]])
    assert (line.came, line.dropped, line.lost, line.unnumbered) == (2000, 4007, 0, 0)


def test_who_has_a_session_for_each_trace_is_told_and_costs_no_memory() -> None:
    for read in (partial(in_json, most_rows=20), partial(kept, most_rows=20)):
        [line] = told([[[trace(0, str(n)) for n in range(100)]]], read=read)
        assert (line.unnumbered, line.lost) == (1, 0)


@pytest.mark.parametrize(
    "odd",
    [
        {"session": "s", "session_seq": 2**70, "message_id": 1.5},
        {"session": "s", "session_seq": -7, "message_id": "m"},
        {"session": "s", "session_seq": "x"},
        {"gap": 2**62, "session": "s", "session_seq": 99},
        {"gap": 5, "session": "s"},
        {"health": {"written": "all"}, "session": "s"},
        {"health": {"written": 50, "dropped": -1, "queued": 0}, "session": "s"},
        {"health": {"written": 0, "dropped": 0, "queued": 0}, "session": "s"},
    ],
)
def test_odd_lines_tell_nothing(odd: Line) -> None:
    [line] = told([[[trace(0), odd, trace(2)]]])
    assert numbers(line.holes) == {("s", 1)}


def test_a_refused_line_tells_its_number_and_so_does_one_without_a_time() -> None:
    lines = [trace(0, sequence_number=7), trace(1, acked_at="late"), trace(2, sent_at=None)]
    lines += [{"session": "s", "session_seq": "3", "producer_id": "p"}, trace(5)]
    [line] = told([[lines]])
    assert (line.came, numbers(line.holes)) == (5, {("s", 4)})


def test_of_a_span_that_reaches_beyond_the_window_its_share_came() -> None:
    lines = [trace(n) for n in range(601)]
    [line] = told([[lines]], window=Window(acked(0), acked(60)))
    assert (line.came, line.numbered) == (60, 60)
