"""What `shardaudit.producer` writes, as the ingest reads it."""

import json
from datetime import timedelta
from pathlib import Path

from pyspark.sql import functions as F

from shardaudit.adapters.clock import now
from shardaudit.columns.in_sample import in_sample
from shardaudit.producer import traced
from shardaudit.producer.sample import is_sampled
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, T0, unpacked_lines
from tests.history import Question, SinkRow
from tests.spark.lake import Lake
from tests.spark.trial import Trial
from tests.unit.producer.pages import PRODUCERS, shown
from tests.unit.producer.puts import FakeKinesis, records

IDS = [
    "",
    "m0",
    "ä" * 40,
    "\u20ac\U0001f600",
    *("x" * n for n in (3, 4, 7, 8, 31, 32, 33, 64, 200)),
]


def test_producer_samples_the_ids_that_every_engine_samples(lake: Lake) -> None:
    ids = IDS + [f"order-{number}" for number in range(500)]
    rows = lake.spark.createDataFrame([(each,) for each in ids], "message_id string")
    for rate in (0.01, 0.5, 0.999999):
        told = rows.select("message_id", in_sample(F.col("message_id"), rate).alias("is_in"))
        expected = {row.message_id: row.is_in for row in told.collect()}
        assert {each: is_sampled(each, rate) for each in ids} == expected


def test_traces_are_kept_and_a_gap_is_told_when_a_producer_dropped_some(lake: Lake) -> None:
    sent_at = (T0 + timedelta(seconds=5)).isoformat()
    records = [
        {"Data": json.dumps({"message_id": f"m{n}", "sent_at": sent_at}), "PartitionKey": "k"}
        for n in range(3)
    ]
    nameless = [{"Data": "no json", "PartitionKey": "k"}] * 2
    with traced(FakeKinesis(), str(lake.traces), producer_id="p") as producer:
        producer.put_records(StreamName="kinesis-events", Records=records + nameless)
    [file] = lake.traces.iterdir()
    assert b'"health"' in b"".join(unpacked_lines(file.read_bytes()))
    summary = lake.ingest(now=NOW + timedelta(days=365))
    kept = lake.kept()
    assert sorted((row.message_id, row.session_seq, row.attempt) for row in kept) == [
        ("m0", 0, 1),
        ("m1", 1, 1),
        ("m2", 2, 1),
    ]
    assert [(row.line, row.reason) for row in lake.refused()] == [
        (4, "gap: 2 traces were dropped by the producer")
    ]
    assert (summary.trace_rows, summary.quarantined) == (3, 1)


def test_file_of_an_idle_producer_is_read_and_brings_nothing(lake: Lake) -> None:
    with traced(FakeKinesis(), str(lake.traces), producer_id="p") as producer:
        producer.put_records(StreamName="kinesis-events", Records=records(1))
        assert producer.flush()
    files = {f: b"".join(unpacked_lines(f.read_bytes())) for f in lake.traces.iterdir()}
    [idle] = [f for f, lines in files.items() if b"message_id" not in lines]
    assert b'"health"' in files[idle]
    summary = lake.ingest(now=NOW + timedelta(days=365))
    assert (summary.trace_rows, summary.quarantined) == (1, 0)
    lake.traces.joinpath("later.jsonl.zst").write_bytes(idle.read_bytes())
    summary = lake.ingest(now=NOW + timedelta(days=365))
    assert (summary.trace_rows, summary.quarantined, summary.trace_files) == (0, 0, 1)


def test_log_of_a_kpl_user_is_taken_as_the_page_shows_it(lake: Lake) -> None:
    *_, of_kpl = shown("json", PRODUCERS)
    lake.traces.mkdir(exist_ok=True)
    lake.traces.joinpath("kpl.jsonl").write_text(of_kpl)
    lake.ingest(now=NOW + timedelta(days=365))
    first, second = sorted(lake.kept(), key=lambda row: str(row.message_id))
    assert (first.message_id, second.message_id, lake.refused()) == ("a1", "a2", [])
    assert first.sequence_number == second.sequence_number  # of one aggregate
    assert (first.attempt, second.attempt, first.location) == (1, 2, "producer")
    assert first.sent_at < first.acked_at


def test_a_stream_is_ok_when_all_that_was_put_landed(warehouse: Warehouse, tmp_path: Path) -> None:
    at = now().replace(second=0, microsecond=0) - timedelta(hours=1)
    stream = Trial(warehouse, tmp_path, Question(at, at + timedelta(minutes=2), now()))
    kinesis = FakeKinesis(lambda call, record: call == 1 and record["PartitionKey"] == "7")
    sent = {f"m{n}": at + timedelta(seconds=5 * n) for n in range(20)}
    with traced(kinesis, stream.stream.traces.path, producer_id="p") as producer:
        answer = producer.put_records(
            StreamName="events",
            Records=[
                {
                    "Data": json.dumps({"message_id": name, "sent_at": sent_at.isoformat()}),
                    "PartitionKey": name.removeprefix("m"),
                }
                for name, sent_at in sent.items()
            ],
        )
    late = timedelta(seconds=3)
    stream.land(
        [
            SinkRow(name, ack["ShardId"], ack["SequenceNumber"], sent_at, sent_at + late)
            for (name, sent_at), ack in zip(sent.items(), answer["Records"], strict=True)
        ]
    )
    stream.ingest()
    idle = json.dumps({"health": {}, "session": "s"}).encode()
    Path(stream.stream.traces.path, "idle.jsonl").write_bytes(idle)
    stream.ingest()
    found = stream.audit().audit
    told = (found.verdict, found.sent, found.landed, found.matched, found.trace_coverage)
    assert told == ("ok", 20, 20, 20, 1.0)
