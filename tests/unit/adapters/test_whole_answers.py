"""What an answer says of which the end never came: nothing, and a later try may work."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import IncompleteReadError

from shardaudit.adapters.aws.dynamodb import LeaseTableUnavailableError, read_leases
from shardaudit.adapters.aws.kinesis import StreamUnavailableError, kinesis_client, stream_facts
from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.adapters.aws.s3 import s3_client
from shardaudit.adapters.files.files import StorageError, read_texts, s3_access
from shardaudit.model.config.settings import Settings
from shardaudit.model.get_records import ThrottledError

SHARD = {
    "ShardId": "shardId-000000000000",
    "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "1"},
    "SequenceNumberRange": {"StartingSequenceNumber": "1"},
}
ANSWERS = {
    "Kinesis_20131202.DescribeStreamSummary": {
        "StreamDescriptionSummary": {"RetentionPeriodHours": 24}
    },
    "Kinesis_20131202.ListShards": {"Shards": [SHARD]},
    "Kinesis_20131202.GetRecords": {"Records": [], "MillisBehindLatest": 5},
    "DynamoDB_20120810.Scan": {"Items": [], "Count": 0},
}
LISTED = b'<?xml version="1.0"?><ListBucketResult><Name>b</Name><KeyCount>0</KeyCount>'
CONTENT = b"a text of a table's log"


class _CutOff(BaseHTTPRequestHandler):
    """Whole answers, but for `cut`: of that operation only the share `told`."""

    protocol_version = "HTTP/1.1"
    cut, told = "", 0.0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        operation = self.headers["X-Amz-Target"]
        self._answer(json.dumps(ANSWERS[operation]).encode(), is_whole=operation != self.cut)

    def do_GET(self) -> None:
        whole = LISTED + b"</ListBucketResult>" if "list-type" in self.path else CONTENT
        self._answer(whole, is_whole=not self.cut)

    def do_HEAD(self) -> None:
        self._answer(CONTENT, is_whole=False)

    def _answer(self, content: bytes, *, is_whole: bool) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content if is_whole else content[: int(len(content) * self.told)])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with ThreadingHTTPServer(("127.0.0.1", 0), _CutOff) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        aws = {"region": "eu-west-1", "endpoint_url": url}
        yield Settings.model_validate({"warehouse": "w", "aws": aws, "streams": {}})
        server.shutdown()


def facts(settings: Settings) -> object:
    return stream_facts(kinesis_client(settings), "events").shards


def page(settings: Settings) -> object:
    pages = ShardPages(StreamAddress("events", "eu-west-1", settings.aws.endpoint("kinesis")))
    return pages.page("iterator", limit=1).is_level is False


def leases(settings: Settings) -> object:
    return read_leases(settings, "leases", stream_name="events") == []


def listed(settings: Settings) -> object:
    client = s3_client(settings.aws)
    client.head_object(Bucket="b", Key="k")
    return client.list_objects_v2(Bucket="b")["KeyCount"] == 0


def texts(settings: Settings) -> object:
    return read_texts(["s3a://b/k"], s3_access(settings.aws)) == [CONTENT.decode()]


@pytest.mark.parametrize(
    ("cut", "asked", "error"),
    [
        ("Kinesis_20131202.DescribeStreamSummary", facts, StreamUnavailableError),
        ("Kinesis_20131202.ListShards", facts, StreamUnavailableError),
        ("Kinesis_20131202.GetRecords", page, ThrottledError),
        ("DynamoDB_20120810.Scan", leases, LeaseTableUnavailableError),
        ("ListObjectsV2", listed, IncompleteReadError),
        ("GetObject", texts, StorageError),
    ],
)
def test_answer_is_none_when_its_end_is_lacking(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    cut: str,
    asked: Callable[[Settings], object],
    error: type[Exception],
) -> None:
    assert asked(settings)
    monkeypatch.setattr(_CutOff, "cut", cut)
    for told in (0.0, 0.1, 0.95):
        monkeypatch.setattr(_CutOff, "told", told)
        with pytest.raises(error):
            asked(settings)
