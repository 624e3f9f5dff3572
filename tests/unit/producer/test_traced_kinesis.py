"""The wrapped client as a producer uses it: boto3's answers, a trace of what they acknowledge."""

import json
import logging
import math
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any  # of boto3's answers
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.consumer import trace
from shardaudit.model.errors import ConfigError
from shardaudit.producer import traced
from shardaudit.producer.message_fields import MessageFields
from shardaudit.producer.packed_lines import UNFIT
from shardaudit.producer.prepared_records import NO_ROOM, PreparedRecords, PutRecord
from shardaudit.producer.sample import are_sampled, is_sampled, xxh64
from shardaudit.producer.trace_folder import trace_folder
from shardaudit.producer.trace_log import TraceLog
from shardaudit.producer.traced_kinesis import TracedKinesis
from tests.unit.producer.puts import (
    QUICK,
    TELLER,
    ClientError,
    FakeKinesis,
    RaisingHandler,
    StubbornFolder,
    logged,
    records,
)


def test_each_acknowledged_record_is_a_line_when_some_fail(tmp_path: Path) -> None:
    kinesis = FakeKinesis(lambda call, record: call == 1 and record["PartitionKey"] == "1")
    with traced(kinesis, str(tmp_path), producer_id="orders/1") as producer:
        answer = producer.put_records(StreamName="events", Records=records(3))
    assert [entry["SequenceNumber"] for entry in answer["Records"]] == ["1", "3", "2"]
    first, _, second = lines = logged(tmp_path)
    assert [(line["message_id"], line["attempt"]) for line in lines] == [
        ("m0", 1),
        ("m2", 1),
        ("m1", 2),
    ]
    assert first["sent_at"] == second["sent_at"] == "2026-11-24T12:00:00Z"
    assert first["acked_at"] <= second["acked_at"]
    told = [first[name] for name in ("stream", "producer_id", "sample_rate", "sequence_number")]
    assert told == ["events", "orders/1", 1.0, "1"]


def test_nothing_is_traced_that_was_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    kinesis = FakeKinesis(lambda _, record: record["PartitionKey"] == "1")
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        answer = producer.put_records(StreamName="events", Records=records(2))
    assert answer["FailedRecordCount"] == 1
    assert [line["message_id"] for line in logged(tmp_path)] == ["m0"]


def test_one_record_is_put_with_what_was_added_to_it(tmp_path: Path) -> None:
    kinesis = FakeKinesis()
    arn = "arn:aws:kinesis:us-east-1:123456789012:stream/orders"
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        producer.put_record(StreamARN=arn, Data=b'{"a":1}', PartitionKey="k")
        assert producer.list_shards() == "passed on"
    [[put]] = kinesis.calls
    [line] = logged(tmp_path)
    content = json.loads(put["Data"])
    assert (line["message_id"], line["sent_at"]) == (content["message_id"], content["sent_at"])
    assert (line["stream"], line["attempt"]) == ("orders", 3)


def test_records_without_an_id_are_put_and_told_as_a_gap(tmp_path: Path) -> None:
    kinesis = FakeKinesis()
    odd: list[Any] = [{"Data": b"no json", "PartitionKey": "k"}]
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        producer.put_records(StreamName="events", Records=odd * 2 + records(1))
        producer.flush()
        assert producer.stats[:3] == (1, 2, 0)
    assert kinesis.calls[0][:2] == odd * 2
    trace, gap = logged(tmp_path)
    assert (trace["session_seq"], gap["session_seq"], gap["gap"]) == (0, 1, 2)


REFUSALS = ["ValidationException", "InvalidArgumentException"]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_records_go_as_they_were_given_when_what_is_added_has_no_room(
    refusal: str, tmp_path: Path
) -> None:
    given: list[Any] = [{"Data": b'{"a":1}', "PartitionKey": "k"}, *records(1)]
    kinesis = FakeKinesis(most_bytes=sum(len(each["Data"]) for each in given), refusal=refusal)
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        answer = producer.put_records(StreamName="events", Records=given)
    assert (len(kinesis.calls), kinesis.calls[1], answer["FailedRecordCount"]) == (2, given, 0)
    assert [line.get("reason", line.get("message_id")) for line in logged(tmp_path)] == [
        "m0",
        NO_ROOM,
    ]


def test_one_record_goes_as_it_was_given_when_what_is_added_has_no_room(tmp_path: Path) -> None:
    kinesis = FakeKinesis(most_bytes=7)
    given = {"StreamName": "events", "Data": b'{"a":1}', "PartitionKey": "k"}
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        assert producer.put_record(**given)["SequenceNumber"] == "1"
    assert kinesis.calls[1] == [given]
    assert [line["reason"] for line in logged(tmp_path)] == [NO_ROOM]


