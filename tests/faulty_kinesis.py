"""A proxy before a Kinesis endpoint that fails as Kinesis does, by chance and by plan."""

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # of JSON
from urllib.parse import urlsplit

TARGET = "Kinesis_20131202."
THROTTLED = "ProvisionedThroughputExceededException"
EXPIRED = "ExpiredIteratorException"
EMPTY = "empty"
_PASSED = {"authorization", "content-type", "x-amz-date", "x-amz-target"}


@dataclass
class Faults:
    """How often a call of the data plane fails, and what came of it.

    `page`: the most records that one call brings. `jitter_s`: arrival times are told that much too
    early or too late. `at_call`: what is done before the call to GetRecords of that number.
    """

    throttled: float = 0.3
    expired: float = 0.1
    empty: float = 0.1
    page: int = 10
    jitter_s: float = 20.0
    at_call: dict[int, Callable[[], None]] = field(default_factory=dict)
    seed: int = 1
    happened: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311 - to be repeated, not to be secret

    def before(self, operation: str) -> str | None:
        """What goes wrong with a call."""
        with self._lock:
            self.happened[operation] += 1
            if operation == "GetRecords":
                self.at_call.pop(self.happened[operation], lambda: None)()
            chances = {
                "GetRecords": {
                    THROTTLED: self.throttled,
                    EXPIRED: self.expired,
                    EMPTY: self.empty,
                },
                "GetShardIterator": {THROTTLED: self.throttled},
            }.get(operation, {})
            drawn = self._draw.random()
            for fault, chance in chances.items():
                drawn -= chance
                if drawn < 0:
                    self.happened[fault] += 1
                    return fault
            return None

    def shift(self, arrival: float) -> float:
        """The arrival as it is told."""
        with self._lock:
            return arrival + self._draw.uniform(-self.jitter_s, self.jitter_s)


class _Server(ThreadingHTTPServer):
    """Knows what is behind it, and what goes wrong."""

    def __init__(self, url: str, faults: Faults) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.behind, self.faults = urlsplit(url), faults


class _Proxy(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        operation = self.headers.get("X-Amz-Target", "").removeprefix(TARGET)
        fault = self.server.faults.before(operation)
        if fault in (THROTTLED, EXPIRED):
            self._answer(400, {"__type": fault, "message": "by plan"})
        elif fault == EMPTY:
            again = json.loads(body)["ShardIterator"]
            nothing: list[object] = []
            self._answer(
                200, {"NextShardIterator": again, "MillisBehindLatest": 1000, "Records": nothing}
            )
        elif operation == "GetRecords":
            self._answer(*self._told(json.loads(body)))
        else:
            self._answer(*self._forwarded(body))

    def _told(self, asked: dict[str, Any]) -> tuple[int, Any]:
        """A small page with other arrival times."""
        faults = self.server.faults
        asked["Limit"] = min(faults.page, asked.get("Limit", faults.page))
        status, answer = self._forwarded(json.dumps(asked).encode())
        for record in answer.get("Records", ()):
            told = faults.shift(float(record["ApproximateArrivalTimestamp"]))
            record["ApproximateArrivalTimestamp"] = told
        return status, answer

    def _forwarded(self, body: bytes) -> tuple[int, Any]:
        behind = self.server.behind
        connection = HTTPConnection(behind.hostname or "", behind.port, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() in _PASSED}
        try:
            connection.request("POST", self.path, body=body, headers=headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return response.status, json.loads(raw) if raw else None

    def _answer(self, status: int, answer: Any) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def faulty_kinesis(url: str, faults: Faults) -> Iterator[str]:
    """The address of the proxy, on a free port of 127.0.0.1."""
    with _Server(url, faults) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
