"""A Kinesis that answers as it is told, folders that fail, and what a log left."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # of JSON and of boto3's answers

from shardaudit.producer.packed_lines import Teller
from shardaudit.producer.trace_log import LogLimits, TraceLog
from shardaudit.producer.trace_queue import TraceColumns
from tests.builders import unpacked_lines

ROOT = Path(__file__).parents[3]
TELLER = Teller("p-1", session="", location="producer", sample_rate=1.0)
QUICK = LogLimits(look_every_s=0.01, pause_s=0.01, patience_s=5)


class ClientError(Exception):
    """In the shape of botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": "too large"}}


@dataclass
class FakeKinesis:
    """`failing`: of each call's number and each record, whether its entry fails.

    `most_bytes`: of a call; a larger one is refused.
    """

    failing: Callable[[int, dict[str, Any]], bool] = lambda _call, _record: False
    raising: dict[int, BaseException] = field(default_factory=dict)
    calls: list[list[dict[str, Any]]] = field(default_factory=list)
    most_bytes: int = 2**20
    refusal: str = "ValidationException"
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _number: int = 0

    def put_records(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self.calls.append(request["Records"])
            call = len(self.calls)
            if call in self.raising:
                raise self.raising[call]
            self._check(request["Records"])
            entries = [
                {"ErrorCode": "InternalFailure", "ErrorMessage": f"call {call}"}
                if self.failing(call, record)
                else self._ack()
                for record in request["Records"]
            ]
        failed = sum("ErrorCode" in entry for entry in entries)
        return {"FailedRecordCount": failed, "Records": entries, "EncryptionType": "NONE"}

    def put_record(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self.calls.append([request])
            self._check([request])
            return self._ack() | {"ResponseMetadata": {"RetryAttempts": 2}}

    def list_shards(self, **_: Any) -> str:
        return "passed on"

    def _check(self, given: list[dict[str, Any]]) -> None:
        if sum(len(record["Data"]) for record in given) > self.most_bytes:
            raise ClientError(self.refusal)

    def _ack(self) -> dict[str, str]:
        self._number += 1
        return {"ShardId": "shardId-000000000000", "SequenceNumber": str(self._number)}


@dataclass
class StubbornFolder:
    """A place that takes nothing while it is stopped."""

    is_stopped: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    tries: int = 0

    def write(self, name: str, content: bytes) -> None:
        self.tries += 1
        if self.is_stopped:
            raise OSError("no space left on device")
        self.files[name] = content

    def lines(self, *, health: bool = False) -> list[dict[str, Any]]:
        return unpacked(list(self.files.values()), health=health)  # the log writes meanwhile


class RaisingHandler(logging.Handler):
    """Of a caller who does not catch what his log's receiver does."""

    def emit(self, _: logging.LogRecord) -> None:
        raise ConnectionError("whoever is to be told does not answer")


def unpacked(contents: Iterable[bytes], *, health: bool = False) -> list[dict[str, Any]]:
    """The lines of files in the order of their numbers: those of health, or all others."""
    lines = [json.loads(line) for one in contents for line in unpacked_lines(one)]
    return [line for line in lines if ("health" in line) is health]


def logged(folder: Path) -> list[dict[str, Any]]:
    """The lines of a folder's files, without those of health."""
    return unpacked(file.read_bytes() for file in sorted(folder.glob("[!.]*")))


def health(folder: Path) -> list[dict[str, Any]]:
    """The lines of a folder's files that tell of the log itself."""
    files = sorted(folder.glob("[!.]*"))
    return unpacked((file.read_bytes() for file in files), health=True)


def wait_until(condition: Callable[[], object]) -> None:
    """Until it holds, five seconds at most."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it does not come about")


def let_a_minute_pass(log: TraceLog) -> None:
    """The log's next line of health is due."""
    log._health_since -= QUICK.health_every_s  # noqa: SLF001 - time does not wait for a test


def traces(first: int, count: int = 1) -> list[TraceColumns]:
    """Those of one call, with numbers in their ids."""
    sent_at, acked_at = "2026-11-24T11:59:59.000Z", "2026-11-24T12:00:00.000Z"
    ids = [f"m{number}" for number in range(first, first + count)]
    same = ([each] * count for each in (sent_at, "shardId-000000000000", "1", ()))
    return [TraceColumns._make([("events", acked_at, 1, None), ids, *same])]


def records(count: int, *, first: int = 0) -> list[dict[str, Any]]:
    """Records with payloads of JSON that have an id and a time."""
    payload = {"sent_at": "2026-11-24T12:00:00Z"}
    return [
        {"Data": json.dumps(payload | {"message_id": f"m{n}"}).encode(), "PartitionKey": str(n)}
        for n in range(first, first + count)
    ]


def python(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A process of its own that ran some code."""
    paths = os.pathsep.join(map(str, (ROOT / "spark", ROOT)))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
