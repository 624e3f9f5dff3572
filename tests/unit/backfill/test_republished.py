"""What is handed to somebody else: records of a stream again, and requests."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shardaudit.adapters.aws.kinesis import MAX_RECORDS, PutRefusedError, put_all
from shardaudit.adapters.request_target import (
    Addressee,
    RequestRefusedError,
    RequestUndeliveredError,
    addressee,
    deliver,
)
from shardaudit.backfill.kinesis_source import _decoded
from shardaudit.backfill.rules.planned import StoredWindow
from shardaudit.backfill.rules.republished import ATTRIBUTE, marked, request_document
from shardaudit.model.config.parts import Aws, Backfill
from shardaudit.model.errors import ConfigError
from shardaudit.simulate.stand_in.server import StandIn
from tests.builders import T0
from tests.unit.backfill.windows import stored_window
from tests.unit.simulate.kinesis import Kinesis, name

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(message=st.dictionaries(st.text(), _JSON), indent=st.sampled_from([None, 2]))
def test_republished_message_is_the_same_with_one_attribute_more(
    message: dict[str, object], indent: int | None
) -> None:
    content = json.dumps(message, indent=indent).encode() + b"\n "
    again = json.loads(marked(content, "p-1"))
    assert again == message | {ATTRIBUTE: message.get(ATTRIBUTE, "p-1")}


def test_digits_stay_as_their_producer_wrote_them() -> None:
    assert marked(b'{"a": 1.10, "b": 1e400 }', "p") == (
        b'{"a": 1.10, "b": 1e400, "replayed_by": "p"}'
    )


@pytest.mark.parametrize("content", [b"", b"[1]", b"3", b"{", b"\xff{}", b'{"replayed_by": "x"}'])
def test_what_is_no_object_or_was_marked_before_goes_as_it_is(content: bytes) -> None:
    assert marked(content, "p") == content


def test_every_record_is_taken_once_when_some_of_them_fail(
    server: StandIn, kinesis: Kinesis
) -> None:
    kinesis.create(2)
    fault = {"operation": "PutRecords", "error": "InternalFailure", "per_record": True}
    server.account.control.change({"faults": [fault | {"times": 40}]})
    entries = [(f"key-{n}", b"%d" % n) for n in range(2 * MAX_RECORDS + 7)]
    asked: list[int] = []
    assert put_all(kinesis.client, "s", entries, check=lambda: asked.append(1)) == len(entries)
    assert len(asked) == 3  # before each call, whether the locks are held
    found = [one for shard in range(2) for one in kinesis.contents("TRIM_HORIZON", name(shard))]
    assert sorted(found) == list(range(len(entries)))


def test_records_that_are_never_taken_are_told(server: StandIn, kinesis: Kinesis) -> None:
    kinesis.create()
    fault = {"operation": "PutRecords", "error": "InternalFailure", "per_record": True}
    server.account.control.change({"faults": [fault | {"times": 1000}]})
    with pytest.raises(PutRefusedError, match="did not take 3 records"):
        put_all(kinesis.client, "s", [("k", b"x")] * 3, check=lambda: None, pause_s=0)


def windows() -> list[StoredWindow]:
    return [
        stored_window(window_id=f"{n:05}", window_start=T0, expected_ids=n, owner="not told")
        for n in (1, 2)
    ]


def test_request_names_its_windows_and_nothing_of_ours() -> None:
    text = request_document(windows(), stream_name="kinesis-events")
    document = json.loads(text)
    assert (document["plan_id"], document["stream_name"]) == ("events-1", "kinesis-events")
    assert document["iterator_type"] == "AT_TIMESTAMP"
    assert [one["expected_ids"] for one in document["windows"]] == [1, 2]
    assert document["windows"][0]["window_start"] == T0.isoformat()
    assert "owner" not in text
    assert request_document(windows(), stream_name="kinesis-events") == text


class Endpoint(BaseHTTPRequestHandler):
    """Keeps what is posted to it; answers `status`."""

    status: ClassVar[int] = 200
    posted: ClassVar[list[tuple[str, str | None, bytes]]] = []
    tokens: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append((self.path, self.headers["Idempotency-Key"], body))
        self.tokens.append(self.headers["Authorization"])
        self.send_response(self.status)
        if self.status == 302:
            self.send_header("Location", "/login")
        self.end_headers()

    def do_GET(self) -> None:
        """The page to which whoever is not known is sent."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.posted.clear()
    Endpoint.tokens.clear()
    Endpoint.status = 200
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/flink/backfills"
        server.shutdown()


