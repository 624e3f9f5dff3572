"""A receiver of messages on 127.0.0.1, and the block in which it listens."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import ClassVar


class Web(BaseHTTPRequestHandler):
    """Keeps what it was sent; answers with `status`, and `says`."""

    got: ClassVar[list[tuple[str, str | None, dict[str, object]]]] = []
    status: ClassVar[int] = 200
    says: ClassVar[bytes] = b"ok"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, self.headers.get("Idempotency-Key"), json.loads(body)))
        self.send_response(self.status)
        if self.status == 302:
            self.send_header("Location", "/login")
        self.end_headers()
        self.wfile.write(self.says)

    def do_GET(self) -> None:
        """A page on which people log in."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@contextmanager
def running(server: socketserver.TCPServer) -> Iterator[int]:
    """The port of a server that runs in the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()
