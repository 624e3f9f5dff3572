"""Shorthands to ask a Kinesis endpoint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient
    from mypy_boto3_kinesis.type_defs import (
        GetRecordsOutputTypeDef,
        ShardFilterTypeDef,
        ShardTypeDef,
    )

START = datetime(2026, 11, 1, tzinfo=UTC)
FIRST = "shardId-000000000000"


@dataclass
class Machine:
    """A clock that only the test moves."""

    at: datetime = START

    def read(self) -> float:
        return self.at.timestamp()

    def go_on(self, **length: float) -> datetime:
        self.at += timedelta(**length)
        return self.at


@dataclass
class Kinesis:
    """One stream called `s`."""

    client: "KinesisClient"
    name: str = "s"
    _put: int = field(default=0)

    def create(self, shards: int = 1, *, hours: int = 24) -> None:
        self.client.create_stream(StreamName=self.name, ShardCount=shards)
        if hours > 24:
            self.client.increase_stream_retention_period(
                StreamName=self.name, RetentionPeriodHours=hours
            )

    def put(self, count: int, *, size: int = 10, key: str | None = None) -> list[str]:
        """The sequence numbers; partition keys differ unless one is given."""
        numbers = []
        for start in range(0, count, 500):
            batch = range(start, min(start + 500, count))
            answer = self.client.put_records(
                StreamName=self.name,
                Records=[
                    {
                        "Data": str(self._put + i).encode().ljust(size, b"."),
                        "PartitionKey": key or f"key-{self._put + i}",
                    }
                    for i in batch
                ],
            )
            assert answer["FailedRecordCount"] == 0
            numbers += [record["SequenceNumber"] for record in answer["Records"]]
        self._put += count
        return numbers

    def iterator(self, kind: str, shard: str = FIRST, **more: object) -> str:
        asked = {"StreamName": self.name, "ShardId": shard, "ShardIteratorType": kind, **more}
        return self.client.get_shard_iterator(**asked)["ShardIterator"]  # type: ignore[arg-type] # any of five forms

    def get(self, iterator: str, limit: int = 10_000) -> "GetRecordsOutputTypeDef":
        return self.client.get_records(ShardIterator=iterator, Limit=limit)

    def contents(self, kind: str, shard: str = FIRST, **more: object) -> list[int]:
        """The numbers of the records that come from there on."""
        return [
            content for page in self.pages(self.iterator(kind, shard, **more)) for content in page
        ]

    def contents_of(self, shard: int) -> list[str]:
        """The sequence numbers of a whole shard, whatever the records hold."""
        page = self.get(self.iterator("TRIM_HORIZON", name(shard)))
        return [record["SequenceNumber"] for record in page["Records"]]

    def pages(self, start: str) -> Iterator[list[int]]:
        iterator: str | None = start
        while iterator is not None:
            page = self.get(iterator)
            if page["Records"]:
                yield [int(record["Data"].rstrip(b".")) for record in page["Records"]]
            is_level = page["MillisBehindLatest"] == 0 and not page["Records"]
            iterator = None if is_level else page.get("NextShardIterator")

    def shards(self, wanted: "ShardFilterTypeDef | None" = None) -> "list[ShardTypeDef]":
        if wanted is None:
            return self.client.list_shards(StreamName=self.name)["Shards"]
        return self.client.list_shards(StreamName=self.name, ShardFilter=wanted)["Shards"]

    def numbers(self, wanted: "ShardFilterTypeDef | None" = None) -> list[int]:
        """The last digits of the shards' ids."""
        return [int(shard["ShardId"][-6:]) for shard in self.shards(wanted)]

    def split(self, shard: int) -> None:
        found = next(s for s in self.shards() if s["ShardId"] == name(shard))
        keys = found["HashKeyRange"]
        middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2 + 1
        self.client.split_shard(
            StreamName=self.name, ShardToSplit=name(shard), NewStartingHashKey=str(middle)
        )

    def merge(self, shard: int, adjacent: int) -> None:
        self.client.merge_shards(
            StreamName=self.name, ShardToMerge=name(shard), AdjacentShardToMerge=name(adjacent)
        )


def name(shard: int) -> str:
    """The id of a shard."""
    return f"shardId-{shard:012d}"


@contextmanager
def refused(code: str) -> Iterator[None]:
    """The block must end with this error of the API."""
    with pytest.raises(ClientError) as caught:
        yield
    assert caught.value.response["Error"]["Code"] == code


def code_of(call: Callable[..., Mapping[str, object]], **arguments: object) -> str:
    """The error's code, or `ok`."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "ok"


def put_by_second(kinesis: Kinesis, machine: Machine, count: int) -> list[str]:
    """One record a second of the machine; their sequence numbers."""
    numbers = []
    for _ in range(count):
        numbers += kinesis.put(1, key="k")
        machine.go_on(seconds=1)
    return numbers
