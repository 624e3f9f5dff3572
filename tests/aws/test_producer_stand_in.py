"""The producer's wrapper with boto3's own clients, on stand-ins of Kinesis and S3."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from shardaudit.producer import traced
from shardaudit.producer.trace_folder import S3Folder
from shardaudit.producer.trace_log import TraceLog
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.s3proxy import s3_proxy
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.aws.streams import Stream
from tests.bench.producer_day import filed
from tests.unit.producer.puts import (
    QUICK,
    TELLER,
    logged,
    records,
    traces,
    unpacked,
    wait_until,
)
from tests.unit.simulate.kinesis import name

pytestmark = pytest.mark.aws


@pytest.fixture
def stream() -> Iterator[Stream]:
    with kinesis_stand_in() as url:
        events = Stream(endpoint_client(url), "events")
        events.make(2)
        yield events
        events.client.close()


def on_the_stream(stream: Stream) -> dict[tuple[str, str], str]:
    """(shard, sequence number) -> message id, of all that is there."""
    return {
        (name(shard), record["SequenceNumber"]): json.loads(record["Data"])["message_id"]
        for shard in (0, 1)
        for record in stream.get(stream.iterator("TRIM_HORIZON", name(shard)))["Records"]
    }


def test_each_record_of_the_stream_has_one_trace_when_some_were_put_again(
    stream: Stream, tmp_path: Path
) -> None:
    control = StandInControl(stream.client.meta.endpoint_url)
    fault = {"operation": "PutRecords", "per_record": True, "times": 30}
    control.change({"faults": [fault]})
    with traced(stream.client, str(tmp_path), producer_id="p") as producer:
        answer = producer.put_records(StreamName="events", Records=records(100))
        ack = producer.put_record(StreamName="events", Data=b'{"a": 1}', PartitionKey="k")
        assert len(producer.list_shards(StreamName="events")["Shards"]) == 2
    assert (answer["FailedRecordCount"], len(answer["Records"])) == (0, 100)
    lines = logged(tmp_path)
    traced_ids = {(ln["shard_id"], ln["sequence_number"]): ln["message_id"] for ln in lines}
    assert len(lines) == 101
    assert traced_ids == on_the_stream(stream)
    assert sorted(line["attempt"] for line in lines) == [1] * 71 + [2] * 30
    assert (ack["ShardId"], ack["SequenceNumber"]) in traced_ids
    assert {line["stream"] for line in lines} == {"events"}


def test_files_are_whole_objects_of_a_bucket(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s3" / "logs").mkdir(parents=True)
    with s3_proxy(tmp_path / "s3") as endpoint:
        for key, value in endpoint.environment().items():
            monkeypatch.setenv(key, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint.url)
        with traced(stream.client, "s3://logs/traces/", producer_id="p") as producer:
            producer.put_records(StreamName="events", Records=records(3))
            assert producer.flush()
            assert producer.stats[:3] == (3, 0, 0)
    files = list((tmp_path / "s3" / "logs" / "traces").iterdir())
    assert [line["message_id"] for line in unpacked(f.read_bytes() for f in files)] == [
        "m0",
        "m1",
        "m2",
    ]


def test_drops_are_exact_when_s3_stops_and_comes_again(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with s3_proxy(tmp_path) as endpoint:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint.url,
            region_name="us-east-1",
            aws_access_key_id=endpoint.credentials.access_key,
            aws_secret_access_key=endpoint.credentials.secret_key,
            config=Config(retries={"total_max_attempts": 1}),
        )
        folder = S3Folder("s3://logs/traces", client)
        log = TraceLog(folder, TELLER, replace(QUICK, queued=100, patience_s=0.2))
        log.add(traces(0, 50))
        assert log.flush(60)
    log.add(traces(50, 50))
    assert not log.flush()
    wait_until(lambda: len(log._queue) == 0)  # noqa: SLF001 - they are in the file that fails
    log.add(traces(100, 1000))
    port = int(endpoint.url.rpartition(":")[2])
    with s3_proxy(tmp_path, port=port, credentials=endpoint.credentials):
        assert log.flush(60)
        log.close()
    told = filed(tmp_path / "logs" / "traces")
    assert (told.traces, told.gaps, told.is_dense) == (200, 900, True)
    assert log.stats[:3] == (200, 900, 0)


def test_credentials_that_a_file_gets_later_are_used_for_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool writes new ones there each hour; those of the start are over then."""
    (tmp_path / "s3" / "logs").mkdir(parents=True)
    credentials = tmp_path / "credentials"
    with s3_proxy(tmp_path / "s3") as endpoint:
        for key in endpoint.environment():
            monkeypatch.delenv(key, raising=False)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint.url)
        folder = S3Folder("s3://logs/traces", None)
        key, secret = endpoint.credentials.access_key, endpoint.credentials.secret_key
        for known in ("", f"aws_access_key_id=over\naws_secret_access_key={secret}"):
            credentials.write_text(f"[default]\n{known}\n")
            with pytest.raises(Exception, match=r"InvalidAccessKeyId|credentials"):
                folder.write("a.jsonl", b"")
        credentials.write_text(
            f"[default]\naws_access_key_id={key}\naws_secret_access_key={secret}\n"
        )
        folder.write("a.jsonl", b"a line")
    assert (tmp_path / "s3" / "logs" / "traces" / "a.jsonl").read_bytes() == b"a line"


def test_client_stays_while_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # and does not listen
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            monkeypatch.setenv(name, "us-east-1")
        folder = S3Folder("s3://logs/traces", None)
        with pytest.raises(Exception, match="Could not connect"):
            folder.write("a.jsonl", b"")
    assert folder._client is not None  # noqa: SLF001 - a new one costs a tenth of a second
