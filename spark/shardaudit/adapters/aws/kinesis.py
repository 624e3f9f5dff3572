"""The door to Kinesis: a client, what the API knows about a stream, and records put into it."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.whole_answers import with_whole_answers
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import ListShardsInputTypeDef, ShardTypeDef


# On this side: nothing was asked yet.
_FINAL_HERE = {
    "NoCredentialsError": "give credentials by the usual AWS chain",
    "PartialCredentialsError": "give credentials by the usual AWS chain",
    "NoRegionError": "set [aws] region",
    "ProfileNotFound": "check AWS_PROFILE",
}


# What to do about answers that do not change by asking again.
_FINAL = {
    "ResourceNotFoundException": "check stream_name and [aws] region and endpoint",
    "AccessDeniedException": "allow these credentials what docs/iam.md lists for the command",
    "UnrecognizedClientException": "these credentials are not known there",
    "InvalidSignatureException": "these credentials are not known there",
    "ExpiredTokenException": "get new credentials",
    "InvalidArgumentException": "check stream_name",
    "ValidationException": "check stream_name",
    "UnknownOperationException": "the endpoint is no Kinesis: check [aws] endpoint",
    "NoCredentialsError": "give credentials by the usual AWS chain, or set `retention`",
}

MAX_RECORDS, MAX_BYTES = 500, 5 * 2**20  # of one PutRecords (Kinesis quotas)
_MAX_TRIES = 10
_PAUSE_S = 0.2

PATIENCE = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard"})

Entry = tuple[str, bytes]  # partition key, content


def said_and_advice(
    error: BotoCoreError | ClientError, final: Mapping[str, str]
) -> tuple[str, str | None]:
    """The error in words, and what to do; None where a later try may work.

    Input:
        final: error code or class -> what to do about it, beside what holds for every service.
    """
    if isinstance(error, ClientError):
        said = error.response.get("Error", {})
        code = said.get("Code", "unknown")
        return f"{code}: {said.get('Message', '')}", final.get(code)
    return str(error), (_FINAL_HERE | dict(final)).get(type(error).__name__)


class StreamRefusedError(FinalError, PermissionError):
    """Kinesis said no, and will say so again."""

    def __init__(self, stream: str, found: str, *, advice: str) -> None:
        super().__init__(f"Kinesis stream {stream}: {found}; {advice}")
        self.stream, self.found = stream, found


class StreamUnavailableError(RetryableError, ConnectionError):
    """Kinesis did not answer, was too busy, or had a fault of its own."""

    def __init__(self, stream: str, found: str) -> None:
        super().__init__(f"Kinesis stream {stream}: {found}; a later try may work")
        self.stream, self.found = stream, found


@dataclass(frozen=True, slots=True)
class ListedShard:
    """One shard, open or closed. The hash range is decimal text, both ends included."""

    shard_id: str
    parent_shard_ids: tuple[str, ...]
    hash_start: str
    hash_end: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What ListShards and DescribeStreamSummary say of a stream now."""

    retention: timedelta
    shards: tuple[ListedShard, ...]


def kinesis_client(settings: Settings) -> "KinesisClient":
    """A client with the usual credential chain; a stand-in's address comes from the settings."""
    client = boto3.client(
        "kinesis",
        region_name=settings.aws.region,
        endpoint_url=settings.aws.endpoint("kinesis"),
        config=PATIENCE,
    )
    return with_whole_answers(client)


def stream_facts(client: "KinesisClient", stream_name: str) -> StreamFacts:
    """The stream's retention and every shard that still exists, in the order of their ids.

    Raises:
        StreamRefusedError: no such stream, no permission; says what to do.
        StreamUnavailableError: throttled, timed out, or failing on the other side.
    """
    with kinesis_errors(stream_name):
        summary = client.describe_stream_summary(StreamName=stream_name)
        hours = summary["StreamDescriptionSummary"]["RetentionPeriodHours"]
        shards = tuple(_shard(shard) for shard in _all_shards(client, stream_name))
    ordered = sorted(shards, key=lambda shard: shard.shard_id)
    return StreamFacts(retention=timedelta(hours=hours), shards=tuple(ordered))


