"""A proxy before a stand-in of AWS that keeps which calls went through it, whoever made them."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qsl, unquote, urlsplit

from botocore.loaders import create_loader
from botocore.model import OperationModel, ServiceModel

from tests.slow_s3 import served

_ANSWER = re.compile(rb"HTTP/1\.1 ((?!100)\d{3}) ")
_SERVICE_OF_TARGET = {"Kinesis_20131202": "kinesis", "DynamoDB_20120810": "dynamodb"}
_KEYS = re.compile(rb"<Key>([^<]*)</Key>")


@dataclass(slots=True)
class Call:
    """One request.

    `resources`: of S3 `bucket/key` or `bucket`, of a copy with its source behind it; else a name or
    an ARN, or nothing where an iterator or a token stands for it.
    """

    service: str
    operation: str
    resources: tuple[str, ...]
    status: int = 0


@dataclass(slots=True)
class RecordedCalls:
    """What one actor asked of the service behind `url`."""

    url: str
    calls: list[Call] = field(default_factory=list)

    async def connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        there = urlsplit(self.url)
        behind, to_behind = await asyncio.open_connection(there.hostname, there.port)
        waiting: list[Call] = []
        try:
            await asyncio.gather(
                self._asked(client, to_behind, waiting), _answered(behind, to_client, waiting)
            )
        finally:
            for writer in (to_client, to_behind):
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

    async def _asked(
        self, client: asyncio.StreamReader, to: asyncio.StreamWriter, waiting: list[Call]
    ) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await client.readuntil(b"\r\n\r\n")
                to.write(head)
                await to.drain()  # a client may wait for `100 Continue` before its body
                line, headers = _parsed(head)
                assert "transfer-encoding" not in headers, "a body without a length"
                body = await client.readexactly(int(headers.get("content-length", 0)))
                call = _call(line, headers, body)
                waiting.append(call)
                self.calls.append(call)
                to.write(body)
                await to.drain()
        to.close()


@contextmanager
def recorded_calls(url: str) -> Iterator[tuple[list[Call], str]]:
    """The calls that go to the stand-in through the address that comes with them."""
    recorded = RecordedCalls(url)
    with served(recorded.connected) as address:
        yield recorded.calls, address


async def _answered(
    behind: asyncio.StreamReader, to: asyncio.StreamWriter, waiting: list[Call]
) -> None:
    with suppress(ConnectionError):
        while chunk := await behind.read(2**16):
            if waiting and (answer := _ANSWER.search(chunk)):
                waiting.pop(0).status = int(answer[1])
            to.write(chunk)
            await to.drain()
    to.close()


def _parsed(head: bytes) -> tuple[str, dict[str, str]]:
    line, *rest = head.decode("latin-1").strip().split("\r\n")
    pairs = (text.partition(":") for text in rest)
    return line, {name.lower(): value.strip() for name, _, value in pairs}


def _call(line: str, headers: Mapping[str, str], body: bytes) -> Call:
    target = headers.get("x-amz-target", "")
    if not target:
        return _s3_call(line, headers, body)
    version, _, operation = target.partition(".")
    asked = json.loads(body)
    names = ("ConsumerARN", "StreamARN", "StreamName", "TableName")
    resource = next((str(asked[name]) for name in names if name in asked), "")
    return Call(_SERVICE_OF_TARGET[version], operation, (resource,))


def _s3_call(line: str, headers: Mapping[str, str], body: bytes) -> Call:
    method, address, _ = line.split(" ")
    path, _, query = address.partition("?")
    bucket, _, key = unquote(path).lstrip("/").partition("/")
    given = dict(parse_qsl(query, keep_blank_values=True))
    depth = bool(bucket) + bool(key)
    operation = s3_operation(method, depth, query=given, headers=headers)
    if operation == "DeleteObjects":
        keys = [found.decode() for found in _KEYS.findall(body)]
        return Call("s3", operation, tuple(f"{bucket}/{one}" for one in keys))
    copied = unquote(headers.get("x-amz-copy-source", "")).lstrip("/")
    named = (f"{bucket}/{key}" if key else bucket, copied)
    return Call("s3", operation, tuple(filter(None, named)))


def s3_operation(
    method: str, depth: int, *, query: Mapping[str, str], headers: Mapping[str, str]
) -> str:
    """The operation of botocore's model that asks most of what the request has.

    `depth`: 0 of no bucket, 1 of a bucket, 2 of a key in it.
    """
    found = {
        one.name: len(one.query) + len(one.headers)
        for one in _shapes()
        if (one.method, one.depth) == (method, depth)
        and all(query.get(name) == value if value else name in query for name, value in one.query)
        and one.headers <= headers.keys()
    }
    return max(sorted(found), key=found.__getitem__)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a request of an S3 operation must have; a value of the query may be any."""

    name: str
    method: str
    depth: int
    query: frozenset[tuple[str, str]]
    headers: frozenset[str]


@cache
def _shapes() -> tuple[_Shape, ...]:
    # A loader of our own: clients change the paths of what theirs gave them.
    service = ServiceModel(create_loader().load_service_model("s3", "service-2"), "s3")
    return tuple(_shape(service.operation_model(name)) for name in service.operation_names)


def _shape(model: OperationModel) -> _Shape:
    path, _, query = model.http["requestUri"].partition("?")
    given = model.input_shape
    members = given.members if given else {}
    must = [members[name].serialization for name in (given.required_members if given else ())]
    names = [(one.get("location"), str(one.get("name"))) for one in must]
    fixed = parse_qsl(query, keep_blank_values=True)
    return _Shape(
        model.name,
        model.http["method"],
        path.count("{"),
        frozenset([*fixed, *((name, "") for place, name in names if place == "querystring")]),
        frozenset(name.lower() for place, name in names if place == "header"),
    )
