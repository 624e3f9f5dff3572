"""Kinesis' JSON 1.1 protocol over HTTP, on 127.0.0.1 alone."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from shardaudit.model.errors import FinalError
from shardaudit.simulate.stand_in import fan_out as consumers
from shardaudit.simulate.stand_in import record_operations as records
from shardaudit.simulate.stand_in import stream_operations as streams
from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.fan_out import EVENTS, Subscription, subscribe_to_shard
from shardaudit.simulate.stand_in.requests import ApiError, Request, Response
from shardaudit.simulate.stand_in.shard_listing import list_shards

_CONTROL_PATH = "/_control"
CONTENT_TYPE = "application/x-amz-json-1.1"

Operation = Callable[[Account, Request], Response | Subscription]

OPERATIONS: Mapping[str, Operation] = {
    "CreateStream": streams.create_stream,
    "DeleteStream": streams.delete_stream,
    "ListStreams": streams.list_streams,
    "DescribeStream": streams.describe_stream,
    "DescribeStreamSummary": streams.describe_stream_summary,
    "IncreaseStreamRetentionPeriod": streams.increase_retention,
    "DecreaseStreamRetentionPeriod": streams.decrease_retention,
    "SplitShard": streams.split_shard,
    "MergeShards": streams.merge_shards,
    "UpdateShardCount": streams.update_shard_count,
    "ListShards": list_shards,
    "PutRecord": records.put_record,
    "PutRecords": records.put_records,
    "GetShardIterator": records.get_shard_iterator,
    "GetRecords": records.get_records,
    "RegisterStreamConsumer": consumers.register_stream_consumer,
    "DescribeStreamConsumer": consumers.describe_stream_consumer,
    "ListStreamConsumers": consumers.list_stream_consumers,
    "DeregisterStreamConsumer": consumers.deregister_stream_consumer,
    "SubscribeToShard": subscribe_to_shard,
}

logger = logging.getLogger(__name__)


class PortTakenError(FinalError, OSError):
    """The wanted port cannot be had."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(f"port {port} of 127.0.0.1: {reason}; choose another, or 0 for a free one")


class AnswerLostError(FinalError, ConnectionError):
    """A fault wants the client to get no answer to something that was done."""


class StandIn(ThreadingHTTPServer):
    """The server. `url` is where clients go."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, account: Account, *, port: int = 0) -> None:
        self.account = account
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:  # taken, not allowed, or no port at all
            raise PortTakenError(port, str(error)) from error

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, operation: str, body: bytes) -> Response | Subscription:
        """What Kinesis would say to this call."""
        act = OPERATIONS.get(operation)
        if act is None:
            raise ApiError("UnknownOperationException", operation)
        fault = self.account.control.take_fault(operation)
        if fault is not None and not fault.lose_answer:
            raise ApiError(fault.error, "injected", status=fault.status)
        answer = act(self.account, Request.from_body(body))
        if fault is not None:
            raise AnswerLostError(operation)
        return answer

    def change(self, body: bytes) -> Response:
        """What the control says after a change."""
        self.account.control.change(Request.from_body(body).fields)
        return self.account.control.describe()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 2**16
    server: StandIn

    def do_GET(self) -> None:
        """What the control says."""
        if self.path != _CONTROL_PATH:
            return self._send(404, '{"message": "nothing is here to be read"}')
        return self._respond(self.server.account.control.describe)

    def do_POST(self) -> None:
        """An operation, or a change of the control."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == _CONTROL_PATH:
            return self._respond(lambda: self.server.change(body))
        operation = self.headers.get("X-Amz-Target", "").partition(".")[2]
        return self._respond(lambda: self.server.answer(operation, body))

    def log_message(self, format: str, *args: object) -> None:
        """Into our log, and only when somebody asks for details."""
        logger.debug(format, *args)

    def _respond(self, answer: Callable[[], Response | Subscription]) -> None:
        try:
            said = answer()
        except ApiError as error:
            refusal = json.dumps({"__type": error.code, "message": error.text})
            return self._send(error.status, refusal, error=error.code)
        except AnswerLostError:
            self.close_connection = True
            return None
        if isinstance(said, Subscription):
            return self._push(said.frames())
        return self._send(200, said if isinstance(said, str) else json.dumps(said))

    def _push(self, frames: Iterator[bytes]) -> None:
        """A body without a known length, until it ends or nobody listens any more."""
        self.send_response_only(200)
        self.send_header("Content-Type", EVENTS)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.wfile.flush()
            for frame in frames:  # past the buffer: what nobody takes must not stay in it
                self.connection.sendall(b"%x\r\n%s\r\n" % (len(frame), frame))
            self.connection.sendall(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True

    def _send(self, status: int, text: str, *, error: str | None = None) -> None:
        body = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        if error is not None:
            self.send_header("x-amzn-errortype", error)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
