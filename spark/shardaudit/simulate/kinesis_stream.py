"""One Kinesis stream to be filled and read by the simulator."""

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from shardaudit.adapters.aws.kinesis import ListedShard, is_local, kinesis_errors, stream_facts
from shardaudit.model.errors import RetryableError
from shardaudit.simulate.stand_in_process import StandInControl
from shardaudit.simulate.stream import Ack, Put, Record

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

DEFAULT_RETENTION = timedelta(hours=24)  # Kinesis: what a new stream has
_POLLS, _PAUSE_SECONDS = 600, 0.1


log = logging.getLogger(__name__)


class StreamNotReadyError(RetryableError, TimeoutError):
    """A stream that did not become ACTIVE."""

    def __init__(self, stream: str, status: str) -> None:
        seconds = _POLLS * _PAUSE_SECONDS
        super().__init__(f"Kinesis stream {stream} is still {status} after {seconds:.0f} s")


def endpoint_client(url: str) -> "KinesisClient":
    """A client for an address: a stand-in takes any credentials, AWS those of the usual chain."""
    any_secret = "stand-in" if is_local(url) else None
    return boto3.client(
        "kinesis",
        endpoint_url=url,
        region_name="us-east-1" if is_local(url) else None,
        aws_access_key_id=any_secret,
        aws_secret_access_key=any_secret,
        config=Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard"}),
    )


def simulated_stream(url: str, name: str) -> "KinesisStream":
    """The stream of that name, its clock moved where the endpoint allows it."""
    control = StandInControl(url) if is_local(url) else None
    if control is not None and not control.is_there():
        control = None
    if control is None:
        log.warning("%s has no control: records arrive when they are put, not in the past", url)
    return KinesisStream(endpoint_client(url), name, control)


class KinesisStream:
    """A stream by its name. Without a control its time is the endpoint's own."""

    def __init__(self, client: "KinesisClient", name: str, control: StandInControl | None) -> None:
        self._client, self._name, self._control = client, name, control

    def create(self, *, shards: int, retention: timedelta) -> None:
        """Makes the stream and waits until it can be used."""
        hours = retention // timedelta(hours=1)
        with kinesis_errors(self._name):
            self._client.create_stream(StreamName=self._name, ShardCount=shards)
            self._wait_until_active()
            if retention > DEFAULT_RETENTION:
                self._client.increase_stream_retention_period(
                    StreamName=self._name, RetentionPeriodHours=hours
                )
                self._wait_until_active()

    def put(self, puts: Sequence[Put]) -> list[Ack | None]:
        """Puts up to 500 records; None stands for one that failed."""
        entries: list[PutRecordsRequestEntryTypeDef] = [
            {
                "Data": put.content,
                "PartitionKey": put.partition_key,
                "ExplicitHashKey": put.hash_key,
            }
            for put in puts
        ]
        with kinesis_errors(self._name):
            answers = self._client.put_records(StreamName=self._name, Records=entries)["Records"]
        return [
            Ack(answer["ShardId"], answer["SequenceNumber"]) if "SequenceNumber" in answer else None
            for answer in answers
        ]

    def split(self, shard_id: str) -> None:
        """Splits a shard in the middle of its hash keys."""
        shard = self._shard(shard_id)
        middle = (int(shard.hash_start) + int(shard.hash_end)) // 2 + 1
        with kinesis_errors(self._name):
            self._client.split_shard(
                StreamName=self._name, ShardToSplit=shard_id, NewStartingHashKey=str(middle)
            )
            self._wait_until_active()

    def merge(self, shard_id: str, adjacent_id: str) -> None:
        """Merges two neighbours."""
        with kinesis_errors(self._name):
            self._client.merge_shards(
                StreamName=self._name, ShardToMerge=shard_id, AdjacentShardToMerge=adjacent_id
            )
            self._wait_until_active()

    def read(self) -> Iterator[list[Record]]:
        """Everything that it holds, shard after shard, page by page."""
        for shard in stream_facts(self._client, self._name).shards:
            yield from self._pages(shard)

    def hold_clock(self, at: datetime, *, step_ms: float = 0.0) -> None:
        """Makes records arrive at that time, each a step later than the one before."""
        if self._control is not None:
            self._control.hold(at, step_ms=step_ms)

    def run_clock(self, at: datetime) -> None:
        """Lets the time run from there on."""
        if self._control is not None:
            self._control.run_from(at)

    def _pages(self, shard: ListedShard) -> Iterator[list[Record]]:
        with kinesis_errors(self._name):
            iterator: str | None = self._client.get_shard_iterator(
                StreamName=self._name,
                ShardId=shard.shard_id,
                ShardIteratorType="TRIM_HORIZON",
            )["ShardIterator"]
        while iterator is not None:
            with kinesis_errors(self._name):
                page = self._client.get_records(ShardIterator=iterator)
            yield [
                Record(
                    shard.shard_id,
                    record["SequenceNumber"],
                    record["ApproximateArrivalTimestamp"],
                    record["Data"],
                )
                for record in page["Records"]
            ]
            # An empty page is not the end: being level with the newest record is.
            is_level = page["MillisBehindLatest"] == 0 and not page["Records"]
            iterator = None if is_level else page.get("NextShardIterator")

    def _shard(self, shard_id: str) -> ListedShard:
        shards = stream_facts(self._client, self._name).shards
        return next(shard for shard in shards if shard.shard_id == shard_id)

    def _wait_until_active(self) -> None:
        status = "CREATING"
        for _ in range(_POLLS):
            summary = self._client.describe_stream_summary(StreamName=self._name)
            status = summary["StreamDescriptionSummary"]["StreamStatus"]
            if status == "ACTIVE":
                return
            time.sleep(_PAUSE_SECONDS)
        raise StreamNotReadyError(self._name, status)
