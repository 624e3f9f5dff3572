"""Lines of JSON → judged traces: each line of the bad-input table, and what must not be refused."""

import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.adapters.files.loose_traces import LOOSE, damaged
from shardaudit.adapters.files.parquet_traces import parquet_batches
from shardaudit.ingest.rules.refused_traces import TraceRules, judged_traces, sampled
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.input_columns import CANARY, TRACE_COLUMNS, are_given_times, given_time_fault
from tests.builders import NOW, SHARD, T0, Line, jsonl, trace_line, write_parquet

RULES = TraceRules(
    stream_names=["events", "kinesis-events"],
    shape=Eras(CellShape(60, 1.0)),
    now=NOW,
)


def loose(spark: SparkSession, lines: Iterable[Line | str], **mapped: str) -> DataFrame:
    """The lines as they come from the reader."""
    columns = {name: name for name in TRACE_COLUMNS} | mapped
    batches = json_batches(io.BytesIO(jsonl(lines)), "a.jsonl", columns)
    return spark.createDataFrame(pa.Table.from_batches(batches, LOOSE))


def judge(spark: SparkSession, lines: Iterable[Line | str], **mapped: str) -> list[Row]:
    """The judged lines, in order, with their times in microseconds."""
    judged = judged_traces(loose(spark, lines, **mapped), RULES)
    times = {name: F.unix_micros(name) for name in ("sent_at", "acked_at", "bucket_start")}
    return judged.withColumns(times).drop("id_hash").orderBy("line").collect()


def micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


def test_all_fields_arrive_when_a_line_is_complete(spark: SparkSession) -> None:
    line = trace_line(
        90,
        stream="kinesis-events",
        location="producer",
        event="any",
        attempt=2,
        producer_id="p",
        session="s",
        session_seq=7,
        sample_rate=0.5,
        acked_at="2026-11-20T14:00:01+02:00",
        attributes={"row": 1, "table": "t", "gone": None, "deep": {"a": [1]}},
    )
    [row] = judge(spark, [line])
    assert row.asDict() == {
        "file": "a.jsonl",
        "line": 1,
        "raw": None,
        "reason": None,
        "message_id": "m90",
        "shard_id": SHARD,
        "sequence_number": line["sequence_number"],
        "sent_at": micros(T0) + 90_000_000,
        "bucket_start": micros(T0) + 60_000_000,
        "location": "producer",
        "attempt": 2,
        "producer_id": "p",
        "session": "s",
        "session_seq": 7,
        "sample_rate": 0.5,
        "acked_at": micros(T0) + 1_000_000,
        "attributes": {"row": "1", "table": "t", "gone": None, "deep": '{"a":[1]}'},
        "event": "any",
    }


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
    ("our shard", trace_line(shard_id=f"{CANARY}a"), "shard_id begins with shardaudit-canary/"),
    ("our id", trace_line(message_id=CANARY), "message_id begins with shardaudit-canary/"),
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
    ("other location", trace_line(location="enrich"), "another location than producer"),
    ("no location", trace_line(location=""), "another location than producer"),
    ("attempt", trace_line(attempt="first"), "attempt is not a number"),
    ("session_seq", trace_line(session_seq=1.5), "session_seq is not a number"),
    ("sample_rate", trace_line(sample_rate="all"), "sample_rate is not a number"),
    ("attributes", trace_line(attributes="x"), "attributes is not an object"),
    ("attribute list", trace_line(attributes=[1]), "attributes is not an object"),
    ("ours", trace_line(_sa_x=1), "a key begins with _sa_, which is reserved"),
]


def test_reason_is_given_when_a_line_is_bad(spark: SparkSession) -> None:
    lines = [bad for _, bad, _ in BAD_LINES]
    rows = judge(spark, lines)
    assert len(rows) == len(lines)
    for row, (name, bad, reason) in zip(rows, BAD_LINES, strict=True):
        assert reason in (row.reason or "all is well"), name
        assert row.raw == (bad if isinstance(bad, str) else json.dumps(bad)), name


# Of these the producer knows nothing.
LEFT_TO_THE_INGEST = {"february 30", "a day ahead", "1999"}