def asked(request_to: str | None = None, **more: str) -> str:
    """Where a request went that a configuration of these keys sends."""
    keys = {"mode": "request"} | ({"request_to": request_to} if request_to else {}) | more
    to = addressee(Backfill.model_validate(keys))
    assert to is not None
    return deliver("{}", to, name="events-1", aws=Aws())


def test_request_is_posted_with_its_key(endpoint: str) -> None:
    assert asked(endpoint) == endpoint
    assert Endpoint.posted == [("/flink/backfills", "events-1", b"{}")]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (302, RequestRefusedError),
        (403, RequestRefusedError),
        (429, RequestUndeliveredError),
        (503, RequestUndeliveredError),
    ],
)
def test_refused_request_is_told_and_whether_a_later_try_may_work(
    endpoint: str, status: int, error: type[Exception]
) -> None:
    Endpoint.status = status
    with pytest.raises(error, match=f"answered {status}"):
        asked(endpoint)


def test_request_carries_the_token_of_the_environment(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK_TOKEN", "very-secret")
    asked(endpoint, request_token_env="FLINK_TOKEN")
    asked(endpoint)
    assert Endpoint.tokens == ["Bearer very-secret", None]


def test_request_is_not_sent_without_the_token_that_it_wants(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLINK_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="FLINK_TOKEN"):
        asked(endpoint, request_token_env="FLINK_TOKEN")
    assert Endpoint.posted == []


def test_request_goes_to_the_address_of_the_environment_which_nobody_is_shown(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK", f"{endpoint}/very-secret?key=more")
    assert asked(request_to_env="FLINK") == "the address in $FLINK"
    assert Endpoint.posted == [("/flink/backfills/very-secret?key=more", "events-1", b"{}")]
    Endpoint.status = 403
    with pytest.raises(RequestRefusedError, match=r"^the address in \$FLINK answered 403") as error:
        asked(request_to_env="FLINK")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("held", ["", "/a/folder", "http://user:very-secret@host/"])
def test_request_is_not_sent_where_its_variable_holds_no_address(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK", held)
    with pytest.raises(ConfigError, match="request_to_env: found 'FLINK'") as error:
        asked(request_to_env="FLINK")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"mode": "request"},
        {"mode": "request", "request_to": "http://host/", "request_to_env": "FLINK"},
        {"mode": "merge", "request_to_env": "FLINK"},
    ],
)
def test_one_place_is_asked_and_by_a_request_alone(keys: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="request_to"):
        Backfill.model_validate(keys)


def test_request_is_undelivered_when_nobody_is_there() -> None:
    with pytest.raises(RequestUndeliveredError):
        asked("http://127.0.0.1:1/")


def test_request_in_a_folder_is_one_file_however_often(tmp_path: Path) -> None:
    for _ in range(2):
        to = Addressee(str(tmp_path / "asked"), "asked")
        place = deliver("{}", to, name="events-1", aws=Aws())
    assert [str(file) for file in (tmp_path / "asked").iterdir()] == [place]


@pytest.mark.parametrize("content", [b"{", b"\xff", b""])
def test_failing_decoder_gives_nothing(content: bytes) -> None:
    assert _decoded(json.loads, content) == b""


def test_decoder_may_give_times_and_no_bytes() -> None:
    assert _decoded(lambda _: {"at": T0}, b"") == json.dumps({"at": T0.isoformat()}).encode()
    assert _decoded(lambda content: {"raw": content}, b"x") == b""
