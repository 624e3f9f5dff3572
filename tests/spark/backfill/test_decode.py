"""Records of the stream as rows of a sink: every source, every type, and what does not fit."""

import io
import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from shardaudit.adapters.files.json_traces import json_batches
from shardaudit.adapters.files.loose_traces import LOOSE
from shardaudit.backfill.kinesis_source import SCHEMA_DDL
from shardaudit.backfill.rules.column_sources import column_sources
from shardaudit.backfill.rules.decode import (
    INTERNAL,
    ORDER,
    RAW,
    REASON,
    SENT_AT,
    decoded,
    unique_rows,
)
from shardaudit.ingest.rules.refused_traces import TraceRules, judged_traces
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.input_columns import TRACE_COLUMNS, SinkField, Source
from tests.builders import SHARD, T0, jsonl, sequence, trace_line
from tests.odd_times import ODD_TIMES

pytestmark = pytest.mark.apache_spark  # repairs

CHECKS = {
    "constraint positive": "amount IS NULL OR amount > 0",
    "constraint cheap": "coalesce(price, 1) < 100",
}
LANDED = T0 + timedelta(hours=1)
ARRIVED = T0 + timedelta(seconds=2)
FIELDS = [
    SinkField("id", "string", nullable=False),
    SinkField("shard_id", "string"),
    SinkField("sequence_number", "string"),
    SinkField("sent_at", "timestamp"),
    SinkField("landed_at", "bigint"),
    SinkField("arrived_at", "string"),
    SinkField("day", "string", partitions=True),
    SinkField("amount", "int"),
    SinkField("price", "decimal(10,2)"),
    SinkField("user", "struct<name:string,tags:array<string>>"),
    SinkField("odd'name", "boolean"),
    SinkField("payload", "string"),
    SinkField("local", "timestamp_ntz"),
]


def sources() -> list[Source]:
    return column_sources(
        FIELDS,
        columns={"message_id": "id"},
        derived={"day": "date_format(sent_at, 'yyyy-MM-dd')"},
        paths={"id": "$.meta.id", "payload": "$"},
    )


def decode(spark: SparkSession, *contents: bytes, by_user: bytes | None = None) -> list[Row]:
    made = None if by_user is None else bytearray(by_user)
    rows = [
        (
            "w1",
            SHARD,
            sequence(n),
            0,
            "key",
            ARRIVED + timedelta(seconds=n),
            bytearray(one),
            made,
            None,
        )
        for n, one in enumerate(contents)
    ]
    records = spark.createDataFrame(rows, SCHEMA_DDL)
    found = decoded(records, sources(), ids=("id", "sent_at"), landed_at=LANDED, checks=CHECKS)
    return sorted(found.collect(), key=lambda row: str(row[ORDER].sequence_number))


def content(**fields: object) -> bytes:
    message = {"meta": {"id": "m1"}, "sent_at": T0.isoformat(), **fields}
    return json.dumps(message).encode()


def utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


def test_every_column_is_filled_from_its_source(spark: SparkSession) -> None:
    user = {"name": "日本", "tags": ["a", "b"]}
    whole = content(amount=7, price="1.50", user=user, **{"odd'name": True})
    (row,) = decode(spark, whole)
    assert row[REASON] is None
    assert (row.id, row.shard_id, row.sequence_number) == ("m1", SHARD, sequence(0))
    assert (utc(row.sent_at), row.day) == (T0, "2026-11-20")
    assert row.landed_at == LANDED.timestamp() * 1000
    assert datetime.fromisoformat(row.arrived_at) == ARRIVED
    assert (row.amount, str(row.price), row["odd'name"]) == (7, "1.50", True)
    assert (row.user.name, row.user.tags) == ("日本", ["a", "b"])
    assert row.payload.encode() == whole


def test_a_users_decoder_is_believed_and_the_quarantine_has_the_original(
    spark: SparkSession,
) -> None:
    (row,) = decode(spark, b"\xff\x01", by_user=content(amount=7))
    assert (row.id, row.amount, row[REASON], row[RAW]) == ("m1", 7, None, "FF01")
    (refused,) = decode(spark, content(), by_user=b"")
    assert refused[REASON] == "the decoder could not read the content"
    assert refused[RAW] == content().decode()


