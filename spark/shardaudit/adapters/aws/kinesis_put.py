"""The door through which a backfill puts records into a stream again."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from shardaudit.adapters.aws.kinesis import kinesis_errors
from shardaudit.model.errors import RetryableError

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_kinesis import KinesisClient

MAX_RECORDS, MAX_BYTES = 500, 5 * 2**20  # of one PutRecords (Kinesis quotas)
MAX_TRIES = 10
_PAUSE_S = 0.1

Entry = tuple[str, bytes]  # partition key, content


class PutRefusedError(RetryableError, ConnectionError):
    """Records that the stream did not take, try after try."""

    def __init__(self, stream: str, left: int, said: str) -> None:
        super().__init__(
            f"Kinesis stream {stream} did not take {left} records in {MAX_TRIES} tries: {said}"
        )


def put_records(client: "KinesisClient", stream: str, entries: Iterable[Entry]) -> int:
    """Puts all of them, in their order as far as nothing fails: how many.

    Raises:
        StreamRefusedError: no such stream, no permission.
        StreamUnavailableError: it does not answer.
        PutRefusedError: it answers, and does not take some of them.
    """
    total = 0
    for batch in _batches(entries):
        _put(client, stream, batch)
        total += len(batch)
    return total


def _put(client: "KinesisClient", stream: str, batch: Sequence[Entry]) -> None:
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
        if tries == MAX_TRIES:
            said = next(str(result.get("ErrorMessage")) for _, result in results)
            raise PutRefusedError(stream, len(batch), said)
        time.sleep(_PAUSE_S * 2**tries)


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
