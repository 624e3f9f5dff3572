"""The door through which a worker reads a shard: single calls, each refusal told apart.

Retries are the reader's business (`backfill/window_reader.py`): botocore's would not be counted in
the shard's share.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader
from botocore.utils import parse_timestamp

from shardaudit.adapters.aws.kinesis import (
    PATIENCE,
    StreamUnavailableError,
    is_local,
    kinesis_error,
    kinesis_errors,
)
from shardaudit.adapters.aws.whole_answers import with_whole_answers
from shardaudit.model.get_records import (
    IteratorExpiredError,
    PlaceGoneError,
    Start,
    StoredRecord,
    StreamPage,
    ThrottledError,
)

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import RecordTypeDef

_BUSY = {
    "ProvisionedThroughputExceededException",
    "LimitExceededException",
    "ThrottlingException",
    "KMSThrottlingException",
}
_INVALID, _NOT_FOUND = "InvalidArgumentException", "ResourceNotFoundException"


@dataclass(frozen=True, slots=True)
class StreamAddress:
    """Which stream, and where; plain values, so that a worker can be told. No credentials."""

    stream_name: str
    region: str | None = None
    endpoint_url: str | None = None


class ShardPages:
    """Calls of one stream's data plane."""

    def __init__(self, address: StreamAddress) -> None:
        self._name, self._client = address.stream_name, stream_client(address)

    def check_stream(self) -> None:
        """Returns when the stream can be asked: without it every shard would seem to be gone.

        Raises:
            StreamRefusedError: no such stream, no permission, no credentials.
            StreamUnavailableError: Kinesis did not answer.
        """
        with kinesis_errors(self._name):
            self._client.describe_stream_summary(StreamName=self._name)

    def iterator(self, shard_id: str, start: Start) -> str:
        """A shard iterator that begins there.

        Raises:
            PlaceGoneError: the shard or the sequence number is not there.
            ThrottledError: a later try may work.
            StreamRefusedError: no permission, no credentials.
        """
        asked = {"StreamName": self._name, "ShardId": shard_id, **_asked(start)}
        with told_apart(self._name, gone=gone_when(start)):
            answer = self._client.get_shard_iterator(**asked)  # type: ignore[arg-type] # one of its forms
        return answer["ShardIterator"]

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        """What GetRecords brings: up to `limit` records or 10 MiB.

        Raises:
            IteratorExpiredError: the iterator is older than five minutes.
            ThrottledError: a later try may work.
            StreamRefusedError: no permission, no credentials.
        """
        with told_apart(self._name, gone={_NOT_FOUND}):
            answer = self._client.get_records(ShardIterator=iterator, Limit=limit)
        records = stored_records(answer["Records"])
        is_level = answer.get("MillisBehindLatest", 0) == 0
        return StreamPage(records, answer.get("NextShardIterator"), is_level)

    def beside(self) -> "ShardPages":
        """Itself: its calls know nothing of each other."""
        return self

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()


@contextmanager
def told_apart(stream_name: str, *, gone: set[str]) -> Iterator[None]:
    """Turns boto3's errors into those that a reader tells apart; `gone`: codes of what is away."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown")
        if code == "ExpiredIteratorException":
            raise IteratorExpiredError(code) from error
        if code in gone:
            raise PlaceGoneError(f"Kinesis stream {stream_name}: {error}") from error
        ours = kinesis_error(stream_name, error)
        if code in _BUSY or isinstance(ours, StreamUnavailableError):
            raise ThrottledError(str(ours)) from error
        raise ours from error
    except BotoCoreError as error:
        ours = kinesis_error(stream_name, error)
        if isinstance(ours, StreamUnavailableError):
            raise ThrottledError(str(ours)) from error
        raise ours from error


def gone_when(start: Start) -> set[str]:
    """The codes by which Kinesis says that a reader cannot begin there."""
    return {_NOT_FOUND} if start.at is not None else {_NOT_FOUND, _INVALID}


def stored_records(records: "Sequence[RecordTypeDef]") -> tuple[StoredRecord, ...]:
    """The records of an answer."""
    return tuple(
        StoredRecord(
            record["SequenceNumber"],
            record["PartitionKey"],
            record["ApproximateArrivalTimestamp"],
            record["Data"],
        )
        for record in records
    )


def _asked(start: Start) -> Mapping[str, object]:
    if start.at is not None:
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": start.at}
    if start.sequence_number is None:
        return {"ShardIteratorType": "TRIM_HORIZON"}
    kind = "AFTER_SEQUENCE_NUMBER" if start.is_after else "AT_SEQUENCE_NUMBER"
    return {"ShardIteratorType": kind, "StartingSequenceNumber": start.sequence_number}


def stream_client(address: StreamAddress, *, tries: int = 1) -> "KinesisClient":
    """A client whose single calls are not tried again by botocore, unless `tries` says so."""
    url = address.endpoint_url
    any_secret = "stand-in" if url is not None and is_local(url) else None
    session = botocore.session.get_session()
    session.register_component("data_loader", _descriptions())
    parsers = session.get_component("response_parser_factory")
    parsers.set_parser_defaults(timestamp_parser=_instant)
    with kinesis_errors(address.stream_name):  # as without a region
        client = boto3.Session(botocore_session=session).client(
            "kinesis",
            region_name=address.region,
            endpoint_url=url,
            aws_access_key_id=any_secret,
            aws_secret_access_key=any_secret,
            config=PATIENCE.merge(Config(retries={"total_max_attempts": tries})),
        )
    return with_whole_answers(client)


@cache
def _descriptions() -> Loader:
    """Those of the AWS services, read once: a session's own are most of what a client costs."""
    found: Loader = botocore.session.get_session().get_component("data_loader")
    return found


def _instant(value: object) -> datetime:
    """In UTC. botocore's own are in dateutil's local zone, whose arithmetic is most of a read."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    return parse_timestamp(str(value)).astimezone(UTC)