@pytest.mark.parametrize(
    "sent_at", ["2026-11-20T13:00:00+01:00", "2026-11-20T12:00:00.000Z", 1795176000000]
)
def test_times_have_three_forms(spark: SparkSession, sent_at: object) -> None:
    (row,) = decode(spark, content(sent_at=sent_at))
    assert (utc(row.sent_at), row[REASON]) == (T0, None)


def test_time_is_read_as_that_of_a_trace(spark: SparkSession) -> None:
    times = [*ODD_TIMES, 1795176000000, 1795176000000.5, True, 2**70, [1]]
    lines = [trace_line(sent_at=time) for time in times]
    columns = {name: name for name in TRACE_COLUMNS}
    batches = json_batches(io.BytesIO(jsonl(lines)), "a.jsonl", columns)
    loose = spark.createDataFrame(pa.Table.from_batches(batches, LOOSE))
    rules = TraceRules(stream_names=["events"], shape=Eras(CellShape(60, 1.0)), now=LANDED)
    traced = [row.sent_at for row in judged_traces(loose, rules).orderBy("line").collect()]
    replayed = [row.sent_at for row in decode(spark, *(content(sent_at=time) for time in times))]
    assert dict(zip(map(str, times), replayed, strict=True)) == dict(
        zip(map(str, times), traced, strict=True)
    )
    assert sum(at is not None for at in replayed) == 10


@pytest.mark.parametrize(
    "local",
    [
        "2026-11-20T13:00:00+01:00",
        "2026-11-20T17:30:00.000+0530",
        "2026-11-20T12:00:00Z",
        "2026-11-20 12:00:00",
        1795176000000,
    ],
)
def test_column_without_a_zone_is_filled_with_utc(spark: SparkSession, local: object) -> None:
    (row,) = decode(spark, content(local=local))
    assert (row.local, row[REASON]) == (T0.replace(tzinfo=None), None)


def test_sent_at_is_known_when_its_column_has_no_zone(spark: SparkSession) -> None:
    fields = [SinkField("id", "string"), SinkField("sent_at", "timestamp_ntz")]
    of_local = column_sources(fields, columns={"message_id": "id"}, derived={}, paths={})
    sent_at = "2026-11-20T13:00:00+01:00"
    message = json.dumps({"id": "m1", "sent_at": sent_at}).encode()
    record = ("w1", SHARD, "1", 0, "k", ARRIVED, bytearray(message), None, None)
    records = spark.createDataFrame([record], SCHEMA_DDL)
    found = decoded(records, of_local, ids=("id", "sent_at"), landed_at=LANDED, checks={})
    (row,) = found.collect()
    assert (row.sent_at, utc(row[SENT_AT])) == (T0.replace(tzinfo=None), T0)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b"{not json", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"", "no JSON"),
        (b"3", "column id has no value"),
        (json.dumps({"sent_at": T0.isoformat()}).encode(), "column id has no value"),
        (content(amount=1.7), "amount is no int"),
        (content(amount=2**40), "amount is no int"),
        (content(amount="many"), "amount is no int"),
        (content(user=[1]), "user is no struct"),
        (content(sent_at="2026-11-20 12:00:00"), "sent_at is no timestamp"),
        (content(local="2026-02-30T12:00:00Z"), "local is no timestamp_ntz"),
        (content(sent_at=None), "day has no value"),
        (content(amount=-1), "constraint positive does not hold: amount IS NULL OR amount > 0"),
        (content(price="100"), "constraint cheap does not hold"),
    ],
)
def test_what_does_not_fit_has_a_reason_and_its_text(
    spark: SparkSession, broken: bytes, reason: str
) -> None:
    bad, good = decode(spark, broken, content(amount=None))
    assert reason in bad[REASON]
    assert bad[RAW] is not None
    assert (good[REASON], good.amount) == (None, None)


def test_message_that_stands_twice_is_one_row_the_first(spark: SparkSession) -> None:
    rows = [
        ("w1", SHARD, number, 0, "k", ARRIVED, bytearray(content()), None, None)
        for number in ("1000", "999")
    ]
    records = spark.createDataFrame(rows, SCHEMA_DDL)
    found = decoded(records, sources(), ids=("id", "sent_at"), landed_at=LANDED, checks=CHECKS)
    (row,) = unique_rows(found).drop(*INTERNAL).collect()
    assert row.sequence_number == "999"
