"""The door to DynamoDB: the lease table in which a KCL consumer keeps how far it is."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws_errors import said_and_advice
from shardaudit.model.choices import PositionSource
from shardaudit.model.config import Settings
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError
from shardaudit.model.position import CHECKPOINT_WORDS, Position
from shardaudit.model.sequence import is_sequence_number

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, ScanInputTypeDef

# Answers that do not change by asking again, and what to do.
_FINAL = {
    "ResourceNotFoundException": "check positions.table and [aws] region and endpoint",
    "AccessDeniedException": "allow dynamodb:Scan on it",
    "UnrecognizedClientException": "these credentials are not known there",
    "ExpiredTokenException": "get new credentials",
    "ValidationException": "check positions.table",
}
_MULTI_STREAM_PARTS = 4  # KCL, StreamIdentifier: account:stream:creation epoch, then the shard


class LeaseTableRefusedError(FinalError, PermissionError):
    """DynamoDB said no, and will say so again; or the table is none of KCL's."""

    def __init__(self, table: str, found: str, *, advice: str) -> None:
        super().__init__(f"lease table {table}: {found}; {advice}")
        self.table, self.found = table, found


class LeaseTableUnavailableError(RetryableError, ConnectionError):
    """DynamoDB did not answer, was too busy, or had a fault of its own."""

    def __init__(self, table: str, found: str) -> None:
        super().__init__(f"lease table {table}: {found}; a later try may work")
        self.table, self.found = table, found


def dynamodb_client(settings: Settings) -> "DynamoDBClient":
    """A client with the usual credential chain; a stand-in's address comes from the settings."""
    options = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard"})
    return boto3.client(
        "dynamodb",
        region_name=settings.aws.region,
        endpoint_url=settings.aws.endpoint("dynamodb"),
        config=options,
    )


def read_leases(settings: Settings, table: str, *, stream_name: str) -> list[Position]:
    """The positions of a KCL 2 or 3 consumer, one per shard, in the order of the shards.

    Raises:
        LeaseTableRefusedError: no such table, no permission, or a table of something else.
        LeaseTableUnavailableError: throttled, timed out, or failing on the other side.
    """
    try:
        client = dynamodb_client(settings)
        items = list(_scan(client, table))
    except (BotoCoreError, ClientError) as error:
        raise _ours(table, error) from error
    leases = [_position(item, table, stream_name) for item in items if "leaseKey" in item]
    if items and not leases:
        advice = "name the application's own table, not KCL's others"
        raise LeaseTableRefusedError(table, "its rows have no leaseKey", advice=advice)
    found = [lease for lease in leases if lease is not None]
    return sorted(found, key=lambda lease: lease.shard_id)


def _scan(client: "DynamoDBClient", table: str) -> "Iterator[Mapping[str, AttributeValueTypeDef]]":
    asked: ScanInputTypeDef = {"TableName": table}
    while True:
        page = client.scan(**asked)
        yield from page["Items"]
        last = page.get("LastEvaluatedKey")
        if not last:
            return
        asked = {"TableName": table, "ExclusiveStartKey": last}


def _position(
    item: "Mapping[str, AttributeValueTypeDef]", table: str, stream_name: str
) -> Position | None:
    """The lease as a position; None for one of another stream, or not yet begun."""
    *stream, shard_id = item["leaseKey"]["S"].split(":")
    if len(stream) == _MULTI_STREAM_PARTS - 1 and stream[1] != stream_name:
        return None
    checkpoint = item.get("checkpoint", {}).get("S")
    if checkpoint is None:
        return None
    if checkpoint not in CHECKPOINT_WORDS and not is_sequence_number(checkpoint):
        wanted = f"wanted a sequence number or one of {', '.join(CHECKPOINT_WORDS)}"
        raise LeaseTableRefusedError(
            table, f"{shard_id} has the checkpoint {checkpoint!r}", advice=wanted
        )
    return Position(
        source=PositionSource.KCL,
        consumer=table,
        shard_id=shard_id,
        checkpoint=checkpoint,
        sub_sequence=_number(item, "checkpointSubSequenceNumber"),
        lease_owner=item.get("leaseOwner", {}).get("S"),
        lease_counter=_number(item, "leaseCounter"),
    )


def _number(item: "Mapping[str, AttributeValueTypeDef]", name: str) -> int | None:
    text = item.get(name, {}).get("N")
    return None if text is None else int(text)


def _ours(table: str, error: BotoCoreError | ClientError) -> ShardauditError:
    text, advice = said_and_advice(error, _FINAL)
    if advice is not None:
        return LeaseTableRefusedError(table, text, advice=advice)
    return LeaseTableUnavailableError(table, text)
