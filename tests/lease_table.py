"""A KCL consumer's lease table, as DynamoDB gives it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class _Leases(BaseHTTPRequestHandler):
    """A lease table in which the one consumer has just begun."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        lease = {"leaseKey": {"S": "shardId-000000000000"}, "checkpoint": {"S": "TRIM_HORIZON"}}
        body = json.dumps({"Items": [lease], "Count": 1, "ScannedCount": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def lease_table() -> Iterator[str]:
    """The address of a DynamoDB that has one such table, whatever is asked of it."""
    with HTTPServer(("127.0.0.1", 0), _Leases) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