def test_a_producer_refuses_the_times_that_the_ingest_refuses() -> None:
    faults = {
        name: (given_time_fault(bad["sent_at"]), reason)
        for name, bad, reason in BAD_LINES
        if isinstance(bad, dict) and type(bad.get("sent_at")) in {str, int}
        if reason.startswith(("sent_at", "not an ISO"))
    }
    assert {name for name, (fault, _) in faults.items() if fault is None} == LEFT_TO_THE_INGEST
    assert all(reason in f"sent_at {fault}" for fault, reason in faults.values() if fault)


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


def test_ids_arrive_as_they_are_when_odd(spark: SparkSession) -> None:
    lines = [
        json.dumps(trace_line(message_id=text), ensure_ascii=is_escaped)
        for text in ODD_IDS
        for is_escaped in (True, False)
    ]
    rows = judge(spark, lines)
    assert {row.reason for row in rows} == {None}
    assert [row.message_id for row in rows] == [text for text in ODD_IDS for _ in range(2)]


def test_time_is_understood_when_it_has_a_zone(spark: SparkSession) -> None:
    times: list[tuple[object, datetime]] = [
        ("2026-11-20T12:00:00Z", T0),
        ("2026-11-20t12:00:00z", T0),
        ("2026-11-20 12:00:00+00:00", T0),
        ("2026-11-20T12:00Z", T0),
        ("2026-11-20T13:30+0130", T0),
        ("2026-11-20T04:00:00-08", T0),
        ("2026-11-20T12:00:00.25Z", T0 + timedelta(milliseconds=250)),
        ("2026-11-20T12:00:00,25Z", T0 + timedelta(milliseconds=250)),
        ("2026-11-20T12:00:00.123456789Z", T0 + timedelta(microseconds=123456)),
        (micros(T0) // 1000, T0),
        ("2000-01-01T00:00:00Z", datetime(2000, 1, 1, tzinfo=UTC)),
        ((NOW + timedelta(days=1)).isoformat(), NOW + timedelta(days=1)),
    ]
    rows = judge(spark, [trace_line(sent_at=text, acked_at=text) for text, _ in times])
    assert all(are_given_times([text]) for text, _ in times)
    assert [(row.reason, row.sent_at, row.acked_at) for row in rows] == [
        (None, micros(instant), micros(instant)) for _, instant in times
    ]


def test_field_is_absent_when_null_or_left_out(spark: SparkSession) -> None:
    absent = ("sequence_number", "stream", "attempt", "attributes", "acked_at", "location")
    line = {key: value for key, value in trace_line().items() if key not in absent}
    rows = judge(spark, [line, line | dict.fromkeys(absent)])
    for row in rows:
        assert (row.reason, row.location) == (None, "producer")
        assert (row.sequence_number, row.attempt, row.attributes, row.acked_at) == (None,) * 4


def test_key_names_are_taken_literally_when_mapped(spark: SparkSession) -> None:
    odd = 'it\'s "t"'
    line = trace_line() | {"meta.id": "mapped", odd: T0.isoformat(), "sent_at": "wrong"}
    [row] = judge(
        spark, [line], message_id="meta.id", sent_at=odd, acked_at=odd, session="message_id"
    )
    assert (row.reason, row.message_id, row.session) == (None, "mapped", "m0")
    assert (row.sent_at, row.acked_at) == (micros(T0), micros(T0))


def test_last_value_counts_when_a_key_occurs_twice(spark: SparkSession) -> None:
    text = json.dumps(trace_line()).replace('"m0"', '"first", "message_id": "last"')
    [row] = judge(spark, [text])
    assert (row.reason, row.message_id) == (None, "last")


def test_whole_number_is_an_id_when_written_as_number(spark: SparkSession) -> None:
    rows = judge(spark, [trace_line(message_id=n) for n in (12345678901234567, "7", -1)])
    assert [row.message_id for row in rows] == ["12345678901234567", "7", "-1"]


def test_number_is_understood_when_written_as_text_or_number(spark: SparkSession) -> None:
    numbers: list[tuple[object, object, object, float]] = [
        (1, 2**63 - 1, 0.25, 0.25),
        (-0, -(2**63), 1, 1.0),
        ("2147483647", "9223372036854775807", "1e-3", 0.001),
        ("-2147483648", "-9223372036854775808", "-.5", -0.5),
        (" +007\t", "\r\n5 ", " 5. ", 5.0),
        (None, "000000000000000000000000005", "1E+2", 100.0),
        (None, None, "-Infinity", float("-inf")),
        (None, None, 10**22, 1e22),
    ]
    rows = judge(
        spark,
        [trace_line(attempt=n, session_seq=seq, sample_rate=rate) for n, seq, rate, _ in numbers],
    )
    assert [(row.reason, row.attempt, row.session_seq, row.sample_rate) for row in rows] == [
        (None, None if n is None else int(str(n)), None if seq is None else int(str(seq)), rate)
        for n, seq, _, rate in numbers
    ]
    [unknown] = judge(spark, [trace_line(sample_rate="NaN")])
    assert (unknown.reason, str(unknown.sample_rate)) == (None, "nan")


def test_number_is_refused_when_no_engine_should_guess(spark: SparkSession) -> None:
    wrong: list[tuple[str, object]] = [
        *(("attempt", text) for text in ("", "-", "1_000", "١٢", "0x10", "5\0", "\u00a05", "5.0")),
        *(("attempt", number) for number in (1.0, 2**31, 10**30, True, [1])),
        *(("session_seq", number) for number in (2**63, -(2**63) - 1, 1e3, "1e3")),
        *(("sample_rate", text) for text in ("1.5d", "1f", "0x1p3", ".", "1e", "nan1", "+NaN")),
    ]
    rows = judge(spark, [trace_line() | {name: value} for name, value in wrong])
    for row, (name, value) in zip(rows, wrong, strict=True):
        assert (row.reason or "all is well").startswith(f"{name} is not a number"), (name, value)


def test_fields_are_shown_when_a_row_of_parquet_is_bad(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"message_id": 'a"\\\n\x1f', "shard_id": "é", "sent_at": T0, "attempt": 1, "stream": "x"},
        {"message_id": "b" * 5000, "shard_id": "é", "sent_at": T0, "attempt": 1, "stream": "x"},
    ]
    path = write_parquet(tmp_path / "x.parquet", rows)
    columns = {name: name for name in TRACE_COLUMNS}
    with pa.OSFile(str(path)) as file:
        given = pa.Table.from_batches(parquet_batches(file, "x", columns), LOOSE)
    first, second = judged_traces(spark.createDataFrame(given), RULES).orderBy("line").collect()
    assert first.raw == (
        '{"message_id":"a\\"\\\\\\n\u241f","shard_id":"é","sent_at":"2026-11-20T12:00:00.000000Z",'
        '"attempt":"1","stream":"x"}'
    )
    assert len(second.raw) == 4096


