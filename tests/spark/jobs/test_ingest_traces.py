"""The traces' side of the ingest: what is kept, what is refused and why."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F

from shardaudit.model.tables import TRACES
from tests.builders import NOW, SHARD, T0, Line, sequence, shard, trace_line
from tests.spark.jobs.lake import Lake, by_message


def test_all_fields_arrive_when_a_line_is_complete(lake: Lake) -> None:
    lake.log(
        "a.jsonl",
        [
            trace_line(
                stream="kinesis-events",
                location="edge",
                attempt=2,
                producer_id="p",
                session="s",
                session_seq=7,
                sample_rate=0.5,
                acked_at="2026-11-20T14:00:01+02:00",
                attributes={"row": 1, "table": "t", "gone": None, "deep": {"a": [1]}},
            )
        ],
    )
    lake.ingest()
    [row] = lake.kept()
    assert row.asDict() == {
        "batch_id": "events/traces/1",
        "stream": "events",
        "message_id": "m0",
        "shard_id": SHARD,
        "sequence_number": sequence(0),
        "sent_at": _local(T0),
        "bucket_start": _local(T0),
        "location": "edge",
        "attempt": 2,
        "producer_id": "p",
        "session": "s",
        "session_seq": 7,
        "sample_rate": 0.5,
        "acked_at": _local(T0 + timedelta(seconds=1)),
        "attributes": {"row": "1", "table": "t", "gone": None, "deep": '{"a":[1]}'},
        "counted": True,
        "sent_day": T0.date(),
    }
    assert lake.refused() == []


def _local(instant: datetime) -> datetime:
    """As pyspark collects timestamps."""
    return instant.astimezone().replace(tzinfo=None)


BAD_LINES: list[tuple[str, Line | str, str]] = [
    ("text", "hello", "the line is not JSON"),
    ("cut object", '{"message_id": "x"', "the line is not JSON"),
    ("two objects", '{"message_id": "x"} {"message_id": "y"}', "the line is not JSON"),
    ("object and more", '{"message_id": "x"}]', "the line is not JSON"),
    ("closing the frame", '{"message_id":"x"},"end":"1"}{"a":"', "the line is not JSON"),
    ("single quotes", "{'message_id': 'x'}", "the line is not JSON"),
    ("NaN", '{"message_id": "x", "v": NaN}', "the line is not JSON"),
    ("bare key", '{message_id: "x"}', "the line is not JSON"),
    ("comment", '/* c */ {"message_id": "x"}', "the line is not JSON"),
    ("array", "[1, 2]", "the line is not a JSON object"),
    ("number", "12", "the line is not a JSON object"),
    ("null", "null", "the line is not a JSON object"),
    ("string", '"message_id"', "the line is not a JSON object"),
    ("no id", {"shard_id": SHARD}, "message_id is missing"),
    ("null id", trace_line(message_id=None), "message_id is missing"),
    ("id in another case", {"Message_Id": "x"}, "message_id is missing"),
    ("boolean id", trace_line(message_id=True), "neither a text nor a whole number"),
    ("fraction id", trace_line(message_id=1.5), "neither a text nor a whole number"),
    ("object id", trace_line(message_id={"a": 1}), "neither a text nor a whole number"),
    ("huge number id", '{"message_id": 1e400}', "neither a text nor a whole number"),
    ("long id", trace_line(message_id="é" * 513), "message_id is longer than 1024 bytes"),
    ("half a pair", '{"message_id": "\\ud83d"}', "half of a surrogate pair"),
    ("other half", '{"message_id": "x\\uDE00"}', "half of a surrogate pair"),
    ("no shard", trace_line(shard_id=None), "shard_id is missing"),
    ("empty shard", trace_line(shard_id=""), "shard_id is not a text of 1 to 128"),
    ("number as sequence", trace_line(sequence_number=5), "as a JSON number it may have lost"),
    ("hex sequence", trace_line(sequence_number="0x1f"), "129 decimal digits"),
    ("empty sequence", trace_line(sequence_number=""), "129 decimal digits"),
    ("signed sequence", trace_line(sequence_number="-1"), "129 decimal digits"),
    ("leading zero", trace_line(sequence_number="012"), "129 decimal digits"),
    ("line break after", trace_line(sequence_number="12\n"), "129 decimal digits"),
    ("other digits", trace_line(sequence_number="١٢"), "129 decimal digits"),
    ("130 digits", trace_line(sequence_number="1" * 130), "129 decimal digits"),
    ("no time", trace_line(sent_at=None), "sent_at is missing"),
    ("no zone", trace_line(sent_at="2026-11-20T12:00:00"), "sent_at is not an ISO 8601 time"),
    ("date", trace_line(sent_at="2026-11-20"), "sent_at is not an ISO 8601 time"),
    ("zone by name", trace_line(sent_at="2026-11-20T12:00:00 Europe/Paris"), "not an ISO 8601"),
    ("february 30", trace_line(sent_at="2026-02-30T12:00:00Z"), "not an ISO 8601 time"),
    ("digits in text", trace_line(sent_at="1732060800000"), "not an ISO 8601 time"),
    ("fraction of ms", trace_line(sent_at=1732060800000.5), "not an ISO 8601 time"),
    ("boolean time", trace_line(sent_at=True), "not an ISO 8601 time"),
    ("seconds for ms", trace_line(sent_at=1732060800), "sent_at is before 2000"),
    ("1999", trace_line(sent_at="1999-12-31T23:59:59.999Z"), "sent_at is before 2000"),
    (
        "a day ahead",
        trace_line(sent_at=(NOW + timedelta(days=1, seconds=1)).isoformat()),
        "sent_at is over a day ahead",
    ),
    ("far ahead", trace_line(sent_at=2**62), "sent_at is over a day ahead"),
    ("acked without zone", trace_line(acked_at="2026-11-20T12:00:00"), "acked_at is not an ISO"),
    ("other stream", trace_line(stream="orders"), "another stream than events or kinesis-events"),
    ("attempt", trace_line(attempt="first"), "attempt is not a number"),
    ("session_seq", trace_line(session_seq=1.5), "session_seq is not a number"),
    ("sample_rate", trace_line(sample_rate="all"), "sample_rate is not a number"),
    ("attributes", trace_line(attributes="x"), "attributes is not an object"),
    ("attribute list", trace_line(attributes=[1]), "attributes is not an object"),
    ("ours", trace_line(_sa_x=1), "a key begins with _sa_, which is reserved"),
]


def test_bad_lines_are_set_aside_and_good_ones_kept_when_mixed(lake: Lake) -> None:
    lines: list[Line | str] = []
    for number, (_, bad, _) in enumerate(BAD_LINES):
        lines += [trace_line(number), bad]
    path = lake.log("a.jsonl", lines)
    summary = lake.ingest()
    assert sorted(row.message_id for row in lake.kept()) == sorted(
        f"m{number}" for number in range(len(BAD_LINES))
    )
    found = {row.line: row for row in lake.refused()}
    assert sorted(found) == [2 * number + 2 for number in range(len(BAD_LINES))]
    for number, (name, _, reason) in enumerate(BAD_LINES):
        row = found[2 * number + 2]
        assert reason in row.reason, name
        assert row.raw == path.read_text().split("\n")[2 * number + 1], name
        assert (row.file, row.source, row.stream) == (str(path), "traces", "events")
        assert row.batch_id == "events/traces/1"
    assert (summary.trace_rows, summary.quarantined) == (len(BAD_LINES), len(BAD_LINES))


ODD_IDS = [
    "",
    " ",
    "a",
    "a ",
    "A",
    "'",
    '"',
    ";",
    "%",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\\",
    "'; DROP TABLE findings; --",
    "é",
    "e\u0301",
    "日本語",
    "😀",
    "\u2028",
    "\ufeff",
    "_sa_x",
    "null",
    "NaN",
    "x" * 1024,
    "é" * 512,
    "?",
    "\\ud83d",
]


@pytest.mark.parametrize("is_escaped", [True, False])
def test_ids_arrive_as_they_are_when_odd(lake: Lake, is_escaped: bool) -> None:
    import json

    lines = [
        json.dumps(trace_line(number, message_id=text), ensure_ascii=is_escaped)
        for number, text in enumerate(ODD_IDS)
    ]
    lake.log("a.jsonl", lines)
    lake.ingest()
    assert [row.reason for row in lake.refused()] == []
    assert sorted(row.message_id for row in lake.kept()) == sorted(ODD_IDS)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-20T12:00:00Z", T0),
        ("2026-11-20t12:00:00z", T0),
        ("2026-11-20 12:00:00+00:00", T0),
        ("2026-11-20T12:00Z", T0),
        ("2026-11-20T13:30+0130", T0),
        ("2026-11-20T04:00:00-08", T0),
        ("2026-11-20T12:00:00.25Z", T0 + timedelta(milliseconds=250)),
        ("2026-11-20T12:00:00,25Z", T0 + timedelta(milliseconds=250)),
        ("2026-11-20T12:00:00.123456789Z", T0 + timedelta(microseconds=123456)),
        (1795176000000, datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("2000-01-01T00:00:00Z", datetime(2000, 1, 1, tzinfo=UTC)),
        ((NOW + timedelta(days=1)).isoformat(), NOW + timedelta(days=1)),
    ],
)
def test_time_is_understood_when_it_has_a_zone(lake: Lake, text: object, instant: datetime) -> None:
    lake.log("a.jsonl", [trace_line(sent_at=text)])
    lake.ingest()
    assert [row.reason for row in lake.refused()] == []
    assert [row.sent_at for row in lake.kept()] == [_local(instant)]


def test_field_is_absent_when_null_or_left_out(lake: Lake) -> None:
    lake.log(
        "a.jsonl",
        [
            trace_line(0, sequence_number=None, stream=None, attempt=None, attributes=None),
            {key: value for key, value in trace_line(1).items() if key != "sequence_number"},
        ],
    )
    lake.ingest()
    kept = by_message(lake.kept())
    assert [kept[id_].sequence_number for id_ in ("m0", "m1")] == [None, None]
    assert {row.location for row in kept.values()} == {"producer"}


def test_key_names_are_taken_literally_when_mapped(lake: Lake) -> None:
    lake.trace_columns = {"message_id": "meta.id", "sent_at": 'it\'s "t"', "acked_at": 'it\'s "t"'}
    line = trace_line(0)
    lake.log("a.jsonl", [{**line, "meta.id": "mapped", 'it\'s "t"': line["sent_at"]}])
    lake.ingest()
    [row] = lake.kept()
    assert (row.message_id, row.sent_at, row.acked_at) == ("mapped", _local(T0), _local(T0))


def test_last_value_counts_when_a_key_occurs_twice(lake: Lake) -> None:
    line = (
        '{"message_id": "first", "shard_id": "s", "sent_at": 1795176000000, "message_id": "last"}'
    )
    lake.log("a.jsonl", [line])
    lake.ingest()
    assert [row.message_id for row in lake.kept()] == ["last"]


def test_whole_number_is_an_id_when_written_as_number(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line(message_id=12345678901234567), trace_line(1, message_id="7")])
    lake.ingest()
    assert {row.message_id for row in lake.kept()} == {"12345678901234567", "7"}


def test_raw_is_cut_when_line_is_long(lake: Lake) -> None:
    lake.log("a.jsonl", ["é" * 5000, "x" + "é" * 5000, "y" * 4096])
    lake.ingest()
    raws = [row.raw for row in lake.refused()]
    assert raws == ["é" * 2048, "x" + "é" * 2047, "y" * 4096]


def test_nothing_is_written_when_there_are_no_files(lake: Lake) -> None:
    summary = lake.ingest()
    assert (summary.trace_files, summary.trace_rows) == (0, 0)
    assert [row.side for row in lake.batches()] == ["sink"]


def test_batch_is_empty_when_files_are_empty(lake: Lake) -> None:
    lake.log("a.jsonl", [])
    lake.log("b.jsonl", ["", "  "])
    summary = lake.ingest()
    assert (summary.trace_files, summary.trace_rows, summary.quarantined) == (2, 0, 0)
    assert lake.ingest().batches == []


def test_traces_are_counted_once_when_lines_or_files_come_twice(lake: Lake) -> None:
    lines = [trace_line(number) for number in range(10)]
    lake.log("a.jsonl", [*lines, *lines])
    lake.log("copy/a.jsonl.gz", lines)
    lake.ingest()
    lake.log("later.jsonl.zst", [*lines, trace_line(10)])
    lake.ingest()
    assert len(lake.kept()) == 11
    assert sum(row.counted for row in lake.kept()) == 11
    assert sum(totals[0] for totals in lake.ledger("traces").values()) == 11


def test_id_counts_in_one_cell_when_acked_on_several_shards(lake: Lake) -> None:
    lake.log(
        "a.jsonl",
        [
            trace_line(0, shard_id=shard(2), sequence_number="5"),
            trace_line(0, shard_id=shard(1), sequence_number="10"),
            trace_line(0, shard_id=shard(1), sequence_number="9"),
        ],
    )
    lake.ingest()
    lake.log("b.jsonl", [trace_line(0, shard_id=shard(0), sequence_number="1")])
    lake.ingest()
    counted = {(r.shard_id, r.sequence_number): r.counted for r in lake.kept()}
    assert counted == {
        (shard(2), "5"): False,
        (shard(1), "10"): False,
        (shard(1), "9"): True,
        (shard(0), "1"): False,
    }
    assert {cell[0]: totals[0] for cell, totals in lake.ledger("traces").items()} == {shard(1): 1}


def test_traces_without_sequence_number_are_one_when_all_else_is_equal(lake: Lake) -> None:
    line = trace_line(0, sequence_number=None)
    lake.log("a.jsonl", [line, line])
    lake.ingest()
    lake.log("b.jsonl", [line, trace_line(0)])
    lake.ingest()
    assert sorted((r.sequence_number or "", r.counted) for r in lake.kept()) == [
        ("", True),
        (sequence(0), False),
    ]


def test_only_the_sample_is_kept_when_rate_is_below_one(lake: Lake) -> None:
    lake.settings = {"sample_rate": 0.25}
    lake.log("a.jsonl", [trace_line(number) for number in range(2000)])
    lake.land([{**trace_line(number), "sent_at": T0, "landed_at": T0} for number in range(2000)])
    lake.ingest()
    kept = {row.message_id for row in lake.kept()}
    assert 400 < len(kept) < 600
    assert sum(totals[0] for totals in lake.ledger("sink").values()) == len(kept)


def test_rows_lie_in_order_of_cells_when_written(lake: Lake) -> None:
    lines = [trace_line(n, shard_id=shard(n * 7 % 5)) for n in range(3000, 0, -1)]
    lines += [
        trace_line(n, shard_id=shard(n % 5), sent_at=(T0 - timedelta(days=1)).isoformat())
        for n in range(500)
    ]
    lake.log("a.jsonl", lines)
    lake.ingest()
    stored = lake.warehouse.read(TRACES)
    place = stored.select(
        F.input_file_name().alias("file"), "sent_day", "shard_id", "bucket_start"
    ).collect()
    for file in {row.file for row in place}:
        cells = [tuple(row)[1:] for row in place if row.file == file]
        assert cells == sorted(cells)
