"""The streams of the one account that there is, and what its operations share."""

import base64
import json
import threading
from collections.abc import Callable

from shardaudit.simulate.stand_in.control import Control
from shardaudit.simulate.stand_in.requests import ACCOUNT, Request, in_use, not_found
from shardaudit.simulate.stand_in.served_stream import ServedStream, Status, new_shards


class Account:
    """All streams by name, and the control of the server that holds them."""

    def __init__(self, read_seconds: Callable[[], float]) -> None:
        self.control = Control(read_seconds)
        self.streams: dict[str, ServedStream] = {}
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """The server's time."""
        return self.control.clock.now_ms()

    def machine_ms(self) -> int:
        """The machine's time."""
        return self.control.clock.machine_ms()

    def stream(self, request: Request) -> ServedStream:
        """The stream that a request names, by name or by ARN."""
        arn = request.optional_text("StreamARN")
        name = arn.rpartition("/")[2] if arn else request.text("StreamName")
        return self.stream_named(name)

    def stream_named(self, name: str) -> ServedStream:
        """The stream of that name."""
        if name not in self.streams:
            raise not_found(f"Stream {name} under account {ACCOUNT} not found.")
        return self.streams[name]

    def create(self, name: str, *, shards: int, mode: str) -> None:
        """Adds a stream, which is CREATING for a moment."""
        with self._lock:
            if name in self.streams:
                raise in_use(f"Stream {name} under account {ACCOUNT} already exists.")
            now_ms = self.now_ms()
            stream = ServedStream(name, mode, now_ms, new_shards(shards, now_ms))
            self.mark_busy(stream, Status.CREATING)
            self.streams[name] = stream

    def delete(self, stream: ServedStream) -> None:
        """Removes a stream."""
        with self._lock:
            self.streams.pop(stream.name, None)

    def mark_busy(self, stream: ServedStream, status: Status) -> None:
        """The stream has this status for the transition's time."""
        stream.status = status
        stream.busy_until_machine_ms = self.transition_end_ms()

    def transition_end_ms(self) -> int:
        """When a transition that begins now is over, in the machine's time."""
        return self.machine_ms() + int(self.control.switches.transition_s * 1000)


def seal(**fields: object) -> str:
    """An opaque token for a client to hand back: a shard iterator or a NextToken."""
    return base64.b64encode(json.dumps(fields).encode()).decode()


def unseal(token: str, *keys: str) -> dict[str, str] | None:
    """The fields of a token of ours, as texts; None when it is none."""
    try:
        fields = json.loads(base64.b64decode(token, validate=True))
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.keys() != set(keys):
        return None
    return {key: str(value) for key, value in fields.items()}