def test_raw_is_cut_between_characters_when_line_is_long(spark: SparkSession) -> None:
    *rows, _ = judge(spark, ["é" * 5000, "x" + "é" * 5000, "y" * 4096, "{}"])
    assert [row.raw for row in rows] == ["é" * 2048, "x" + "é" * 2047, "y" * 4096]


def test_faults_of_the_reader_are_reasons_when_given(spark: SparkSession) -> None:
    given = [
        damaged("a", "the gzip file breaks off", raw='{"message_id": "cut'),
        damaged("a", "the line is not UTF-8", line=3, raw=json.dumps(trace_line())),
    ]
    rows = judged_traces(spark.createDataFrame(pa.Table.from_batches(given)), RULES)
    assert [(row.line, row.reason) for row in rows.orderBy("line").collect()] == [
        (None, "the gzip file breaks off"),
        (3, "the line is not UTF-8"),
    ]


def test_only_the_sample_is_kept_when_rate_is_below_one(spark: SparkSession) -> None:
    lines: list[Line | str] = [trace_line(number) for number in range(2000)]
    judged = sampled(judged_traces(loose(spark, [*lines, "bad"]), RULES), Eras(CellShape(60, 0.25)))
    found = {row.reason: row["count"] for row in judged.groupBy("reason").count().collect()}
    assert 400 < found[None] < 600
    assert found["the line is not JSON"] == 1