@pytest.mark.parametrize(
    ("data", "code", "calls"),
    [
        (b'{"a":"too large"}', REFUSALS[0], 2),
        (b'{"a":1}', "AccessDeniedException", 1),
        (records(1)[0]["Data"], REFUSALS[0], 1),  # nothing is added
    ],
)
def test_refusal_is_the_callers_when_it_is_not_by_us(
    data: bytes, code: str, calls: int, tmp_path: Path
) -> None:
    kinesis = FakeKinesis(most_bytes=7, refusal=code)
    record = {"Data": data, "PartitionKey": "k"}
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        with pytest.raises(ClientError, match=code):
            producer.put_record(StreamName="events", **record)
        with pytest.raises(ClientError, match=code):
            producer.put_records(StreamName="events", Records=[record])
    assert (len(kinesis.calls), logged(tmp_path)) == (2 * calls, [])


@pytest.mark.parametrize("where", ["wait", "second put"])
def test_acknowledged_are_traced_when_a_put_is_interrupted(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        if where == "wait":
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    kinesis = FakeKinesis(
        lambda _, record: record["PartitionKey"] == "1", raising={2: KeyboardInterrupt()}
    )
    with traced(kinesis, str(tmp_path), producer_id="p") as producer:
        with pytest.raises(KeyboardInterrupt):
            producer.put_records(StreamName="events", Records=records(3))
        assert producer.flush()
    assert [line["message_id"] for line in logged(tmp_path)] == ["m0", "m2"]


def test_sample_is_dense_and_the_same_everywhere(tmp_path: Path) -> None:
    with traced(FakeKinesis(), str(tmp_path), producer_id="p", sample_rate=0.1) as producer:
        producer.put_records(StreamName="events", Records=records(400))
    lines = logged(tmp_path)
    expected = [f"m{n}" for n in range(400) if is_sampled(f"m{n}", 0.1)]
    assert [line["message_id"] for line in lines] == expected
    assert 20 < len(lines) < 60
    assert [line["session_seq"] for line in lines] == list(range(len(lines)))
    assert {line["sample_rate"] for line in lines} == {0.1}


# Those of xxHash itself.
@pytest.mark.parametrize(
    ("content", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hash_is_that_of_xxhash(content: bytes, hashed: int) -> None:
    others = [b"\xff" * len(content), content, bytes(len(content))]
    for some in ([content], others):
        assert xxh64(some, 0)[some.index(content)] % 2**64 == hashed


@given(st.lists(st.text(max_size=70)), st.sampled_from([1e-6, 0.1, 0.5, 1.0]))
def test_sample_of_many_is_that_of_each(ids: list[str], rate: float) -> None:
    assert are_sampled(ids, rate) == [is_sampled(one, rate) for one in ids]


def test_threads_share_one_dense_session(tmp_path: Path) -> None:
    with traced(FakeKinesis(), str(tmp_path), producer_id="p") as producer:

        def put(first: int) -> None:
            producer.put_records(StreamName="events", Records=records(10, first=first))

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(put, range(0, 1000, 10)))
    lines = logged(tmp_path)
    assert sorted(line["session_seq"] for line in lines) == list(range(1000))
    assert len({line["message_id"] for line in lines}) == 1000


def test_puts_go_on_when_the_log_cannot_be_written_or_is_closed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    kinesis = FakeKinesis()
    producer = traced(kinesis, str(tmp_path / "file"), producer_id="p")
    producer._log._limits = producer._log._limits.__class__(patience_s=0.05)  # noqa: SLF001 - not ten seconds
    producer.put_records(StreamName="events", Records=records(3))
    producer.close()
    producer.close()
    producer.put_records(StreamName="events", Records=records(2))
    assert (producer.stats, len(kinesis.calls)) == ((0, 5, 0, 0), 2)


def test_flush_waits_no_longer_than_it_is_told() -> None:
    folder = StubbornFolder(is_stopped=True)
    log = TraceLog(folder, TELLER, replace(QUICK, patience_s=5))
    with TracedKinesis(FakeKinesis(), log, MessageFields(), 1.0) as producer:
        producer.put_records(StreamName="events", Records=records(1))
        since = time.monotonic()
        assert not producer.flush(0.02)
        assert time.monotonic() - since < 4
        folder.is_stopped = False


def test_s3_gets_whole_objects_by_the_clients_own_key() -> None:
    class S3:
        def __init__(self) -> None:
            self.put: list[dict[str, Any]] = []

        def put_object(self, **request: Any) -> None:
            self.put.append(request)

    client = S3()
    trace_folder("s3://logs/traces/events/", client).write("a", b"x")
    trace_folder("s3a://logs", client).write("a", b"x")
    assert client.put == [
        {"Bucket": "logs", "Key": "traces/events/a", "Body": b"x"},
        {"Bucket": "logs", "Key": "a", "Body": b"x"},
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        *({"sample_rate": wrong} for wrong in (0, 4e-7, 1.1, "1", True, math.nan, Decimal("0.5"))),
        *({"producer_id": wrong} for wrong in ("", 4711, None, b"p", "m\udcfcnchen")),
        *({"message_id": wrong} for wrong in ("", 7, ["id"])),
        *({"sent_at": wrong} for wrong in ("", 7)),
        *({"to": wrong} for wrong in ("", None, Path("logs"))),
        *({"to": wrong} for wrong in ("gs://b/x", "S3://b", "s3n://b", "https://b", "s3:///x")),
    ],
)
def test_arguments_are_refused_when_no_log_can_come_of_them(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        traced(FakeKinesis(), **({"to": "logs", "producer_id": "p"} | arguments))


@pytest.mark.parametrize("name", ["client", "s3"])
def test_client_is_refused_when_its_calls_are_awaited(name: str) -> None:
    class Awaited:  # as aiobotocore's AioBaseClient
        async def _make_api_call(self, operation: str, request: object) -> None:
            raise NotImplementedError

    clients: dict[str, Any] = {"client": FakeKinesis(), "s3": Mock()} | {name: Awaited()}
    with pytest.raises(ConfigError, match=rf"{name}.*Awaited"):
        traced(to="s3://logs/x", producer_id="p", **clients)
    if name == "s3":
        with pytest.raises(ConfigError, match=r"s3.*Awaited"):
            trace("s3://x", stream="e", location="r", producer_id="p", s3=Awaited())


@pytest.mark.parametrize("odd", [None, 7, {"ShardId": 1}])
def test_answer_of_no_kinesis_is_a_gap_and_the_log_goes_on(odd: object, tmp_path: Path) -> None:
    class Odd(FakeKinesis):
        def _ack(self) -> dict[str, Any]:
            return super()._ack() | ({"ShardId": odd} if self._number == 2 else {})

    with traced(Odd(), str(tmp_path), producer_id="p") as producer:
        producer.put_records(StreamName="events", Records=records(3))
        assert producer.flush()
        assert producer.stats[:3] == (2, 1, 0)
        producer.put_records(StreamName="events", Records=records(1, first=3))
    told = [line.get("message_id", line.get("reason")) for line in logged(tmp_path)]
    assert told == ["m0", UNFIT, "m2", "m3"]


def test_what_a_message_was_made_from_is_in_its_line(tmp_path: Path) -> None:
    made = [
        {"Data": json.dumps({"message_id": f"c{n}", "of": of}), "PartitionKey": "k"}
        for n, of in enumerate(["p", ["p", 7], None, "c3", {"id": "p"}, "p" * 1025])
    ]
    with traced(FakeKinesis(), str(tmp_path), producer_id="s", parent_ids="of") as producer:
        producer.put_records(StreamName="lines", Records=made)
        producer.flush()
        assert producer.stats[:3] == (3, 3, 0)
    lines = [line for line in logged(tmp_path) if "message_id" in line]
    assert [(line["message_id"], line.get("parent_ids")) for line in lines] == [
        ("c0", ["p"]),
        ("c1", ["p", "7"]),
        ("c2", None),
    ]


def test_own_fault_is_counted_and_logged_once_and_never_the_callers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = [caplog.handler, RaisingHandler()]
    monkeypatch.setattr(logging.getLogger(), "handlers", handlers)

    class Faulty(MessageFields):
        def prepared(self, records: Iterable[PutRecord], at: str) -> PreparedRecords:
            return super().prepared(records, at)._replace(message_ids=[])

    log = TraceLog(folder := StubbornFolder(), TELLER, QUICK)
    with TracedKinesis(FakeKinesis(), log, Faulty(), 1.0) as producer:
        answer = producer.put_records(StreamName="events", Records=records(3))
        ack = producer.put_record(StreamName="events", **records(1)[0])
    assert [entry["SequenceNumber"] for entry in [*answer["Records"], ack]] == ["1", "2", "3", "4"]
    assert producer.stats[:3] == (0, 4, 0)
    [gap] = folder.lines()
    assert (gap["gap"], gap["reason"]) == (4, "no trace could be made: ValueError")
    own = [line for line in caplog.records if line.name == "shardaudit.producer.traced_kinesis"]
    assert len(own) == 1