@contextmanager
def kinesis_errors(stream: str) -> Iterator[None]:
    """Turns boto3's errors into ours."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise kinesis_error(stream, error) from error


def kinesis_error(stream: str, error: BotoCoreError | ClientError) -> ShardauditError:
    """Our error for one of boto3's, to be raised from it."""
    text, advice = said_and_advice(error, _FINAL)
    if advice is not None:
        return StreamRefusedError(stream, text, advice=advice)
    return StreamUnavailableError(stream, text)


def _all_shards(client: "KinesisClient", stream_name: str) -> "list[ShardTypeDef]":
    """Every page; once more from the first when a token expired on the way."""
    try:
        return list(_list_shards(client, stream_name))
    except client.exceptions.ExpiredNextTokenException:
        return list(_list_shards(client, stream_name))


def _list_shards(client: "KinesisClient", stream_name: str) -> "Iterator[ShardTypeDef]":
    asked: ListShardsInputTypeDef = {"StreamName": stream_name}
    while True:
        page = client.list_shards(**asked)
        yield from page["Shards"]
        token = page.get("NextToken")
        if token is None:
            return
        asked = {"NextToken": token}  # a token and a name together are refused


def _shard(shard: "ShardTypeDef") -> ListedShard:
    parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
    return ListedShard(
        shard_id=shard["ShardId"],
        parent_shard_ids=tuple(parent for parent in parents if parent is not None),
        hash_start=shard["HashKeyRange"]["StartingHashKey"],
        hash_end=shard["HashKeyRange"]["EndingHashKey"],
        is_open="EndingSequenceNumber" not in shard["SequenceNumberRange"],
    )


def is_local(url: str) -> bool:
    """Whether the address is one of this machine, where only stand-ins are."""
    return urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}


class PutRefusedError(RetryableError, ConnectionError):
    """Records that the stream did not take, try after try."""

    def __init__(self, stream: str, left: int, said: str) -> None:
        super().__init__(
            f"Kinesis stream {stream} did not take {left} records in {_MAX_TRIES} tries: {said}"
        )


def put_all(
    client: "KinesisClient",
    stream: str,
    entries: Iterable[Entry],
    *,
    check: Callable[[], None],
    pause_s: float = _PAUSE_S,
) -> int:
    """Puts all of them, in their order as far as nothing fails: how many.

    `check`: is called before each call, which no other undoes. `pause_s`: before the second try;
    before each further one twice as long.

    Raises:
        StreamRefusedError: no such stream, no permission.
        StreamUnavailableError: it does not answer.
        PutRefusedError: it answers, and does not take some of them.
    """
    total = 0
    for batch in _batches(entries):
        check()
        _put(client, stream, batch, pause_s)
        total += len(batch)
    return total


def _put(client: "KinesisClient", stream: str, batch: Sequence[Entry], pause_s: float) -> None:
    for tries in count(1):
        with kinesis_errors(stream):
            answer = client.put_records(
                StreamName=stream,
                Records=[{"PartitionKey": key, "Data": content} for key, content in batch],
            )
        results = list(zip(batch, answer["Records"], strict=True))
        batch = [entry for entry, result in results if "ErrorCode" in result]
        if not batch:
            return
        if tries == _MAX_TRIES:
            said = next(str(result.get("ErrorMessage")) for _, result in results)
            raise PutRefusedError(stream, len(batch), said)
        time.sleep(pause_s * 2 ** (tries - 1))


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for key, content in entries:
        length = len(key.encode()) + len(content)
        if batch and (len(batch) == MAX_RECORDS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, content))
        size += length
    if batch:
        yield batch
