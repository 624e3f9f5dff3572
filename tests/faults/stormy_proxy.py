"""A proxy before S3, Kinesis or DynamoDB, behind which passing faults happen by chance."""

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CUT = "cut before the request went on"
UNANSWERED = "done, and cut before the answer"
HALF = "done, and cut in the middle of the answer"
BUSY = "503, or 500 of Kinesis and DynamoDB"
LATE = "answered late"
KILLED = "the command killed before it went on"
KILLED_AFTER = "done, and the command killed before the answer"
SILENT = "taken, and never answered"
EXPIRED = "403 of S3, 400 of Kinesis and DynamoDB: the token has expired"
NO_FAULT = "no fault"
FAULTS = (CUT, UNANSWERED, HALF, BUSY, LATE)
_LATE_S = (0.05, 1.0)  # no patience of the product ends before 5 s
_OF_THE_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>by plan</Message></Error>"
_INTERNAL = b'{"__type":"InternalFailure","message":"by plan"}'
_S3_EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>by plan</Message></Error>"
_EXPIRED = b'{"__type":"ExpiredTokenException","message":"by plan"}'
# Of S3, and of the others: status, headers, content.
_REFUSALS: dict[str, tuple[tuple[int, list[tuple[str, str]], bytes], ...]] = {
    BUSY: ((503, [], _SLOW_DOWN), (500, [], _INTERNAL)),
    EXPIRED: ((403, [], _S3_EXPIRED), (400, [], _EXPIRED)),
}


@dataclass
class Weather:
    """What goes wrong with which request of a command, drawn from a seed; what came of it.

    `share`: of the requests of which one fails; `outage`: which requests, counted from the
    command's first, are all cut; `kill_at`: at which one the command is killed; `expired_at`: from
    which one on all are refused, as its credentials are those of before.
    `sickness`: the fault of all requests for ever, from the first one on that has `sick_from` in
    "User-Agent METHOD path"; `sick_at`: when that was.
    """

    seed: int
    share: float = 0.0
    outage: range = range(0)
    kill_at: int | None = None
    expired_at: int | None = None
    sickness: str | None = None
    sick_from: str = ""
    sick_at: float | None = None
    requests: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _group: int | None = None

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311 - to be repeated, not to be secret

    def calm(self) -> None:
        """No fault from now on; the next request is the first of a command."""
        with self._lock:
            self.share, self.outage, self.kill_at, self.requests = 0.0, range(0), None, 0
            self.sickness, self.sick_at, self.expired_at = None, None, None

    def of_request(self, asked: str) -> tuple[str | None, float]:
        """What goes wrong with the next request, and a number of [0, 1) for how badly.

        Input:
            asked: who asks for what.
        """
        with self._lock:
            self.requests += 1
            kind, how = self._draw.random(), self._draw.random()
            fault = FAULTS[int(kind / self.share * len(FAULTS))] if kind < self.share else None
            if self.requests in self.outage:
                fault = CUT
            if self.expired_at is not None and self.requests >= self.expired_at:
                fault = EXPIRED
            if self.requests == self.kill_at:
                fault = KILLED if how < 0.5 else KILLED_AFTER
            if self.sickness and (self.sick_at or re.search(self.sick_from, asked)):
                fault, self.sick_at = self.sickness, self.sick_at or time.monotonic()
            self.happened[fault or NO_FAULT] += 1
            return fault, how

    @contextmanager
    def at_work(self, group: int) -> Iterator[int]:
        """That group of processes is the command that may be killed, for the block."""
        self._group = group
        try:
            yield group
        finally:
            self._group = None

    def strike(self) -> None:
        """Kills the command, and the JVM that it started."""
        if self._group is not None:
            os.killpg(self._group, signal.SIGKILL)


class _Server(ThreadingHTTPServer):
    """Knows what is behind it, and the weather."""

    def __init__(self, url: str, weather: Weather) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.behind, self.weather = urlsplit(url), weather

    def handle_error(self, *_: object) -> None:
        """Says nothing: who was killed in the middle of a request has cut it himself."""


class _Proxy(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Or the end of an answer waits 40 ms until its beginning is acknowledged.
    disable_nagle_algorithm = True
    wbufsize = 2**16

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        asked = f"{self.headers.get('User-Agent')} {self.command} {self.path}"
        fault, how = self.server.weather.of_request(asked)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fault == LATE:
            time.sleep(_LATE_S[0] + how * (_LATE_S[1] - _LATE_S[0]))
        if fault == KILLED:
            self.server.weather.strike()
        if fault == SILENT:
            self.rfile.read(1)  # until he gives up
        if fault in (CUT, KILLED, SILENT):
            self.close_connection = True
        elif fault in (BUSY, EXPIRED):
            of_s3, of_others = _REFUSALS[fault]
            self._answer(*(of_others if "X-Amz-Target" in self.headers else of_s3))
        else:
            self._pass_on(body, fault, how)
        self.wfile.flush()

    def _pass_on(self, body: bytes, fault: str | None, how: float) -> None:
        """Does it; the answer comes whole, in part or not at all."""
        try:
            status, headers, content = self._forwarded(body)
        except (OSError, HTTPException):  # what is behind has ended
            self.close_connection = True
            return
        if fault == KILLED_AFTER:
            self.server.weather.strike()
        if fault in (UNANSWERED, KILLED_AFTER):
            self.close_connection = True
        elif fault == HALF:
            self._answer(status, headers, content, told=int(len(content) * how))
            self.close_connection = True
        else:
            self._answer(status, headers, content)

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        behind = self.server.behind
        connection = HTTPConnection(behind.hostname or "", behind.port, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():  # the host too: it is signed
                if name.lower() not in {"connection", "expect"}:
                    connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _answer(
        self,
        status: int,
        headers: list[tuple[str, str]],
        content: bytes,
        *,
        told: int | None = None,
    ) -> None:
        length = str(len(content))
        if self.command == "HEAD":
            length = next((v for name, v in headers if name.lower() == "content-length"), "0")
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OF_THE_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content[:told])


@contextmanager
def stormy(url: str, weather: Weather) -> Iterator[str]:
    """The address of the proxy, on a free port of 127.0.0.1."""
    with _Server(url, weather) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            with suppress(OSError):
                server.shutdown()
